"""All tasks and mixtures of this project. To add one, add a call here."""

from sgdx_t5x.tasks.registration import register_family
from sgdx_t5x.tasks.vocabularies import sample_vocabulary, vocabulary

register_family("", data="full", vocabulary=vocabulary)
register_family("sample_", data="sample", vocabulary=sample_vocabulary)
