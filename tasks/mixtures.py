"""All tasks and mixtures of this project. To add one, add a call here."""

from sgdx_t5x.prompts import load_format
from sgdx_t5x.tasks.registration import register_family
from sgdx_t5x.tasks.vocabularies import sample_vocabulary, vocabulary

for _format in ("t5dst", "d3st"):
  register_family("", data="full", vocabulary=vocabulary, prompt_format=load_format(_format))
  register_family(
    "sample_", data="sample", vocabulary=sample_vocabulary, prompt_format=load_format(_format)
  )
