"""Imported by `t5x` as MIXTURE_OR_TASK_MODULE: shrinks the sample's train split."""

from sample_folder import shorten_train

shorten_train(60)  # as in the fixture small_sample
