"""SeqIO tasks and mixtures; importing this module registers them all.

They are listed in `mixtures.py`; README.md beside this file shows how to add one.
"""

# Registered in a module of its own, so once: gin's `from sgdx_t5x import tasks` can run this file
# twice (it asks for the package's submodule "", which an editable install finds to be this).
from sgdx_t5x.tasks import mixtures  # noqa: F401
from sgdx_t5x.tasks.registration import (
  REGISTERED,
  register,
  register_family,
  register_mixture,
  register_variant,
  register_wording,
)
from sgdx_t5x.tasks.vocabularies import sample_vocabulary, vocabulary

__all__ = [
  "REGISTERED",
  "register",
  "register_family",
  "register_mixture",
  "register_variant",
  "register_wording",
  "sample_vocabulary",
  "vocabulary",
]
