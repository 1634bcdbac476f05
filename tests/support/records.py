"""Sets which prepared records the registered tasks read."""

import contextlib
import os
from collections.abc import Iterator

import seqio
from tensorflow.python.autograph.core import ag_ctx

import sgdx_t5x.tasks  # noqa: F401  # registers them


@contextlib.contextmanager
def records_of(data_dir: str | os.PathLike) -> Iterator[None]:
  """Makes all tasks read from a data directory, whatever they have read from before.

  AutoGraph, which none of our functions needs, is disabled meanwhile, since it takes most of the
  time of building a pipeline.
  """
  _forget()
  seqio.set_tfds_data_dir_override(os.fspath(data_dir))
  try:
    with ag_ctx.ControlStatusCtx(status=ag_ctx.Status.DISABLED):
      yield
  finally:
    seqio.set_tfds_data_dir_override(None)
    _forget()


def _forget() -> None:
  """Resets the data directory of each task, which keeps the first one it has read from."""
  for name in seqio.TaskRegistry.names():
    source = seqio.TaskRegistry.get(name).source
    if isinstance(source, seqio.TfdsDataSource):
      source.tfds_dataset.override_data_dir(None)
