"""What annexes' prompt formats count beside states: parts of a score report, by key."""

import types
from collections.abc import Iterator, Mapping
from typing import Any

from sgdx_t5x import annexes
from sgdx_t5x.tables import Table


def tables(report: Mapping[str, Any]) -> list[Table]:
  """Returns the tables of these parts. Args: report, of `scoring.score_report`."""
  return [table for module, part in _parts(report) for table in module.tables(part)]


def csv_rows(report: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
  """Yields (metric, group, name, key, value) of these parts. Args: as `tables`."""
  for module, part in _parts(report):
    yield from module.csv_rows(part)


def notes(report: Mapping[str, Any]) -> list[str]:
  """Returns lines without which the scores would mislead. Args: as `tables`."""
  return [line for module, part in _parts(report) for line in module.notes(part)]


def _parts(report: Mapping[str, Any]) -> Iterator[tuple[types.ModuleType, Any]]:
  for key, module in annexes.table("SCORE_TABLES").items():
    if report.get(key):
      yield annexes.load(module), report[key]
