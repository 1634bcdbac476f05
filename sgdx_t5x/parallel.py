"""Worker processes that end with their parent."""

import multiprocessing
import multiprocessing.process
import os
import threading


def end_with_parent() -> None:
  """Makes a worker process end when its parent is gone, killed perhaps; no effect elsewhere.

  A worker of a pool would otherwise wait for work for ever. Made to be a pool's initializer.
  """
  if parent := multiprocessing.parent_process():
    threading.Thread(target=_exit_after, args=(parent,), daemon=True).start()


def _exit_after(process: multiprocessing.process.BaseProcess) -> None:
  process.join()
  os._exit(1)
