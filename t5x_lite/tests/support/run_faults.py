"""An action for the end-to-end tests: makes the disk full, as far as this process can tell."""

import os
import resource
import sys


def _fill(size):
  sys.dont_write_bytecode = True  # which Python 3.11 would cut off at the limit
  resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


if "RUN_FULL_DISK" in os.environ:  # from the start; what the process prints has to fit
  _fill(int(os.environ["RUN_FULL_DISK"]))


class FillDisk:
  """From the first TensorBoard point on, no file may grow beyond `size` bytes."""

  def __init__(self, size=20_000):
    self._size = size

  def run(self, train_state, metrics_by_task):
    """Returns False: training goes on."""
    del train_state, metrics_by_task
    _fill(self._size)
    return False
