"""How long work reports its progress; `cli/progress.py` shows it on a terminal."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_T = TypeVar("_T")
OnProgress = Callable[[str, int, int | None, str], None]  # (task, done, total or None, unit)
MEGABYTE = 1_000_000
_ITEMS_BETWEEN_CALLS = 100


def no_progress(*_: object) -> None:
  """Shows nothing."""


def counter(
  on_progress: OnProgress, task: str, total: int, unit: str, size: int = 1
) -> Callable[[int], None]:
  """Returns a callable that takes how much more is done, of `total`.

  Args:
    on_progress: called each time.
    task, unit: for it.
    total: how much there is to do.
    size: how much is one unit: `MEGABYTE` if bytes are counted and shown as "MB".
  """
  completed = 0

  def advance(amount: int) -> None:
    nonlocal completed
    completed += amount
    on_progress(task, completed // size, total // size, unit)

  return advance


def counted(
  items: Iterable[_T], on_progress: OnProgress, task: str, total: int | None, unit: str
) -> Iterator[_T]:
  """Yields the items and reports how many were yielded: of the first, then every hundred."""
  for number, item in enumerate(items, start=1):
    # The caller is done with an item when it asks for the next.
    yield item
    if number % _ITEMS_BETWEEN_CALLS == 1:
      on_progress(task, number, total, unit)
