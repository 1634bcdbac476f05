"""Progress lines of long work."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from t5x._process.log import log, terminal_columns

_SECONDS_BETWEEN_LINES = 30.0
_SECONDS_BETWEEN_REDRAWS = 1.0
_PREFIX = "t5x: "
_COLUMNS = 99 - len(_PREFIX)  # maximum of a line in a log
_SEPARATOR = " | "
_LEAST_IMPORTANT = ("lr", "tokens", "rate", "loss", "ETA")  # parts of the training line


def duration(seconds: float) -> str:
  """Seconds as `1:02:03` or `2:03`.

  >>> duration(3723), duration(123)
  ('1:02:03', '2:03')
  """
  minutes, s = divmod(int(seconds), 60)
  hours, m = divmod(minutes, 60)
  return f"{hours}:{m:02}:{s:02}" if hours else f"{m}:{s:02}"


def short_number(value: float) -> str:
  """A number with three digits and a unit of thousands.

  >>> short_number(987.6), short_number(12345), short_number(1.5e6)
  ('988', '12.3k', '1.5M')
  """
  for unit in ("", "k", "M", "G"):
    if value < 999.5:
      return f"{value:.3g}{unit}"
    value /= 1000
  return f"{value:.3g}T"


def fit(fields: Mapping[str, str], least_important: Sequence[str], columns: int | None) -> str:
  """Joins the parts of a line, dropping those that do not fit.

  Args:
      fields: name -> text, in the order shown.
      least_important: names of the parts that may be dropped, in that order.
      columns: maximum length, where the line is cut if it is still longer; None is no limit.

  Returns:
      The line.

  >>> fit({"step": "step 5/9", "loss": "loss 3.2", "lr": "lr 0.001"}, ("lr", "loss"), 20)
  'step 5/9 | loss 3.2'
  """
  remaining = dict(fields)
  if columns is None:
    return _SEPARATOR.join(remaining.values())
  for name in least_important:
    if len(_SEPARATOR.join(remaining.values())) > columns:
      remaining.pop(name, None)
  return _SEPARATOR.join(remaining.values())[: max(columns, 0)]


class ProgressLine:
  """A line about long work: redrawn in place on a terminal, otherwise one every 30 s."""

  def __init__(self):
    self._terminal = sys.stderr.isatty() and not os.environ.get("TQDM_DISABLE")
    self._every = _SECONDS_BETWEEN_REDRAWS if self._terminal else _SECONDS_BETWEEN_LINES
    self.started = self._shown = time.time()

  def show(self, line: Callable[[int | None], str], force: bool = False) -> None:
    """Shows a line if it is time to, or `force`.

    Args:
        line: returns the line, given its maximum columns (None in a log); called only if the line
            is shown.
        force: show it whether or not it is time to.
    """
    now = time.time()
    if not force and now - self._shown < self._every:
      return
    self._shown = now
    if self._terminal:
      end = "\n" if force else ""
      # The last column stays free: some terminals fold a full line, and \r reaches one row only.
      text = line(terminal_columns() - 1 - len(_PREFIX))
      print(f"\r\x1b[2K{_PREFIX}{text}", end=end, file=sys.stderr, flush=True)
    else:
      log(line(None))

  def clear(self) -> None:
    """Ends a line being redrawn, before other output."""
    if self._terminal:
      print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


class Progress(ProgressLine):
  """The line `step 120/1000 | 9.8 steps/s | 12.3k tokens/s | ETA 1:29 | loss 3.2 | lr 0.001`.

  Tokens are those of encoder inputs and decoder targets over all hosts, without padding.
  Compilation and evaluation do not count in the rates. Parts are left out if the line would be
  wider than the terminal: first the learning rate, last the ETA. In a log only the learning rate
  is, if the line would exceed 99 columns.

  Args:
      first_step: step before the first one of this run.
      last_step: step the run ends at.
      last_metrics: returns {'loss', 'lr', 'tokens_per_step'} of the latest step, or some of them.
  """

  def __init__(
    self,
    first_step: int,
    last_step: int,
    last_metrics: Callable[[], dict[str, float]],
  ):
    super().__init__()
    self._first, self._last = first_step, last_step
    self._last_metrics = last_metrics
    self._excluded = 0.0
    self._untimed_steps = 0

  @contextlib.contextmanager
  def excluded(self, steps: int = 0):
    """What runs inside the `with` block (and its `steps`) does not count in the rates."""
    started = time.time()
    try:
      yield
    finally:
      self._excluded += time.time() - started
      self._untimed_steps += steps

  def seconds(self) -> float:
    """Seconds of training so far, without what was excluded."""
    return max(time.time() - self.started - self._excluded, 1e-9)

  def line(self, step: int, columns: int | None = None) -> str:
    """The progress line after `step`. Args: columns, see `fit`."""
    values = self._last_metrics()  # waits for the step, so that the time is that of all steps
    timed = step - self._first - self._untimed_steps
    fields = {"step": f"step {step}/{self._last}"}
    if timed > 0:
      rate = timed / self.seconds()
      fields["rate"] = f"{short_number(rate)} steps/s"
      if "tokens_per_step" in values:
        fields["tokens"] = f"{short_number(rate * values['tokens_per_step'])} tokens/s"
      if step < self._last:
        fields["ETA"] = f"ETA {duration((self._last - step) / rate)}"
    if "loss" in values:
      loss = values["loss"]
      fields["loss"] = f"loss {loss:.4f}" if abs(loss) < 1000 else f"loss {loss:.4g}"
    if "lr" in values:
      fields["lr"] = f"lr {values['lr']:.3g}"
    if columns is None and len(fit(fields, (), None)) > _COLUMNS:
      fields.pop("lr", None)
    return fit(fields, _LEAST_IMPORTANT, columns)

  def update(self, step: int, force: bool = False) -> None:
    """Shows the line if it is time to, or `force`."""
    self.show(lambda columns: self.line(step, columns), force)


class InferenceProgress(ProgressLine):
  """The line `eval sgd: 120/1000 rows | 80 rows/s | ETA 0:11`, and a summary at the end."""

  def __init__(self, label: str):
    super().__init__()
    self._label, self._done = label, 0

  def advance(self, rows: int, total: int) -> None:
    """Counts `rows` more rows, of `total` read so far that an earlier run has not answered."""
    self._done += rows
    if self._label:
      self.show(lambda columns: self._line(max(total, self._done), columns))

  def _line(self, total: int, columns: int | None) -> str:
    fields = {"rows": f"{self._label}: {self._done}/{total} rows"}
    if self._done:  # the first rows can take longer than the time between two lines
      rate = self._done / (time.time() - self.started)
      fields["rate"] = f"{short_number(rate)} rows/s"
      fields["ETA"] = f"ETA {duration((total - self._done) / rate)}"
    return fit(fields, ("rate", "ETA"), columns)

  def done(self, stats: Mapping[str, float]) -> None:
    """Logs what was done."""
    if not self._label:
      return
    self.clear()
    details = []
    if stats["distinct"] < stats["examples"]:
      details.append(f"{stats['distinct']} distinct")
    if stats["rows_run"] < stats["distinct"]:
      details.append(f"{stats['distinct'] - stats['rows_run']} already known")
    note = f" ({', '.join(details)})" if details else ""
    rate = stats["rows_run"] / stats["seconds"]
    log(
      f"{self._label}: {stats['examples']} examples{note} in {stats['seconds']:.1f} s, "
      f"{short_number(rate)} rows/s"
    )
