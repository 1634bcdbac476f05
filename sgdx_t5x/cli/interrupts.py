"""Ctrl-C and SIGTERM end a command in order: what it was writing is removed."""

import contextlib
import signal
import sys
import threading

TYPE_CHECKING = False  # this is imported before anything that takes time
if TYPE_CHECKING:
  from collections.abc import Iterator
  from types import FrameType

_AGAIN = 0.05  # seconds


class Terminated(KeyboardInterrupt):
  """SIGTERM; whoever cleans up after Ctrl-C cleans up after it too."""


@contextlib.contextmanager
def interrupts() -> "Iterator[None]":
  """Raises KeyboardInterrupt in the block on Ctrl-C, `Terminated` on SIGTERM.

  Python drops an exception that is raised within a callback, and JAX has one for each garbage
  collection. So what was dropped is raised again a little later. An ignored SIGINT, as of a
  shell's background job, stays ignored; without the main thread nothing is changed.
  """
  if threading.current_thread() is not threading.main_thread():
    yield
    return
  stop: type[KeyboardInterrupt] = KeyboardInterrupt

  def on_signal(number: int, frame: "FrameType | None") -> None:
    nonlocal stop
    if number == signal.SIGTERM:
      signal.signal(signal.SIGTERM, signal.SIG_IGN)  # another one must not stop the cleaning up
      stop = Terminated
    raise stop

  def on_dropped(dropped: "sys.UnraisableHookArgs") -> None:
    if issubclass(dropped.exc_type, KeyboardInterrupt):
      signal.setitimer(signal.ITIMER_REAL, _AGAIN)
    else:
      hook(dropped)

  hook = sys.unraisablehook
  numbers = [signal.SIGTERM, signal.SIGALRM]
  if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
    numbers.append(signal.SIGINT)
  before = {number: signal.signal(number, on_signal) for number in numbers}
  sys.unraisablehook = on_dropped
  try:
    yield
  finally:
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.unraisablehook = hook
    for number, handler in before.items():
      signal.signal(number, handler if handler is not None else signal.SIG_DFL)
