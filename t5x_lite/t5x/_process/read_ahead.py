"""Reading ahead: an iterator that runs in a thread."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Any


class ReadAhead(Iterator[Any]):
  """Runs an iterator in a thread, starting immediately.

  Args:
      iterable: the iterator; what it raises is re-raised in the consumer, at each call.
      ahead: how many items may wait for the consumer; 0 is no limit.
  """

  def __init__(self, iterable: Iterable[Any], ahead: int = 0):
    self._items: queue.Queue = queue.Queue(ahead)  # of (item, None) or (None, what ended it)
    self._stop = threading.Event()
    arguments = iterable, self._items, self._stop  # not this object: it stops when that is gone
    self._thread = threading.Thread(target=_fill, args=arguments, daemon=True, name="t5x-input")
    self._thread.start()

  def __next__(self) -> Any:
    item, end = self._items.get()
    if end is not None:
      self._items.put((item, end))  # for the next call; the thread has ended, so there is room
      raise end
    return item

  def __del__(self):
    self._stop.set()

  def close(self) -> None:
    """Stops the thread."""
    self._stop.set()
    self._thread.join(timeout=5)


def _fill(iterable: Iterable[Any], items: queue.Queue, stop: threading.Event) -> None:
  def put(item: Any, end: BaseException | None) -> None:
    # Looks for `stop` now and then: a full queue would hold the thread for ever.
    while not stop.is_set():
      with contextlib.suppress(queue.Full):
        items.put((item, end), timeout=0.2)
        return

  try:
    for item in iterable:
      put(item, None)
      if stop.is_set():
        return
    put(None, StopIteration())
  except BaseException as e:  # handed to the consumer
    put(None, e)
