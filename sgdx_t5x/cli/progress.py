"""Progress of a command on stderr: shown on a terminal while it runs, never in a pipe or file."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO, TypeVar, cast

from sgdx_t5x.cli.terminal import EscapedStream, exact
from sgdx_t5x.errors import escaped

_T = TypeVar("_T")
Update = Callable[..., None]  # (task, done, total=None, unit=that of the block)


@contextlib.contextmanager
def progress(unit: str, enabled: bool = True) -> Iterator[Update]:
  """Shows a line per task while the block runs, on a terminal only; they vanish afterwards.

  Args:
    unit: what is counted: "dialogues".
    enabled: False shows nothing on a terminal either.

  Yields:
    A function of (task, done, total, unit): a line's text, how much is done, of how much (None, the
    default, if unknown), and what is counted (default: `unit` as above).
  """
  # Not as rich decides: for it, FORCE_COLOR makes a terminal of a pipe.
  if not (enabled and sys.stderr.isatty()):
    yield lambda task, completed, total=None, unit=unit: None
    return
  from rich.console import Console
  from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

  numbers = (TaskProgressColumn(), "{task.fields[count]}", TimeRemainingColumn())
  columns = ("{task.description}", BarColumn(), *numbers)
  with (
    _terminal() as terminal,
    # Results go to stdout, which must not be redirected to the console.
    Progress(
      *columns, console=Console(file=terminal), transient=True, redirect_stdout=False
    ) as bars,
    contextlib.redirect_stderr(cast(TextIO, EscapedStream(sys.stderr))),  # which is rich's now
  ):
    tasks = {}

    def update(task: str, completed: int, total: int | None = None, unit: str = unit) -> None:
      if task not in tasks:
        tasks[task] = bars.add_task(escaped(task), total=total, count="")
      count = f"{completed:,} {unit}" if total is None else f"{completed:,} of {total:,} {unit}"
      bars.update(tasks[task], completed=completed, total=total, count=count)

    yield update


@contextlib.contextmanager
def _terminal() -> Iterator[TextIO]:
  """Yields the terminal behind stderr, even while `native_stderr_hidden` redirects it."""
  try:
    copy = os.dup(sys.stderr.fileno())
  except OSError:  # not a file
    yield exact(sys.stderr)
    return
  with open(copy, "w", encoding=sys.stderr.encoding, errors=sys.stderr.errors) as terminal:
    yield terminal


def track(
  items: Iterable[_T], task: str, unit: str, total: int | None = None, enabled: bool = True
) -> Iterator[_T]:
  """Yields the items and shows how many were yielded; arguments as for `progress`."""
  with progress(unit, enabled) as update:
    update(task, 0, total)
    for number, item in enumerate(items, start=1):
      yield item
      update(task, number, total)


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
