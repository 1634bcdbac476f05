"""Progress of a folder that a library writes in one call without a progress hook."""

import contextlib
import pathlib
import threading
from collections.abc import Callable, Iterator

_SECONDS_BETWEEN_LOOKS = 0.5


@contextlib.contextmanager
def watched(
  folder: pathlib.Path | None, on_size: Callable[[int], None]
) -> Iterator[Callable[[], None]]:
  """Calls a function every half second while the block runs, from a separate thread.

  Args:
    folder: need not exist yet; None to watch nothing.
    on_size: called with the size of the folder's content in bytes.

  Yields:
    A callable that stops the calls before the block ends.
  """
  stopped = threading.Event()

  def watch(folder: pathlib.Path) -> None:
    while not stopped.wait(_SECONDS_BETWEEN_LOOKS):
      on_size(_size(folder))

  thread = threading.Thread(target=watch, args=(folder,), daemon=True)
  if folder:
    thread.start()
  try:
    yield stopped.set
  finally:
    stopped.set()
    if folder:
      thread.join()  # nothing is called after the block


def _size(folder: pathlib.Path) -> int:
  size = 0
  with contextlib.suppress(OSError):  # renamed when complete
    for path in folder.rglob("*"):
      with contextlib.suppress(OSError):
        size += path.stat().st_size if path.is_file() else 0
  return size
