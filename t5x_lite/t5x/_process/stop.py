"""Requests to stop: Ctrl-C and SIGTERM."""

from __future__ import annotations

import contextlib
import os
import signal

from t5x._process import hosts
from t5x.errors import Interrupted


class StopRequest:
  """Turns Ctrl-C and SIGTERM into a stop between two steps; a second one stops at once (of several
  processes, only a second Ctrl-C).

  Of several processes, all stop at the same step, whichever of them got the signal: JAX's
  preemption service, which listens to SIGTERM then, finds the first step that none has begun.
  """

  def __init__(self) -> None:
    self.signum: int | None = None
    self._several = hosts.process_count() > 1
    self._checks = 0

  def _handle(self, signum, frame) -> None:
    """Notes the signal: the run stops where it next calls `check`."""
    del frame
    if self.signum is not None:
      raise KeyboardInterrupt
    self.signum = signum
    name = signal.Signals(signum).name
    moment = "at a step that all processes reach" if self._several else "after this step"
    with contextlib.suppress(OSError):  # a pipe whose reader got the signal too: `| tee log`
      os.write(2, f"\nt5x: {name}: stopping {moment} (repeat to stop at once)\n".encode())
    if self._several:
      os.kill(os.getpid(), signal.SIGTERM)  # to JAX's handler, which tells the others

  @contextlib.contextmanager
  def listening(self):
    """Handles the signals inside the `with` block."""
    previous_handlers = {}
    for signum in (signal.SIGINT,) if self._several else (signal.SIGINT, signal.SIGTERM):
      with contextlib.suppress(ValueError):  # not in the main thread: leave them alone
        previous_handlers[signum] = signal.signal(signum, self._handle)
    try:
      yield self
    finally:
      for signum, handler in previous_handlers.items():
        signal.signal(signum, handler)

  def check(self) -> None:
    """Raises Interrupted if a stop was requested; all processes have to call it alike."""
    if not self._several:
      if self.signum is not None:
        raise Interrupted(self.signum)
      return
    from jax.experimental import multihost_utils

    self._checks += 1
    if multihost_utils.reached_preemption_sync_point(self._checks):
      raise Interrupted(self.signum or signal.SIGTERM)
