"""What a command shows of its work while it runs."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def status(text: str) -> Iterator[Callable[[str], None]]:
  """Shows a line on stderr while the block runs, on a terminal only; yields what changes it."""
  if not sys.stderr.isatty():
    yield lambda text: None
    return
  from rich.console import Console

  with Console(stderr=True).status(text) as shown:
    yield shown.update


@contextlib.contextmanager
def native_stderr_hidden(debug: bool) -> Iterator[None]:
  """Hides what C++ code writes to stderr, which no Python setting silences, unless `debug`."""
  if debug:
    yield
    return
  sys.stderr.flush()
  saved = os.dup(2)
  with open(os.devnull, "w") as null:
    os.dup2(null.fileno(), 2)
  try:
    yield
  finally:
    os.dup2(saved, 2)
    os.close(saved)
