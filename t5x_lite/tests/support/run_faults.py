"""An action for the end-to-end tests: makes the disk full, as far as this process can tell."""

import resource


class FillDisk:
  """From the first TensorBoard point on, no file may grow beyond 20 kB."""

  def run(self, train_state, metrics_by_task):
    """Returns False: training goes on."""
    del train_state, metrics_by_task
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    return False
