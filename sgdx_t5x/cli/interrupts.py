"""Ctrl-C and SIGTERM end a command cleanly: what it was writing is removed.

This module imports nothing slow: until it is loaded, Ctrl-C ends in a traceback. The modules
`signal` and `contextlib` take longer to import than everything else here.
"""

import _signal as signal  # `signal` only adds names for its numbers
import sys

TYPE_CHECKING = False  # like typing's
if TYPE_CHECKING:
  from types import FrameType
  from typing import Any

_AGAIN = 0.05  # seconds


class Terminated(KeyboardInterrupt):
  """SIGTERM; code that cleans up after Ctrl-C also handles it."""


def ended(stop: KeyboardInterrupt, state: str) -> int:
  """Prints that the command was stopped, and the state of its output; returns the exit code."""
  word, code = ("terminated", 143) if isinstance(stop, Terminated) else ("interrupted", 130)
  print(f"sgdx: {word}; {state}", file=sys.stderr)
  return code


class interrupts:
  """Raises KeyboardInterrupt in a `with` block on Ctrl-C, `Terminated` on SIGTERM.

  Python drops an exception that is raised within a callback, and JAX has one for each garbage
  collection, so a dropped exception is raised again a little later. An ignored SIGINT, as in a
  shell's background job, stays ignored; outside the main thread nothing is changed.
  """

  def __init__(self) -> None:
    self._stop: type[KeyboardInterrupt] = KeyboardInterrupt
    self._before: dict[int, Any] = {}
    self._hook = sys.unraisablehook

  def __enter__(self) -> None:
    numbers = [signal.SIGTERM, signal.SIGALRM]
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
      numbers.insert(0, signal.SIGINT)
    try:
      for number in numbers:
        self._before[number] = signal.signal(number, self._on_signal)
    except ValueError:  # not the main thread
      return
    self._hook = sys.unraisablehook
    sys.unraisablehook = self._on_dropped

  def __exit__(self, *_: object) -> None:
    if not self._before:
      return
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.unraisablehook = self._hook
    for number, handler in self._before.items():
      signal.signal(number, handler if handler is not None else signal.SIG_DFL)

  def _on_signal(self, number: int, frame: "FrameType | None") -> None:
    if number == signal.SIGTERM:
      signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not stop the cleanup
      self._stop = Terminated
    raise self._stop

  def _on_dropped(self, dropped: "sys.UnraisableHookArgs") -> None:
    if issubclass(dropped.exc_type, KeyboardInterrupt):
      signal.setitimer(signal.ITIMER_REAL, _AGAIN)
    else:
      self._hook(dropped)
