"""Reads and writes the report and the per-frame scores of `sgdx score`.

Both are described in docs/score-json.md. Per-frame scores are JSON lines: a header, then one line
per frame that all variants have, in the order of the corpus. The report names the file, relative to
its own folder or absolute, with its checksum.
"""

import dataclasses
import json
import os
import pathlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec

from sgdx_t5x.arguments import PATH, checked_arguments
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.files.reading import converted, decode_json, read_input
from sgdx_t5x.files.writing import atomic_write
from sgdx_t5x.metrics.failures import Failure
from sgdx_t5x.metrics.frames import FrameScores, common_frames
from sgdx_t5x.scoring.frame_lines import frame_lines, read_head, read_table
from sgdx_t5x.scoring.frame_table import FrameTable, scores_checksum
from sgdx_t5x.scoring.rows import Rows
from sgdx_t5x.scoring.score_tables import annex_notes, provenance_tables
from sgdx_t5x.signature import Signature

REPORT_FORMAT = "sgdx-score/1"  # raise the number when a reader of the report must change


class _Head(msgspec.Struct):
  """What a report says of its per-frame scores."""

  format: Literal["sgdx-score/1"]  # REPORT_FORMAT
  signature: str
  warnings: list[str]
  per_frame: dict[str, Any] | None


class _Report(_Head):
  complete: bool
  notes: list[str]
  variants: dict[str, dict[str, Any]]
  sgdx: dict[str, Any]
  metrics: dict[str, Any]
  predict_nothing: dict[str, Any]


def save(
  report: Mapping[str, Any],
  table: FrameTable | None,
  report_path: str | pathlib.Path | None,
  frames_path: str | pathlib.Path | None,
) -> dict[str, Any]:
  """Writes a report and its per-frame scores.

  Args:
    report: from `scoring.score_report`.
    table: its per-frame scores; None if they are not written.
    report_path: where to write the report, if at all.
    frames_path: where to write the per-frame scores, if at all.

  Returns:
    The report, which names the file of per-frame scores.

  Raises:
    SgdxError: a file cannot be written.
  """
  if frames_path is not None and table is not None:
    checksum = write_frames(
      frames_path, table.signature, table.scores, table.failures, table.agreement
    )
    name = name_in_report(frames_path, report_path)
    report = {**report, "per_frame": {"file": name, "checksum": checksum}}
  if report_path is not None:
    with atomic_write(report_path, "--json") as out:
      out.write(json.dumps(report, indent=2, allow_nan=False) + "\n")
  return dict(report)


@checked_arguments(path=PATH, signature=str, scores=Mapping, failures=Mapping, agreement=Mapping)
def write_frames(
  path: str | pathlib.Path,
  signature: str,
  scores: Mapping[str, FrameScores],
  failures: Mapping[str, Sequence[Failure]] | None = None,
  agreement: Mapping[str, float] | None = None,
) -> str:
  """Writes the frames that all variants have.

  Args:
    path: the file.
    signature: the report's signature.
    scores: variant -> scores.
    failures: frame id -> failed slots, see `scoring.Scored.failures`.
    agreement: frame id -> agreement, see `scoring.Scored.agreement`.

  Returns:
    `scores_checksum`, for the report that names the file.

  Raises:
    SgdxError: no scores, an unwritable file.
  """
  if not scores:
    raise UsageError(
      "no scores", expected="variant -> scores", fix="pass those of `score_predictions`"
    )
  scores = common_frames(scores)
  table = FrameTable(
    pathlib.Path(path),
    signature,
    scores_checksum(scores),
    scores,
    tuple(next(iter(scores.values())).metrics),
    failures=failures,
    agreement=agreement,
  )
  with atomic_write(path, "--per-frame") as file:
    file.writelines(f"{line}\n" for line in frame_lines(table))
  return table.checksum


def is_frames_file(path: str | pathlib.Path) -> bool:
  """Whether a file was written by `--per-frame`."""
  return read_head(pathlib.Path(path)) is not None


@checked_arguments(path=PATH, metrics=Collection)
def read_frames(path: str | os.PathLike, metrics: Collection[str] | None = None) -> FrameTable:
  """Reads per-frame scores.

  Args:
    path: a file written by `--per-frame`, or a report of `--json` that names one.
    metrics: the metrics to keep, if the file has them; defaults to all.

  Raises:
    SgdxError: a file that is missing, truncated, of another kind or of another run.
  """
  path = pathlib.Path(path)
  if is_frames_file(path):
    table = read_table(path, metrics)
    partial = Signature.parse(table.signature).partial
    warnings = ("marked PARTIAL in its signature; the report states the reason",) if partial else ()
    return dataclasses.replace(table, warnings=warnings)
  return read_frames_of(_read_report(path, _Head), path, metrics)


def read_frames_of(
  report: Mapping[str, Any], path: pathlib.Path, metrics: Collection[str] | None = None
) -> FrameTable:
  """Reads the per-frame scores named in the report at `path`; see `read_frames`."""
  reference = report["per_frame"] or {}
  if not all(isinstance(reference.get(key), str) for key in ("file", "checksum")):
    raise SgdxError(
      f"{path}: the report does not refer to per-frame scores",
      expected="a report written by `sgdx score --json OUT.json --per-frame OUT.jsonl`",
      fix="run `sgdx score` again with --per-frame",
    )
  frames = frames_path(path, reference["file"])
  table = read_table(frames, metrics)
  if table.checksum != reference["checksum"]:
    raise SgdxError(
      f"{frames} and {path} were written by different runs",
      expected=f"checksum {report['per_frame']['checksum']}, as recorded in the report",
      available=f"checksum {table.checksum}",
      fix="run `sgdx score` again, with separate --json and --per-frame files for each run",
    )
  notes = tuple(_read_part(path, "what was also counted", annex_notes, report))
  return dataclasses.replace(table, path=path, warnings=tuple(report["warnings"]), notes=notes)


def name_in_report(frames: str | pathlib.Path, report: str | pathlib.Path | None) -> str:
  """Returns how a report, or one in the working directory, names its per-frame file.

  Relative if possible, so that both can be moved together; see `frames_path`.
  """
  file = pathlib.Path(frames).resolve()
  folder = pathlib.Path(report).resolve().parent if report else pathlib.Path.cwd()
  return (file.relative_to(folder) if file.is_relative_to(folder) else file).as_posix()


def frames_path(report: pathlib.Path, name: str) -> pathlib.Path:
  """Returns the path of a report's per-frame scores, relative to the report; may be compressed.

  A report that is a symbolic link was written, or is read, with its scores where the link leads.
  """
  for folder in (report.parent, report.resolve().parent):
    for suffix in ("", ".xz", ".gz"):
      path = folder / f"{name}{suffix}"
      if path.is_file():
        return path
  return report.parent / name


def read_report(path: str | pathlib.Path) -> dict[str, Any]:
  """Reads what `sgdx score --json` wrote, and checks its JGA rows, see `rows.Rows`.

  Raises:
    SgdxError: the file is missing, of another kind, or has an invalid number.
  """
  path = pathlib.Path(path)
  report = _read_report(path, _Report)
  for part in ("sgdx", "predict_nothing"):
    _read_part(path, part, _check_rows, report[part])
  for groups in report["variants"].values():
    _read_part(path, "variants", lambda groups: groups["#ALL_SERVICES"].items(), groups)
  for read in (provenance_tables, annex_notes):
    _read_part(path, "what was also counted", read, report)
  return report


def _check_rows(rows: Mapping[str, Any]) -> None:
  for _, name, row in Rows.from_json(rows).items():
    if row.num_frames is None or row.num_dialogues is None:
      raise ValueError(f"{name}: the number of frames or dialogues is missing")


def _read_part(path: pathlib.Path, part: str, read: Callable[[Any], Any], data: Any) -> Any:
  """Returns what `read` makes of a part of a report. Raises SgdxError if it is malformed."""
  try:
    return read(data)
  except (AttributeError, LookupError, TypeError, ValueError) as e:
    raise SgdxError(
      f"{path}: {part}: {type(e).__name__}: {e}",
      expected="scores as written by `sgdx score --json`",
      fix="run `sgdx score` again",
    ) from None


def _read_report(path: pathlib.Path, kind: type[_Head]) -> dict[str, Any]:
  """Reads a report that has at least the keys of `kind`."""
  expected = f'a report written by `sgdx score --json`, "format": "{REPORT_FORMAT}"'
  if is_frames_file(path):  # easily confused, as both are written by one command
    raise SgdxError(
      f"{path}: per-frame scores, not a report of `sgdx score`",
      expected=expected,
      fix="pass the --json file that was written along with it",
    )
  fix = "run `sgdx score` again with --json and --per-frame"
  report: dict[str, Any] = decode_json(read_input(path, expected), str(path), expected, fix)
  converted(report, kind, f"{path}: not a report of `sgdx score`", expected, fix)
  return report
