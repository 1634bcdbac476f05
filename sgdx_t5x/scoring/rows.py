"""Rows of scores, as they go from the scorer through a report's JSON to tables and plots."""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

from sgdx_t5x.files.reading import is_number
from sgdx_t5x.tables import Number, percent

GROUPS = ("all", "seen", "unseen")  # the row groups of the paper's Table 2


@dataclasses.dataclass(frozen=True)
class Row:
  """The numbers of one metric over some frames, with all variants.

  Attributes:
    values: key of `metrics.summarise` -> fraction; None if it cannot be computed.
    num_frames: number of frames they are over; None if that differs between them.
    num_dialogues: number of dialogues; None if not known.
    intervals: key -> ends of the 95% interval, as fractions; empty without intervals.
  """

  values: Mapping[str, float | None]
  num_frames: int | None = None
  num_dialogues: int | None = None
  intervals: Mapping[str, tuple[float, float] | None] = dataclasses.field(default_factory=dict)

  @classmethod
  def from_json(cls, data: Mapping[str, Any]) -> "Row":
    """Reads what `to_json` returns.

    Raises:
      TypeError, ValueError: a value is not a finite number.
    """
    values = dict(data)
    intervals: dict[str, tuple[float, float] | None] = {}
    numbers = []
    for key, pair in values.pop("ci95", {}).items():
      intervals[key] = None
      if pair is not None:
        low, high = pair  # fails unless there are two
        intervals[key] = low, high
        numbers += [low, high]
    numbers += [number for number in values.values() if number is not None]  # counts, too
    if not all(map(is_number, numbers)):
      raise ValueError("not a finite number")
    return cls(values, values.pop("num_frames", None), values.pop("num_dialogues", None), intervals)

  def to_json(self) -> dict[str, Any]:
    """Returns the row as docs/score-json.md describes it."""
    counts = {"num_frames": self.num_frames, "num_dialogues": self.num_dialogues}
    ends = {key: pair and list(pair) for key, pair in self.intervals.items()}
    return {**self.values, **counts, **({"ci95": ends} if ends else {})}

  def has(self, key: str) -> bool:
    """Whether a number is defined."""
    return self.values.get(key) is not None

  def percent(self, key: str) -> float:
    """A number in percent; nan if there is none."""
    value = self.values.get(key)
    return math.nan if value is None else 100 * value

  def interval(self, key: str) -> tuple[float, float] | None:
    """The ends of a number's 95% interval in percent; None without an interval."""
    ends = self.intervals.get(key)
    return (100 * ends[0], 100 * ends[1]) if ends and self.has(key) else None

  def cell(self, key: str) -> Number:
    """A number as a cell of a table, in percent."""
    return percent(self.values.get(key))

  def cell_with_interval(self, key: str) -> Number:
    """A number as a cell of a table, in percent, with its interval if there is one."""
    number, ends = self.cell(key), self.intervals.get(key)
    if ends is None:
      return number
    return Number(number.value, f"{number} [{percent(ends[0])}, {percent(ends[1])}]", ends)


@dataclasses.dataclass(frozen=True)
class Rows:
  """The rows of one metric.

  Attributes:
    groups: "all", "seen" and "unseen" services -> row.
    domains: domain -> row; empty if only groups were scored.
    services: service -> row; empty if only groups were scored.
  """

  groups: Mapping[str, Row]
  domains: Mapping[str, Row] = dataclasses.field(default_factory=dict)
  services: Mapping[str, Row] = dataclasses.field(default_factory=dict)

  @classmethod
  def from_json(cls, data: Mapping[str, Any]) -> "Rows":
    """Reads what `to_json` returns.

    Raises:
      AttributeError, KeyError, TypeError, ValueError: invalid data; the message of a ValueError
        names the row.
    """
    groups = _read_rows({group: data[group] for group in GROUPS})
    return cls(groups, _read_rows(data.get("domains", {})), _read_rows(data.get("services", {})))

  def to_json(self) -> dict[str, Any]:
    """Returns the rows as docs/score-json.md describes them."""
    result: dict[str, Any] = {group: row.to_json() for group, row in self.groups.items()}
    for part, rows in (("domains", self.domains), ("services", self.services)):
      if rows:
        result[part] = {name: row.to_json() for name, row in rows.items()}
    return result

  def items(self) -> Iterator[tuple[str, str, Row]]:
    """Yields ("overall", "domain" or "service", name, row) for all rows."""
    kinds = {"overall": self.groups, "domain": self.domains, "service": self.services}
    for kind, rows in kinds.items():
      for name, row in rows.items():
        yield kind, name, row


def _read_rows(data: Mapping[str, Mapping[str, Any]]) -> dict[str, Row]:
  rows = {}
  for name, row in data.items():
    try:
      rows[name] = Row.from_json(row)
    except (AttributeError, KeyError, TypeError, ValueError) as e:
      raise ValueError(f"{name}: {type(e).__name__}: {e}") from None
  return rows
