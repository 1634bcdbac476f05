"""Reads TensorBoard files as they are, restarts included."""

import pathlib

from tensorboard.backend.event_processing import event_file_loader
from tensorboard.util import tensor_util


def scalars(folder, tag):
  """Returns {step: [distinct values that runs wrote for it]}."""
  values = {}
  for path in pathlib.Path(folder).glob("events.*"):
    for event in event_file_loader.EventFileLoader(str(path)).Load():
      for value in event.summary.value:
        if value.tag == tag:
          number = tensor_util.make_ndarray(value.tensor).item()
          values.setdefault(event.step, set()).add(number)
  return {step: sorted(found) for step, found in values.items()}
