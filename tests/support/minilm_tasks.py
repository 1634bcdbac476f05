"""Imported by `t5x` as MIXTURE_OR_TASK_MODULE: SpanDST's task of the sample in MiniLM's pieces."""

from sgdx_t5x.tasks.spandst import register_spandst
from sgdx_t5x.tasks.vocabularies import encoder_vocabulary_later

register_spandst(
  "minilm_sample", data="sample", variants=["original"], vocabulary=encoder_vocabulary_later
)
