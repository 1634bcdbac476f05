"""Imported by `t5x` as MIXTURE_OR_TASK_MODULE: shrinks the sample's train split."""

import pathlib
import sys

# A process that a test starts does not have that folder on its path.
sys.path.append(str(pathlib.Path(__file__).parents[2] / "support"))

from sample_folder import shorten_train

shorten_train(60)  # as in the fixture small_sample
