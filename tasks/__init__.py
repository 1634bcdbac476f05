"""SeqIO tasks and mixtures; importing this module registers them all.

A new mixture is one call here; README.md beside this file shows it.
"""

from sgdx_t5x.tasks.t5dst import register, register_family
from sgdx_t5x.tasks.vocabularies import sample_vocabulary, vocabulary

__all__ = ["register", "register_family", "sample_vocabulary", "vocabulary"]

register_family("", data="full", vocabulary=vocabulary)
register_family("sample_", data="sample", vocabulary=sample_vocabulary)
