"""Per-frame scores as JSON lines, one per frame, and their header; see docs/score-json.md."""

import dataclasses
import json
import math
import pathlib
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import not_found, opened
from sgdx_t5x.metrics.failures import KINDS, Failure
from sgdx_t5x.metrics.frames import FrameScores, Place
from sgdx_t5x.scoring.frame_table import FrameTable
from sgdx_t5x.signature import Signature

FRAMES_FORMAT = "sgdx-frames/1"  # raise the number when a reader must change
_EXPECTED = "a file written by `sgdx score --json` or --per-frame"
_HIGHEST = 1 + 1e-6  # maximum score, with room for rounding
Score = Annotated[float, msgspec.Meta(ge=0, le=_HIGHEST)]
_PLACE = ("id", "dialogue_id", "turn", "service", "seen")
_Names = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
_RESTORE = "run `sgdx score` again; the file was probably truncated"


def frame_lines(table: FrameTable) -> Iterator[str]:
  """Yields the header, then a line per frame. Args: table, what `read_table` returns."""
  scores, failures, agreement = table.scores, table.failures, table.agreement
  variants, metrics = list(scores), list(table.metrics)
  yield json.dumps(
    {
      "format": FRAMES_FORMAT,
      "signature": table.signature,
      "checksum": table.checksum,
      "variants": variants,
      "metrics": metrics,
      "failures": failures is not None,
      **({} if agreement is None else {"agreement": True}),
    }
  )
  scores_by_metric = []  # [F, K] each: per frame, a score per variant
  for metric in metrics:
    values = np.stack([by_variant.metrics[metric] for by_variant in scores.values()], axis=1)
    scores_by_metric.append(values.astype(object))
    scores_by_metric[-1][np.isnan(values)] = None  # JSON has no nan
  for place, *of_frame in zip(table.frames.places(), *scores_by_metric, strict=True):
    row: dict[str, Any] = dict(zip(_PLACE, place, strict=True))
    row["scores"] = {}
    for metric, values in zip(metrics, of_frame, strict=True):
      row["scores"][metric] = dict(zip(variants, values, strict=True))
    if agreement and not math.isnan(share := agreement.get(row["id"], math.nan)):
      row["agreement"] = share
    if failures and row["id"] in failures:
      row["failures"] = msgspec.to_builtins(failures[row["id"]])
    yield json.dumps(row)


class Head(msgspec.Struct):
  """The first line."""

  format: Literal["sgdx-frames/1"]
  signature: str
  checksum: str
  variants: _Names
  metrics: _Names
  failures: bool = False
  agreement: bool = False


def read_head(path: pathlib.Path) -> Head | None:
  """Returns the first line, or None if the file has no per-frame scores."""
  if not path.is_file():
    raise not_found(path, _EXPECTED)
  with opened(path, _EXPECTED) as file:
    try:
      return msgspec.json.decode(file.readline(), type=Head)
    except (msgspec.MsgspecError, ValueError, RecursionError):
      return None


def read_table(path: pathlib.Path, metrics: Collection[str] | None) -> FrameTable:
  """Reads a file of such lines; arguments and errors as in `score_files.read_frames`."""
  head = read_head(path)
  if head is None:
    raise SgdxError(
      f"{path}: the first line is not a header of per-frame scores",
      expected=f'"format": "{FRAMES_FORMAT}" with signature, variants, metrics',
      fix="run `sgdx score` again with --per-frame",
    )
  variants = head.variants
  metrics_read = [name for name in head.metrics if metrics is None or name in metrics]
  places: dict[str, Place] = {}
  values: list[list[float | None]] = []
  failures: dict[str, tuple[Failure, ...]] = {}
  agreement: dict[str, float] = {}
  with opened(path, _EXPECTED) as lines:
    next(lines)  # the header
    for number, line in enumerate(lines, start=2):
      row, scores = _parse_row(line, f"{path}, line {number}", variants, metrics_read)
      if row.id in places:
        raise SgdxError(
          f"{path}, line {number}: frame {row.id} occurs twice",
          expected="unique frames",
          fix="run `sgdx score` again",
        )
      places[row.id] = row.id, row.dialogue_id, row.turn, row.service, row.seen
      values.append(scores)
      if row.failures:
        failures[row.id] = row.failures
      if row.agreement is not None:
        agreement[row.id] = row.agreement
  # A file that was truncated between lines is valid JSON: the signature has the number.
  expected = Signature.parse(head.signature).fields.get("frames", str(len(places)))
  if expected != str(len(places)):
    raise SgdxError(
      f"{path}: {len(places):,} frames",
      expected=f"{expected} frames, as stated in its signature",
      fix=_RESTORE,
    )
  frames = FrameScores.of(places.values(), {})
  # NumPy reads None, a missing score, as nan.
  table = np.array(values, dtype=np.float64).reshape(len(places), len(metrics_read), len(variants))
  scores_by_variant = {}
  for v, variant in enumerate(variants):
    by_metric = dict(zip(metrics_read, table[:, :, v].T, strict=True))
    scores_by_variant[variant] = dataclasses.replace(frames, metrics=by_metric)
  return FrameTable(
    path,
    head.signature,
    head.checksum,
    scores_by_variant,
    head.metrics,
    failures=failures if head.failures else None,
    agreement=agreement if head.agreement else None,
  )


# Rows hold no cycles, so the garbage collector need not look at them.
class _Row(msgspec.Struct, gc=False):
  """A line of a frame, of which the decoder checks types and ranges."""

  id: str
  dialogue_id: str
  turn: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
  service: str
  seen: bool
  scores: Mapping[str, Mapping[str, Score | None]]
  agreement: Score | None = None
  failures: tuple[Failure, ...] = ()


# Built once: that takes longer than decoding a line.
_ROWS = msgspec.json.Decoder(_Row)


def _parse_row(
  line: bytes, location: str, variants: Collection[str], metrics: Collection[str]
) -> tuple[_Row, list[float | None]]:
  """Parses a row of per-frame scores; returns it, and its scores by metric and then variant."""
  try:
    try:
      row = _ROWS.decode(line)
    except msgspec.DecodeError:  # json also reads lone surrogates, which predictions may hold
      row = msgspec.convert(json.loads(line), _Row)
    values: list[float | None] = []
    for metric in metrics:
      by_variant = row.scores[metric]
      values += [by_variant[variant] for variant in variants]
    # The decoder cannot check names, which are in another line.
    for failure in row.failures:
      if failure.predicted.keys() != set(variants) or not failure.kinds.keys() <= set(variants):
        raise ValueError(f"failure of {failure.slot}: its variants differ from those in the header")
      if unknown := set(failure.kinds.values()).difference(KINDS):
        raise ValueError(f"unknown kind of failure {unknown.pop()!r}")
    return row, values
  except (msgspec.MsgspecError, KeyError, ValueError, RecursionError) as e:
    raise SgdxError(
      f"{location}: not a row of per-frame scores ({type(e).__name__}: {e})",
      expected="a JSON object with id, dialogue_id, turn, service, seen, scores",
      fix=_RESTORE,
    ) from None
