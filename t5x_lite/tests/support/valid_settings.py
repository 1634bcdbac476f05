"""Valid settings for tests of invalid ones, and what an error has to have."""

import run_tasks  # noqa: F401 - registers the task
import seqio

from t5x import utils

TASK = seqio.get_mixture_or_task("run_last3")
LENGTHS = {"inputs": 48, "targets": 8}


def dataset(batch_size=8, lengths=LENGTHS):
  """Returns the configuration of the task's training data."""
  return utils.DatasetConfig(TASK, lengths, "train", batch_size, False, 0)


def restore(path, mode="specific"):
  """Returns the configuration that restores the checkpoint at `path`."""
  return utils.RestoreCheckpointConfig(path=str(path), mode=mode)


def assert_four_parts(error, found, *expected):
  """Asserts what an error has found, that it helps, and words in its text."""
  assert error.found == found
  for part in (error.expected, error.fix):
    assert part
  for words in expected:
    assert words in error.text
