"""Reads and writes checks: the report, and the per-frame counts that `sgdx checkdst diff` compares.

Per-frame counts are JSON lines, described in docs/score-json.md: a header, then a line per frame of
each set.
"""

import dataclasses
import json
import pathlib
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import decode_json, decode_lines, read_input
from sgdx_t5x.files.writing import atomic_write
from sgdx_t5x.metrics import KINDS, FrameScores
from sgdx_t5x.metrics.ratios import Counts
from sgdx_t5x.papers.checkdst.checks.check import Checked, CheckedSet, SetFailure
from sgdx_t5x.papers.checkdst.checks.report import FORMAT
from sgdx_t5x.papers.checkdst.checks.tables import layout, legend
from sgdx_t5x.papers.checkdst.metrics_perturbed import COUNTS
from sgdx_t5x.scoring import score_files

FRAMES_FORMAT = "sgdx-check-frames/1"
_REPORT: dict[str, Any] = {
  "signature": str,
  "complete": bool,
  "warnings": list,
  "notes": list,
  "per_frame": (dict, type(None)),
  "sets": dict,
}
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

  @property
  def signature(self) -> str:
    """The signature of the check."""
    return self.report["signature"]


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
      "failures": any(found.failures is not None for found in checked.sets.values()),
    }
    with atomic_write(frames_path, "--per-frame") as file:
      file.write(json.dumps(head) + "\n")
      file.writelines(lines)
    name = score_files.name_in_report(frames_path, report_path)
    report = {**report, "per_frame": {"file": name, "checksum": checksum}}
  if report_path is not None:
    with atomic_write(report_path, "--json") as out:
      out.write(json.dumps(report, indent=2, allow_nan=False) + "\n")
  return dict(report)


def read_report(path: str | pathlib.Path) -> dict[str, Any]:
  """Reads what `sgdx checkdst check --json` wrote. Raises SgdxError if it is something else."""
  text = read_input(path, _REPORT_OF_CHECK)
  if FRAMES_FORMAT.encode() in text[:200]:
    raise SgdxError(
      f"{path}: per-frame counts of `sgdx checkdst check`",
      expected=_REPORT_OF_CHECK,
      fix="pass the --json file that was written along with it",
    )
  expected = f'"format": "{FORMAT}", as written by `sgdx checkdst check --json`'
  report = decode_json(text, str(path), expected, _AGAIN)
  is_report = isinstance(report, dict) and report.get("format") == FORMAT
  if not is_report or not all(isinstance(report.get(k, 0), t) for k, t in _REPORT.items()):
    raise SgdxError(f"{path}: not a report of `sgdx checkdst check`", expected=expected, fix=_AGAIN)
  try:
    for label, found in report["sets"].items():
      _ = (label, found["set"], found["variant"], found["kinds"], found["compared_with"])
      _ = (found["checksum"], found["steps"])
    layout(report), legend(report)
  except (AttributeError, KeyError, TypeError, ValueError) as e:
    raise SgdxError(
      f"{path}: sets: {type(e).__name__}: {e}", expected=expected, fix=_AGAIN
    ) from None
  return report


def read_check(path: str | pathlib.Path) -> CheckTable:
  """Reads a report and the per-frame counts that it names.

  Raises:
    SgdxError: no report, a report without per-frame counts, or a counts file of another run.
  """
  path = pathlib.Path(path)
  report = read_report(path)
  named = report["per_frame"]
  if not named or not all(isinstance(named.get(key), str) for key in ("file", "checksum")):
    raise SgdxError(
      f"{path}: the report does not refer to per-frame counts",
      expected="a report written by `sgdx checkdst check --json OUT.json --per-frame OUT.jsonl`",
      fix="run `sgdx checkdst check` again with --per-frame",
    )
  file = score_files.frames_path(path, named["file"])
  line, _, rest = read_input(file, "a file written by `sgdx checkdst check --per-frame`").partition(
    b"\n"
  )
  head = decode_json(line, f"{file}, line 1", "the header line", _AGAIN)
  checksum = f"{zlib.crc32(rest):08x}"
  if not isinstance(head, dict) or head.get("format") != FRAMES_FORMAT:
    raise SgdxError(
      f"{file}: not a file of per-frame counts", expected=f'"format": "{FRAMES_FORMAT}"', fix=_AGAIN
    )
  if checksum != named["checksum"] or head.get("counts") != list(COUNTS):
    raise SgdxError(
      f"{file} and {path} were written by different runs",
      expected=f"checksum {named['checksum']}, as recorded in the report",
      available=f"checksum {checksum}",
      fix=f"{_AGAIN}, with separate files for each run",
    )
  return CheckTable(path, report, _sets(report, rest, file, head.get("failures") is True))


# --- parts ---------------------------------------------------------------------------------


def _lines(checked: Checked) -> Iterator[str]:
  for label, found in checked.sets.items():
    frames = found.frames
    columns = (frames.frame_ids, frames.dialogue_ids, frames.turns, frames.services, frames.seen)
    counts = np.round(found.counts.values.T, 12).tolist()
    for *place, numbers in zip(*(x.tolist() for x in columns), counts, strict=True):
      shown = [int(x) if x == int(x) else x for x in numbers]
      row = [label, *place, shown]
      if found.failures and place[0] in found.failures:
        row.append(found.failures[place[0]])
      yield json.dumps(row, separators=(",", ":")) + "\n"


def _sets(
  report: Mapping[str, Any], lines: bytes, file: pathlib.Path, with_failures: bool
) -> dict[str, CheckedSet]:
  by_label: dict[str, list[Any]] = {label: [] for label in report["sets"]}
  try:
    for _, (label, *row) in decode_lines(lines, str(file), "one list per line", _AGAIN, first=2):
      by_label[label].append(row)
    return {
      label: _set(label, report["sets"][label], rows, with_failures)
      for label, rows in by_label.items()
    }
  except (KeyError, OverflowError, TypeError, ValueError) as e:
    raise SgdxError(
      f"{file}: {type(e).__name__}: {e}",
      expected="lines written by `sgdx checkdst check --per-frame`",
      fix=_AGAIN,
    ) from None


def _set(label: str, about: Mapping[str, Any], rows: list[Any], with_failures: bool) -> CheckedSet:
  ids, dialogues, turns, services, seen, counts = zip(*(row[:6] for row in rows), strict=True)
  frames = FrameScores(
    np.array(ids, dtype=str),
    np.array(dialogues, dtype=str),
    np.array(turns, dtype=np.int32),
    np.array(services, dtype=str),
    np.array(seen, dtype=bool),
    {},
  )
  values = np.array(counts, dtype=np.float64).reshape(len(rows), len(COUNTS)).T
  return CheckedSet(
    label,
    about["set"],
    about["variant"],
    tuple(about["kinds"]),
    about["compared_with"] or "",
    frames,
    Counts(COUNTS, values, frames.dialogue_ids),
    {key: about[key] for key in ("corpus", "checksum", "steps")},
    {row[0]: tuple(map(_failure, row[6])) for row in rows if row[6:]} if with_failures else None,
  )


def _failure(data: Any) -> SetFailure:
  slot, gold, before, predicted, kind = data
  texts = (slot, *gold, *before, "" if predicted is None else predicted)
  if kind not in KINDS or not all(isinstance(text, str) for text in texts):
    raise ValueError(f"malformed failure of {slot!r}")
  return SetFailure(slot, tuple(gold), tuple(before), predicted, kind)
