"""Per-frame scores as JSON lines, one per frame, and their header; see docs/score-json.md."""

import json
import math
import pathlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import not_found, opened
from sgdx_t5x.metrics.failures import KINDS, Failure
from sgdx_t5x.metrics.frames import FrameScores
from sgdx_t5x.scoring.frame_table import FrameTable
from sgdx_t5x.signature import Signature

FRAMES_FORMAT = "sgdx-frames/1"  # raise the number when a reader must change
_EXPECTED = "a file written by `sgdx score --json` or --per-frame"
_HIGHEST = 1 + 1e-6  # maximum score, with room for rounding
Score = Annotated[float, msgspec.Meta(ge=0, le=_HIGHEST)]
_RESTORE = "run `sgdx score` again; the file was probably truncated"


def frame_lines(
  signature: str,
  checksum: str,
  scores: Mapping[str, FrameScores],
  failures: Mapping[str, Sequence[Failure]] | None,
  agreement: Mapping[str, float] | None,
) -> Iterator[str]:
  """Yields the header, then a line per frame.

  Args:
    signature: the report's signature.
    checksum: see `frame_table.scores_checksum`.
    scores: variant -> scores of the frames that all variants have.
    failures: frame id -> failed slots; None leaves them out.
    agreement: frame id -> agreement; None leaves it out.
  """
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


def first_line(path: pathlib.Path) -> Any:
  """Returns the first line decoded, or None if it is not a complete JSON value."""
  _check_file(path)
  with opened(path, _EXPECTED) as file:
    try:
      return json.loads(file.readline())
    except (ValueError, RecursionError):
      return None


def _check_file(path: pathlib.Path) -> None:
  if not path.is_file():
    raise not_found(path, _EXPECTED)


def read_table(path: pathlib.Path, metrics: Collection[str] | None) -> FrameTable:
  """Reads a file of such lines; arguments and errors as in `score_files.read_frames`."""
  head = first_line(path)
  if not is_head(head):
    raise SgdxError(
      f"{path}: the first line is not a header of per-frame scores",
      expected=f'"format": "{FRAMES_FORMAT}" with signature, variants, metrics',
      fix="run `sgdx score` again with --per-frame",
    )
  variants, names = head["variants"], tuple(head["metrics"])
  metrics_read = [name for name in names if metrics is None or name in metrics]
  frames: dict[str, tuple[Any, ...]] = {}
  values: list[list[float]] = []
  failures: dict[str, tuple[Failure, ...]] = {}
  agreement: dict[str, float] = {}
  with opened(path, _EXPECTED) as lines:
    next(lines)
    for number, line in enumerate(lines, start=2):
      where = f"{path}, line {number}"
      row, scores = _parse_row(line, where, variants, metrics_read)
      if row.id in frames:
        raise SgdxError(
          f"{where}: frame {row.id} occurs twice",
          expected="unique frames",
          fix="run `sgdx score` again",
        )
      frames[row.id] = row.dialogue_id, row.turn, row.service, row.seen
      if row.failures:
        failures[row.id] = row.failures
      if row.agreement is not None:
        agreement[row.id] = row.agreement
      values.append(scores)
  _check_count(path, head["signature"], len(frames))
  table = np.array(values, dtype=np.float64).reshape(len(frames), len(metrics_read), len(variants))
  dialogues, turns, services, seen = zip(*frames.values(), strict=True) if frames else [()] * 4
  columns = (
    np.array(list(frames), dtype=str),
    np.array(dialogues, dtype=str),
    np.array(turns, dtype=np.int32),
    np.array(services, dtype=str),
    np.array(seen, dtype=bool),
  )
  by_variant = {
    variant: FrameScores(*columns, {name: table[:, m, v] for m, name in enumerate(metrics_read)})
    for v, variant in enumerate(variants)
  }
  return FrameTable(
    path,
    head["signature"],
    head["checksum"],
    by_variant,
    names,
    failures=failures if head.get("failures") else None,
    agreement=agreement if head.get("agreement") else None,
  )


def is_head(head: Any) -> bool:
  """Whether a decoded first line is the header of per-frame scores."""
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


class _Row(msgspec.Struct):
  """A line of a frame, of which the decoder checks types and ranges."""

  id: str
  dialogue_id: str
  turn: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
  service: str
  seen: bool
  scores: Mapping[str, Mapping[str, Score | None]]
  agreement: Score | None = None
  failures: tuple[Failure, ...] = ()


_ROWS = msgspec.json.Decoder(_Row)


def _parse_row(
  line: bytes, where: str, variants: Collection[str], metrics: Collection[str]
) -> tuple[_Row, list[float]]:
  """Parses a row of per-frame scores; returns it, and its scores by metric and then variant."""
  try:
    row = _ROWS.decode(line)
    values = [row.scores[metric][variant] for metric in metrics for variant in variants]
    for failure in row.failures:
      _check_failure(failure, variants)
    return row, [math.nan if x is None else x for x in values]
  except (msgspec.MsgspecError, KeyError, ValueError, RecursionError) as e:
    raise SgdxError(
      f"{where}: not a row of per-frame scores ({type(e).__name__}: {e})",
      expected="a JSON object with id, dialogue_id, turn, service, seen, scores",
      fix=_RESTORE,
    ) from None


def _check_failure(failure: Failure, variants: Collection[str]) -> None:
  kinds = failure.kinds
  if failure.predicted.keys() != set(variants) or not kinds.keys() <= set(variants):
    raise ValueError(f"failure of {failure.slot}: its variants differ from those in the header")
  if unknown := set(kinds.values()).difference(KINDS):
    raise ValueError(f"unknown kind of failure {unknown.pop()!r}")


def _check_count(path: pathlib.Path, signature: str, num_frames: int) -> None:
  """Detects files truncated between lines, which are valid JSON, by the count in the signature."""
  expected = Signature.parse(signature).fields.get("frames", str(num_frames))
  if expected != str(num_frames):
    raise SgdxError(
      f"{path}: {num_frames:,} frames",
      expected=f"{expected} frames, as stated in its signature",
      fix=_RESTORE,
    )
