"""The progress of inference on the console."""

from __future__ import annotations

import time
from collections.abc import Mapping

from t5x._process.log import log
from t5x._process.progress import ProgressLine, duration, fit, short_number


class InferenceProgress(ProgressLine):
  """The line `eval sgd: 120/1000 rows | 80 rows/s | ETA 0:11`, and a summary at the end."""

  def __init__(self, what: str):
    super().__init__()
    self._what, self._done = what, 0

  def advance(self, rows: int, of: int) -> None:
    """Counts `rows` more rows, of `of` read so far that an earlier run has not answered."""
    self._done += rows
    if self._what:
      self.show(lambda columns: self._line(max(of, self._done), columns))

  def _line(self, of: int, columns: int | None) -> str:
    parts = {"rows": f"{self._what}: {self._done}/{of} rows"}
    if self._done:  # the first rows can take longer than the time between two lines
      rate = self._done / (time.time() - self.started)
      parts["rate"] = f"{short_number(rate)} rows/s"
      parts["ETA"] = f"ETA {duration((of - self._done) / rate)}"
    return fit(parts, ("rate", "ETA"), columns)

  def done(self, stats: Mapping[str, float]) -> None:
    """Logs what was done."""
    if not self._what:
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
      f"{self._what}: {stats['examples']} examples{note} in {stats['seconds']:.1f} s, "
      f"{short_number(rate)} rows/s"
    )
