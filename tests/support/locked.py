"""A process that holds the locks of files and folders, as a command that writes them does."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

_HOLD = """
import contextlib, sys
from sgdx_t5x.files.locks import lock
with contextlib.ExitStack() as stack:
  for path in sys.argv[1:]:
    stack.enter_context(lock(path))
  print("held", flush=True)
  sys.stdin.read()
"""


@contextlib.contextmanager
def locked(*paths: str | os.PathLike) -> Iterator[subprocess.Popen]:
  """Yields a process that holds the locks of paths until the end of the block."""
  command = [sys.executable, "-c", _HOLD, *paths]
  with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
