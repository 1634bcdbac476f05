"""How far the host runs ahead of the device."""

from __future__ import annotations

import collections
import time
from typing import Any

import jax

# A run that is being stopped waits about this long at most, or two steps if that is longer.
_SECONDS = 0.1
_MOST_STEPS = 32  # as many as JAX itself allows on a CPU


class StepsAhead:
  """Steps that have been dispatched and are not known to have finished.

  At least two are allowed: the running one, and the one that the device continues with while the
  host prepares the next. If steps are short, a tenth of a second's worth of them is allowed, since
  the host cannot always prepare one within a few milliseconds.
  """

  def __init__(self) -> None:
    # Of jax.Array, whose type does not tell that there is `is_ready`.
    self._steps: collections.deque[Any] = collections.deque(maxlen=_MOST_STEPS)
    self._step_seconds = 1.0  # until it is known: two steps at most
    self._done_at: float | None = None

  def add(self, result: jax.Array) -> None:
    """Adds a dispatched step, given one of its results."""
    self._steps.append(result)

  def wait_for_room(self) -> None:
    """Waits until another step may be dispatched."""
    while len(self._steps) >= self._room():
      self._wait_for_oldest()

  def _room(self) -> int:
    return min(max(2, int(_SECONDS / self._step_seconds)), _MOST_STEPS)

  def _wait_for_oldest(self) -> None:
    """Waits for a step, and learns from two in a row how long one takes."""
    oldest = self._steps.popleft()
    if oldest.is_ready():
      self._done_at = None  # finished at an unknown time: the interval would not be the step's
      return
    jax.block_until_ready(oldest)
    now = time.perf_counter()
    if self._done_at is not None:
      # A thread that wakes late makes the next step seem short: at most halve the estimate.
      self._step_seconds = max(now - self._done_at, self._step_seconds / 2, 1e-6)
    self._done_at = now
