"""Worker processes that leave interrupts to their parent and exit with it."""

import concurrent.futures
import contextlib
import multiprocessing
import multiprocessing.process
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool

from sgdx_t5x.errors import SgdxError


@contextlib.contextmanager
def worker_processes(
  processes: int, doing: str, initializer: Callable | None = None, *arguments
) -> Iterator[Callable]:
  """Yields a `map` that runs a function in new processes; leaving early drops what has not begun.

  They are not forks: an open zip file must not be shared, nor a progress line's threads copied.

  Args:
    processes: how many.
    doing: what they do, for the error.
    initializer: called first in each, with `arguments`.
    *arguments: can be pickled, like the function and its items.

  Raises:
    SgdxError: one was killed.
  """
  pool = concurrent.futures.ProcessPoolExecutor(
    processes, multiprocessing.get_context("spawn"), _start, (initializer, arguments)
  )

  def run(function, items):
    # The processes start here and inherit the mask, so that an interrupt, which a terminal sends
    # to all, does not stop one that is still importing.
    with _without(signal.SIGINT):
      return pool.map(function, items)

  try:
    yield run
  except BrokenProcessPool:
    raise SgdxError(
      f"a worker process was killed while {doing}",
      expected=f"enough memory for {processes} processes",
      fix="use fewer processes: --processes N",
    ) from None
  finally:
    # A second interrupt, or SIGALRM, with which `sgdx` repeats the first, would leave workers that
    # Python waits for at its end.
    with _without(signal.SIGINT, signal.SIGALRM):
      if pool._broken and sys.version_info < (3, 11, 5):
        # Else `shutdown` waits for a thread that writes to those killed (python/cpython#94777).
        pool._call_queue._reader.close()  # type: ignore[attr-defined]
      pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _without(*signals: signal.Signals) -> Iterator[None]:
  """Holds signals back; they come afterwards."""
  mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
  try:
    yield
  finally:
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _start(initializer: Callable | None, arguments: tuple) -> None:
  # Otherwise a worker would wait for work forever after its parent was killed.
  if parent := multiprocessing.parent_process():
    threading.Thread(target=_exit_after, args=(parent,), daemon=True).start()
  if initializer:
    initializer(*arguments)


def _exit_after(process: multiprocessing.process.BaseProcess) -> None:
  process.join()
  os._exit(1)
