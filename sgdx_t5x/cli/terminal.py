"""The streams of all commands: what a schema or corpus is called must not command a terminal.

Terminals obey escape sequences, which can move the cursor, change what was printed or fill the
clipboard; bidirectional controls reorder a line. All that is printed passes `EscapedStream`, which
shows such characters as escapes; what programs read from a pipe stays exact.
"""

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO, cast

from sgdx_t5x.errors import escaped


class EscapedStream:
  """A text stream in which control characters are escaped, except newlines and tabs."""

  def __init__(self, stream: TextIO):
    self.exact = stream

  def write(self, text: str) -> int:
    """As `TextIO.write`."""
    self.exact.write(escaped(text, kept="\n\t"))
    return len(text)

  def writelines(self, lines: Iterable[str]) -> None:
    """As `TextIO.writelines`."""
    for line in lines:
      self.write(line)

  def __getattr__(self, name: str) -> Any:
    return getattr(self.exact, name)


@contextlib.contextmanager
def escaped_streams() -> Iterator[None]:
  """Escapes what is printed to stdout and stderr while the block runs, and cannot be encoded."""
  # Others replace what they cannot encode already: stderr, and stdout in the C locale.
  if getattr(sys.stdout, "errors", "") == "strict" and hasattr(sys.stdout, "reconfigure"):
    sys.stdout.reconfigure(errors="backslashreplace")
  with (
    contextlib.redirect_stdout(cast(TextIO, EscapedStream(sys.stdout))),
    contextlib.redirect_stderr(cast(TextIO, EscapedStream(sys.stderr))),
  ):
    yield


def exact(stream: TextIO) -> TextIO:
  """Returns what is behind a stream, for a writer that has control sequences of its own."""
  return getattr(stream, "exact", stream)


def exact_stdout() -> TextIO:
  """Returns stdout for what programs read, such as JSON: exact unless it is a terminal."""
  return sys.stdout if sys.stdout.isatty() else exact(sys.stdout)
