"""Ctrl-C and SIGTERM end a command cleanly: what it was writing is removed."""

import contextlib
import math
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType

_CLEANUP_SECONDS = 5.0


class Terminated(KeyboardInterrupt):
  """SIGTERM; code that cleans up after Ctrl-C also handles it."""


def ended(stop: KeyboardInterrupt, state: str) -> int:
  """Prints that the command was stopped, and the state of its output; returns the exit code."""
  word, code = ("terminated", 143) if isinstance(stop, Terminated) else ("interrupted", 130)
  print(f"sgdx: {word}; {state}", file=sys.stderr)
  return code


@contextlib.contextmanager
def termination_raises() -> Iterator[None]:
  """Raises `Terminated` in the block on SIGTERM, as Python raises KeyboardInterrupt on Ctrl-C."""

  last = -math.inf

  def on_signal(number: int, frame: FrameType | None) -> None:
    # A second one right after the first must not stop the cleanup. A later one counts: Python drops
    # what is raised in a callback, as of a weak reference, and JAX has many of them.
    nonlocal last
    if time.monotonic() - last > _CLEANUP_SECONDS:
      last = time.monotonic()
      raise Terminated

  try:
    previous = signal.signal(signal.SIGTERM, on_signal)
  except ValueError:  # not the main thread
    yield
    return
  try:
    yield
  finally:
    signal.signal(signal.SIGTERM, signal.SIG_DFL if previous is None else previous)
