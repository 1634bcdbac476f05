"""Imported by `t5x` as MIXTURE_OR_TASK_MODULE: T5DST's tasks of the sample in a BERT's pieces."""

from sgdx_t5x.prompts import load_format
from sgdx_t5x.tasks import register_family, sample_encoder_vocabulary

for name in ("t5dst", "d3st"):
  register_family(
    "wordpiece_",
    data="sample",
    vocabulary=sample_encoder_vocabulary,
    prompt_format=load_format(name),
  )
