"""Imported by `t5x` as MIXTURE_OR_TASK_MODULE: the sample's train has few dialogues."""

from sample_folder import FEW_IN_TRAIN

from sgdx_t5x import sample

sample.DIALOGUES = {**sample.DIALOGUES, "train": FEW_IN_TRAIN}
