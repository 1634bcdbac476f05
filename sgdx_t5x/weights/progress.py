"""Progress of reading and writing weights."""

import contextlib
import pathlib
from collections.abc import Callable, Iterator

from sgdx_t5x.files.growth import watched

OnProgress = Callable[[str, int, int, str], None]  # (task, done, total, unit)
_MEGABYTE = 1_000_000


def no_progress(*_: object) -> None:
  """Shows nothing."""


def byte_counter(task: str, total: int, on_progress: OnProgress) -> Callable[[int], None]:
  """Returns a callable that takes the number of further bytes done, of `total`."""
  done = 0

  def on_bytes(size: int) -> None:
    nonlocal done
    done += size
    on_progress(task, done // _MEGABYTE, total // _MEGABYTE, "MB")

  return on_bytes


@contextlib.contextmanager
def growing(folder: pathlib.Path, total: int, on_progress: OnProgress) -> Iterator[None]:
  """Reports, while the block runs, how many of `total` bytes a folder holds.

  A file that a library writes under a temporary name elsewhere counts only once it is complete.
  """

  def on_size(size: int) -> None:
    on_progress("writing", min(size, total) // _MEGABYTE, total // _MEGABYTE, "MB")

  on_size(0)
  with watched(folder, on_size):
    yield
