"""Imported by `t5x` as MIXTURE_OR_TASK_MODULE: the sample's train has few dialogues."""

from sgdx_t5x import sample

sample.DIALOGUES = {**sample.DIALOGUES, "train": 60}  # as the fixture small_sample has
