"""What a command shows of its work while it runs."""

import contextlib
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
