"""Reads and writes checks: the report, and the per-frame counts that `sgdx checkdst diff` compares.

Per-frame counts are JSON lines, described in docs/score-json.md: a header, then a line per frame of
each set.
"""

import dataclasses
import itertools
import json
import pathlib
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import decode_json, decode_lines, read_input
from sgdx_t5x.files.writing import atomic_write
from sgdx_t5x.metrics import FrameScores
from sgdx_t5x.papers.checkdst.checks.check import Checked, CheckedSet, SetFailure
from sgdx_t5x.papers.checkdst.checks.report import FORMAT
from sgdx_t5x.papers.checkdst.checks.tables import layout, legend
from sgdx_t5x.papers.checkdst.metrics_perturbed import COUNTS
from sgdx_t5x.papers.checkdst.ratios import Counts
from sgdx_t5x.scoring import score_files

FRAMES_FORMAT = "sgdx-check-frames/1"
_AGAIN = "run `sgdx checkdst check` again"
_REPORT_OF_CHECK = "a report written by `sgdx checkdst check --json`"


@dataclasses.dataclass(frozen=True)
class CheckTable:
  """A check read from disk: its report and per-frame counts.

  Attributes:
    path: path of the report.
    report: what `checks.check_report` returned.
    sets: label -> set.
  """

  path: pathlib.Path
  report: Mapping[str, Any]
  sets: Mapping[str, CheckedSet]


def save(
  report: Mapping[str, Any],
  checked: Checked,
  report_path: str | pathlib.Path | None,
  frames_path: str | pathlib.Path | None,
) -> dict[str, Any]:
  """Writes a report and its per-frame counts. Returns the report, which names their file.

  Args:
    report: from `checks.check_report`.
    checked: the check that it reports.
    report_path: where to write the report, if at all.
    frames_path: where to write the per-frame counts, if at all.

  Raises:
    SgdxError: a file cannot be written.
  """
  if frames_path is not None:
    lines = list(_lines(checked))
    checksum = f"{zlib.crc32(''.join(lines).encode()):08x}"
    head = {
      "format": FRAMES_FORMAT,
      "signature": checked.signature,
      "checksum": checksum,
      "counts": list(COUNTS),
    }
    with atomic_write(frames_path, "--per-frame") as file:
      file.write(json.dumps(head) + "\n")
      file.writelines(lines)
    name = score_files.name_in_report(frames_path, report_path)
    report = {**report, "per_frame": {"file": name, "checksum": checksum}}
  return score_files.save(report, None, report_path, None)


def read_report(path: str | pathlib.Path) -> dict[str, Any]:
  """Reads what `sgdx checkdst check --json` wrote. Raises SgdxError if it is something else."""
  expected = f'{_REPORT_OF_CHECK}, "format": "{FORMAT}"'
  report = decode_json(read_input(path, expected), str(path), expected, _AGAIN)
  try:
    if report["format"] != FORMAT:
      raise ValueError(f"format {report['format']}")
    layout(report), legend(report), report["per_frame"], report["warnings"], report["notes"]
  except (AttributeError, KeyError, TypeError, ValueError) as e:
    raise SgdxError(
      f"{path}: not a report of `sgdx checkdst check`: {type(e).__name__}: {e}",
      expected=expected,
      fix="pass the --json file, not that of --per-frame, or check again",
    ) from None
  return report


def read_check(path: str | pathlib.Path) -> CheckTable:
  """Reads a report and the per-frame counts that it names.

  Raises:
    SgdxError: no report, a report without per-frame counts, or a counts file of another run.
  """
  path = pathlib.Path(path)
  report = read_report(path)
  per_frame = report["per_frame"]
  if not per_frame:
    raise SgdxError(
      f"{path}: the report does not refer to per-frame counts",
      expected="a report written by `sgdx checkdst check --json OUT.json --per-frame OUT.jsonl`",
      fix="run `sgdx checkdst check` again with --per-frame",
    )
  file = score_files.frames_path(path, per_frame["file"])
  expected = "a file written by `sgdx checkdst check --per-frame`"
  head, _, content = read_input(file, expected).partition(b"\n")
  content = content.replace(b"\r\n", b"\n")  # as git writes it on Windows
  checksum = f"{zlib.crc32(content):08x}"
  if checksum != per_frame["checksum"]:
    raise SgdxError(
      f"{file} and {path} were written by different runs",
      expected=f"checksum {per_frame['checksum']}, as recorded in the report",
      available=f"checksum {checksum}",
      fix=f"{_AGAIN}, with separate files for each run",
    )
  try:
    names = tuple(json.loads(head)["counts"])
    by_label: dict[str, list[list[Any]]] = {label: [] for label in report["sets"]}
    for _, (label, *row) in decode_lines(content, str(file), expected, _AGAIN, first=2):
      by_label[label].append(row)
    sets = {key: _set(report["sets"][key], rows, names) for key, rows in by_label.items()}
    return CheckTable(path, report, sets)
  except (KeyError, TypeError, ValueError) as e:
    location = f"{file}: {type(e).__name__}: {e}"
    raise SgdxError(location, expected=expected, fix=_AGAIN) from None


# --- parts ---------------------------------------------------------------------------------


def _lines(checked: Checked) -> Iterator[str]:
  for label, checked_set in checked.sets.items():
    counts = np.round(checked_set.counts.values.T, 12).tolist()
    for place, numbers in zip(checked_set.frames.places(), counts, strict=True):
      compact = [int(x) if x == int(x) else x for x in numbers]
      row = [label, *place, compact]
      if checked_set.failures and place[0] in checked_set.failures:
        row.append(checked_set.failures[place[0]])
      yield json.dumps(row, separators=(",", ":")) + "\n"


def _set(
  set_report: Mapping[str, Any], rows: list[list[Any]], names: tuple[str, ...]
) -> CheckedSet:
  places, counts = [], []
  failures: dict[str, list[SetFailure]] = {}
  for key, dialogue, turn, service, is_seen, numbers, *failed in rows:
    places.append((key, dialogue, turn, service, is_seen))
    counts.append(numbers)
    if failed:
      failures[key] = list(itertools.starmap(SetFailure, failed[0]))
  frames = FrameScores.of(places, {})
  values = np.array(counts, dtype=np.float64).reshape(len(rows), len(names)).T
  return CheckedSet(
    set_report["set"],
    set_report["variant"],
    next(iter(set_report["kinds"]), ""),
    set_report["compared_with"] or "",
    frames,
    Counts(names, values, frames.dialogue_ids),
    {key: set_report[key] for key in ("corpus", "checksum", "steps")},
    failures,
  )
