"""Reads and writes the report and the per-frame scores of `sgdx score`.

Both are described in docs/score-json.md. Per-frame scores are JSON lines: a header, then one line
per frame that all variants have, in the order of the corpus. The report names the file, relative to
its own folder or absolute, with its checksum.
"""

import dataclasses
import gzip
import io
import json
import math
import pathlib
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files import atomic_write, decode_json, not_found
from sgdx_t5x.files.inputs import protect
from sgdx_t5x.metrics.failures import KINDS, Failure
from sgdx_t5x.metrics.frames import FrameScores, common_frames
from sgdx_t5x.scoring.frame_table import FrameTable, scores_checksum
from sgdx_t5x.scoring.rows import Rows
from sgdx_t5x.signature import Signature

REPORT_FORMAT = "sgdx-score/1"  # raise the number when a reader of the report must change
FRAMES_FORMAT = "sgdx-frames/1"
_REPORT: dict[str, Any] = {  # keys of a report and the types of their values
  "signature": str,
  "complete": bool,
  "warnings": list,
  "notes": list,
  "per_frame": (dict, type(None)),
  "variants": dict,
  "sgdx": dict,
  "metrics": dict,
  "predict_nothing": dict,
}
_HIGHEST = 1 + 1e-6  # maximum score, with room for rounding
_RESTORE = "run `sgdx score` again; the file was probably truncated"


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
  if frames_path is not None:
    checksum = write_frames(
      frames_path, table.signature, table.scores, table.failures, table.agreement
    )
    file = pathlib.Path(frames_path).resolve()
    folder = pathlib.Path(report_path).resolve().parent if report_path else pathlib.Path.cwd()
    # Relative if possible, so that both can be moved together.
    name = file.relative_to(folder).as_posix() if file.is_relative_to(folder) else str(file)
    report = {**report, "per_frame": {"file": name, "checksum": checksum}}
  if report_path is not None:
    with atomic_write(report_path, "--json") as out:
      out.write(json.dumps(report, indent=2, allow_nan=False) + "\n")
  return dict(report)


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
    failures: frame id -> failed slots, see `scoring.Scored.failures`; None leaves them out.
    agreement: frame id -> agreement, see `scoring.Scored.agreement`; None leaves it out.

  Returns:
    `scores_checksum`, for the report that names the file.

  Raises:
    SgdxError: the file cannot be written.
  """
  scores = common_frames(scores)
  checksum = scores_checksum(scores)
  with atomic_write(path, "--per-frame") as file:
    lines = _lines(signature, checksum, scores, failures, agreement)
    file.writelines(f"{line}\n" for line in lines)
  return checksum


def is_frames_file(path: str | pathlib.Path) -> bool:
  """Whether a file was written by `--per-frame`."""
  return _is_head(_first_line(pathlib.Path(path)))


def read_frames(path: str | pathlib.Path, metrics: Collection[str] | None = None) -> FrameTable:
  """Reads per-frame scores.

  Args:
    path: a file written by `--per-frame`, or a report of `--json` that names one.
    metrics: the metrics to keep, if the file has them; defaults to all.

  Raises:
    SgdxError: the file is missing, truncated or of another kind; a report without per-frame
      scores, or one whose file has since been overwritten by another run.
  """
  path = pathlib.Path(path)
  head = _first_line(path)
  if isinstance(head, dict) and head.get("format") == FRAMES_FORMAT:
    table = _read_table(path, metrics)
    partial = Signature.parse(table.signature).partial
    warnings = ("marked PARTIAL in its signature; the report states the reason",) if partial else ()
    return dataclasses.replace(table, warnings=warnings)
  return read_frames_of(_read_report(path, ("signature", "warnings", "per_frame")), path, metrics)


def read_frames_of(
  report: Mapping[str, Any], path: pathlib.Path, metrics: Collection[str] | None = None
) -> FrameTable:
  """Reads the per-frame scores named in the report at `path`; see `read_frames`."""
  named = report["per_frame"] or {}
  if not all(isinstance(named.get(key), str) for key in ("file", "checksum")):
    raise SgdxError(
      f"{path}: the report does not refer to per-frame scores",
      expected="a report written by `sgdx score --json OUT.json --per-frame OUT.jsonl`",
      fix="run `sgdx score` again with --per-frame",
    )
  frames = frames_path(path, named["file"])
  table = _read_table(frames, metrics)
  if table.checksum != named["checksum"]:
    raise SgdxError(
      f"{frames} and {path} were written by different runs",
      expected=f"checksum {report['per_frame']['checksum']}, as recorded in the report",
      available=f"checksum {table.checksum}",
      fix="run `sgdx score` again, with separate --json and --per-frame files for each run",
    )
  return dataclasses.replace(table, path=path, warnings=tuple(report["warnings"]))


def frames_path(report: pathlib.Path, name: str) -> pathlib.Path:
  """Returns the path of a report's per-frame scores, relative to the report; may be gzipped."""
  path = report.parent / name
  packed = path.with_name(f"{path.name}.gz")
  return packed if packed.is_file() and not path.exists() else path


def read_report(path: str | pathlib.Path) -> dict[str, Any]:
  """Reads what `sgdx score --json` wrote, and checks its JGA rows, see `rows.Rows`.

  Raises:
    SgdxError: the file is missing, of another kind, or has an invalid number.
  """
  path = pathlib.Path(path)
  report = _read_report(path, tuple(_REPORT))
  part = ""
  try:
    for part in ("sgdx", "predict_nothing"):
      for _, name, row in Rows.from_json(report[part]).items():
        if row.num_frames is None or row.num_dialogues is None:
          raise ValueError(f"{name}: the number of frames or dialogues is missing")
    part = "variants"
    for groups in report["variants"].values():
      groups["#ALL_SERVICES"].items()
  except (AttributeError, KeyError, TypeError, ValueError) as e:
    raise SgdxError(
      f"{path}: {part}: {type(e).__name__}: {e}",
      expected="scores as written by `sgdx score --json`",
      fix="run `sgdx score` again",
    ) from None
  return report


def _read_report(path: pathlib.Path, keys: Collection[str]) -> dict[str, Any]:
  """Reads a report whose required keys are `keys`."""
  expected = "a report written by `sgdx score --json`"
  if _is_head(_first_line(path)):
    raise SgdxError(
      f"{path}: per-frame scores, not a report of `sgdx score`",
      expected=expected,
      fix="pass the --json file that was written along with it",
    )
  report = decode_json(_uncompressed(path), str(path), expected, "run `sgdx score` again")
  is_report = isinstance(report, dict) and report.get("format") == REPORT_FORMAT
  if not is_report or not all(isinstance(report.get(k, 0), _REPORT[k]) for k in keys):
    raise SgdxError(
      f"{path}: not a report of `sgdx score`",
      expected=f'"format": "{REPORT_FORMAT}" with {", ".join(keys)}',
      available=", ".join(report)[:200] if isinstance(report, dict) else type(report).__name__,
      fix="run `sgdx score` again with --json and --per-frame",
    )
  return report


# --- writing -------------------------------------------------------------------------------


def _lines(
  signature: str,
  checksum: str,
  scores: Mapping[str, FrameScores],
  failures: Mapping[str, Sequence[Failure]] | None,
  agreement: Mapping[str, float] | None,
) -> Iterator[str]:
  frames = next(iter(scores.values()))
  variants, metrics = list(scores), list(frames.metrics)
  yield json.dumps(
    {
      "format": FRAMES_FORMAT,
      "signature": signature,
      "checksum": checksum,
      "variants": variants,
      "metrics": metrics,
      "failures": failures is not None,
      **({} if agreement is None else {"agreement": True}),
    }
  )
  columns = [
    zip(*(scores[v].metrics[metric].tolist() for v in variants), strict=True) for metric in metrics
  ]
  names = (frames.frame_ids, frames.dialogue_ids, frames.turns, frames.services, frames.seen)
  for *name, values in zip(*(x.tolist() for x in names), zip(*columns, strict=True), strict=True):
    row = dict(zip(("id", "dialogue_id", "turn", "service", "seen"), name, strict=True))
    row["scores"] = {
      metric: {v: None if math.isnan(x) else x for v, x in zip(variants, row_values, strict=True)}
      for metric, row_values in zip(metrics, values, strict=True)
    }
    if agreement and not math.isnan(share := agreement.get(row["id"], math.nan)):
      row["agreement"] = share
    if failures and row["id"] in failures:
      row["failures"] = [failure_json(failure) for failure in failures[row["id"]]]
    yield json.dumps(row)


def failure_json(failure: Failure) -> dict[str, Any]:
  """Returns a failure as stored in a row. (`dataclasses.asdict` takes ten times as long.)"""
  return {name: getattr(failure, name) for name in Failure.__slots__}


# --- reading -------------------------------------------------------------------------------


def _first_line(path: pathlib.Path) -> Any:
  """Returns the first line decoded, or None if it is not a complete JSON value."""
  _check_file(path)
  with _opened(path) as file:
    try:
      return json.loads(file.readline())
    except (ValueError, RecursionError):
      return None


def _check_file(path: pathlib.Path) -> None:
  if not path.is_file():
    raise not_found(path, "a file written by `sgdx score --json` or --per-frame")
  protect([path])


def _opened(path: pathlib.Path) -> IO[bytes]:
  return io.BytesIO(_uncompressed(path)) if path.suffix == ".gz" else path.open("rb")


def _uncompressed(path: pathlib.Path) -> bytes:
  """Returns the contents of a file, decompressed if its name ends in .gz."""
  content = path.read_bytes()
  if path.suffix != ".gz":
    return content
  try:
    return gzip.decompress(content)
  except (OSError, EOFError, zlib.error) as e:
    raise SgdxError(
      f"{path}: not a complete gzip file ({e})",
      expected="a gzip-compressed output file of `sgdx score`",
      fix="compress it again, or pass the uncompressed file",
    ) from None


def _read_table(path: pathlib.Path, metrics: Collection[str] | None) -> FrameTable:
  head = _first_line(path)
  if not _is_head(head):
    raise SgdxError(
      f"{path}: the first line is not a header of per-frame scores",
      expected=f'"format": "{FRAMES_FORMAT}" with signature, variants, metrics',
      fix="run `sgdx score` again with --per-frame",
    )
  variants, names = head["variants"], tuple(head["metrics"])
  kept = [name for name in names if metrics is None or name in metrics]
  frames: dict[str, tuple[Any, ...]] = {}
  values: list[list[float]] = []
  failures: dict[str, tuple[Failure, ...]] = {}
  agreement: dict[str, float] = {}
  with _opened(path) as lines:
    next(lines)
    for number, line in enumerate(lines, start=2):
      where = f"{path}, line {number}"
      key, frame, scores, failed, agreed = _parse_row(line, where, variants, kept)
      if key in frames:
        raise SgdxError(
          f"{where}: frame {key} occurs twice",
          expected="unique frames",
          fix="run `sgdx score` again",
        )
      frames[key] = frame
      if failed:
        failures[key] = failed
      if agreed is not None:
        agreement[key] = agreed
      values.append(scores)
  _check_count(path, head["signature"], len(frames))
  table = np.array(values, dtype=np.float64).reshape(len(frames), len(kept), len(variants))
  dialogues, turns, services, seen = zip(*frames.values(), strict=True) if frames else [()] * 4
  columns = (
    np.array(list(frames), dtype=str),
    np.array(dialogues, dtype=str),
    np.array(turns, dtype=np.int32),
    np.array(services, dtype=str),
    np.array(seen, dtype=bool),
  )
  scores = {
    variant: FrameScores(*columns, {name: table[:, m, v] for m, name in enumerate(kept)})
    for v, variant in enumerate(variants)
  }
  return FrameTable(
    path,
    head["signature"],
    head["checksum"],
    scores,
    names,
    failures=failures if head.get("failures") else None,
    agreement=agreement if head.get("agreement") else None,
  )


def _is_head(head: Any) -> bool:
  return (
    isinstance(head, dict)
    and head.get("format") == FRAMES_FORMAT
    and isinstance(head.get("signature"), str)
    and isinstance(head.get("checksum"), str)
    and all(
      isinstance(head.get(key), list) and head[key] and all(isinstance(x, str) for x in head[key])
      for key in ("variants", "metrics")
    )
  )


def _parse_row(
  line: bytes, where: str, variants: Collection[str], metrics: Collection[str]
) -> tuple[str, tuple[Any, ...], list[float], tuple[Failure, ...], float | None]:
  """Parses a row of per-frame scores.

  Returns (frame id, (dialogue, turn, service, seen), scores by metric and then variant, failures,
  agreement).
  """
  try:
    row = json.loads(line)
    frame = row["dialogue_id"], int(row["turn"]), row["service"], bool(row["seen"])
    values = [row["scores"][metric][variant] for metric in metrics for variant in variants]
    scores = [math.nan if x is None else float(x) for x in values]
    if not all(isinstance(x, str) for x in (row["id"], frame[0], frame[2])):
      raise TypeError("id, dialogue_id and service must be strings")
    agreed = row.get("agreement")
    agreed = None if agreed is None else float(agreed)
    if any(x < 0 or x > _HIGHEST for x in scores) or not 0 <= (agreed or 0) <= _HIGHEST:
      raise ValueError("a score outside the range 0 to 1")
    if not 0 <= frame[1] < 2**31:
      raise ValueError(f"invalid turn {frame[1]}")
    failures = tuple(_failure(variants, **x) for x in row.get("failures", ()))
    return row["id"], frame, scores, failures, agreed
  except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as e:
    raise SgdxError(
      f"{where}: not a row of per-frame scores ({type(e).__name__}: {e})",
      expected="a JSON object with id, dialogue_id, turn, service, seen, scores",
      fix=_RESTORE,
    ) from None


def _failure(
  variants: Collection[str],
  slot: str,
  gold: Sequence[str],
  predicted: Mapping[str, str | None],
  kinds: Mapping[str, str],
) -> Failure:
  if not isinstance(slot, str):
    raise TypeError("a slot must be a string")
  if not (set(predicted) == set(variants) and kinds.keys() <= set(variants)):
    raise ValueError(f"failure of {slot}: its variants differ from those in the header")
  if unknown := set(kinds.values()).difference(KINDS):
    raise ValueError(f"unknown kind of failure {unknown.pop()!r}")
  return Failure(slot, tuple(gold), predicted, kinds)


def _check_count(path: pathlib.Path, signature: str, num_frames: int) -> None:
  """Detects files truncated between lines, which are valid JSON, by the count in the signature."""
  expected = Signature.parse(signature).fields.get("frames", str(num_frames))
  if expected != str(num_frames):
    raise SgdxError(
      f"{path}: {num_frames:,} frames",
      expected=f"{expected} frames, as stated in its signature",
      fix=_RESTORE,
    )
