"""Progress of reading and writing weights."""

from collections.abc import Callable

OnProgress = Callable[[str, int, int, str], None]  # (task, done, total, unit)
MEGABYTE = 1_000_000


def no_progress(*_: object) -> None:
  """Shows nothing."""


def byte_counter(task: str, total: int, on_progress: OnProgress) -> Callable[[int], None]:
  """Returns a callable that takes the number of further bytes done, of `total`."""
  done = 0

  def on_bytes(size: int) -> None:
    nonlocal done
    done += size
    on_progress(task, done // MEGABYTE, total // MEGABYTE, "MB")

  return on_bytes
