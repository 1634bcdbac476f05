"""The core's SeqIO tasks and mixtures; importing this module registers them.

`mixtures.py` lists them; README.md in this folder shows how to add one.
"""

# A separate module registers them, so that it happens once: gin's `from sgdx_t5x import tasks` can
# execute this file twice (it imports the submodule "", which an editable install resolves to this).
from sgdx_t5x.tasks import mixtures
from sgdx_t5x.tasks.registration import (
  REGISTERED,
  register,
  register_family,
  register_mixture,
  register_variant,
)
from sgdx_t5x.tasks.vocabularies import (
  encoder_vocabulary,
  sample_encoder_vocabulary,
  sample_vocabulary,
  vocabulary,
  wordpiece_vocabulary,
)
