"""Imported by `t5x` as MIXTURE_OR_TASK_MODULE: shrinks the sample's train split."""

from sgdx_t5x.corpus import sample

sample.DIALOGUES = {**sample.DIALOGUES, "train": 60}  # as in the fixture small_sample
