"""Worker processes that exit with their parent."""

import multiprocessing
import multiprocessing.process
import os
import threading


def end_with_parent() -> None:
  """Makes a worker process exit when its parent does, even if killed; no effect elsewhere.

  A pool's worker would otherwise wait for work forever. Meant as a pool's initializer.
  """
  if parent := multiprocessing.parent_process():
    threading.Thread(target=_exit_after, args=(parent,), daemon=True).start()


def _exit_after(process: multiprocessing.process.BaseProcess) -> None:
  process.join()
  os._exit(1)
