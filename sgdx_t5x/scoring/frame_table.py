"""Per-frame scores of one system, as `score_files` writes and reads them."""

import dataclasses
import pathlib
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics.failures import Failure
from sgdx_t5x.metrics.frames import FrameScores
from sgdx_t5x.signature import Signature, differences


@dataclasses.dataclass(frozen=True)
class FrameTable:
  """Per-frame scores of one system.

  Attributes:
    path: where they were read from: the file, or the report that names it.
    signature: signature of the `sgdx score` run that wrote them.
    checksum: see `scores_checksum`.
    scores: variant -> scores, all of the same frames.
    metrics: names of all metrics in the file, read or not.
    warnings: what makes them PARTIAL, a line each.
    failures: frame id -> failed slots; None for files of versions that did not store them.
    agreement: frame id -> agreement of v1 to v5; None for files of versions that did not store
      it, and if one of the five is absent.
    runs: how many runs were `pooled`.
    notes: what else a reader of the scores should know.
  """

  path: pathlib.Path
  signature: str
  checksum: str
  scores: Mapping[str, FrameScores]
  metrics: tuple[str, ...]
  warnings: tuple[str, ...] = ()
  failures: Mapping[str, tuple[Failure, ...]] | None = None
  agreement: Mapping[str, float] | None = None
  runs: int = 1
  notes: tuple[str, ...] = ()

  def __repr__(self) -> str:
    return f"<FrameTable {self.path}: {', '.join(self.scores)}, {len(self.frames):,} frames>"

  @property
  def frames(self) -> FrameScores:
    """Scores of any variant, for frames, dialogues and services, in the order of the file."""
    return next(iter(self.scores.values()))

  @property
  def frame_ids(self) -> np.ndarray:
    """[F] str, in the order of the file."""
    return self.frames.frame_ids


def pooled(tables: Sequence[FrameTable]) -> FrameTable:
  """Returns several runs of a system, such as its seeds, as one, with each frame once per run.

  Means over frames are then means over the runs. Dialogues keep their ids: a bootstrap sample draws
  a dialogue in all runs or in none. The frames of the run number N have "#N" after their ids.

  Args:
    tables: a table per run, at least one, of the same frames and variants; a single one is
      returned as it is.

  Raises:
    SgdxError: other frames or variants, or other settings.
  """
  first, places = tables[0], []
  if len(tables) == 1:
    return first
  signature = Signature.parse(first.signature)
  for table in tables:
    other = differences(signature, Signature.parse(table.signature), same_frames=True)
    position = {key: i for i, key in enumerate(table.frame_ids.tolist())}
    if other or set(table.scores) != set(first.scores) or position.keys() != set(first.frame_ids):
      raise SgdxError(
        f"{first.path} and {table.path} are not runs of one system",
        expected="scores of the same frames and variants, computed with the same settings",
        available=", ".join(other) or "other frames or variants",
        fix="score all runs in the same way, and compare a run without an equal separately",
      )
    places.append(np.array([position[key] for key in first.frame_ids.tolist()], dtype=np.intp))
  scores = {
    variant: _joined([t.scores[variant].take(x) for t, x in zip(tables, places, strict=True)])
    for variant in first.scores
  }
  agreement: dict[str, float] | None = {}
  for number, table in enumerate(tables):
    if agreement is None or table.agreement is None:
      agreement = None  # one run lacks it
    else:
      agreement |= {f"{key}#{number}": share for key, share in table.agreement.items()}
  return FrameTable(
    pathlib.Path(", ".join(str(table.path) for table in tables)),
    first.signature,
    scores_checksum(scores),
    scores,
    first.metrics,
    tuple(dict.fromkeys(line for table in tables for line in table.warnings)),
    agreement=agreement,
    runs=len(tables),
    notes=tuple(dict.fromkeys(line for table in tables for line in table.notes)),
  )


def _joined(runs: Sequence[FrameScores]) -> FrameScores:
  """Concatenates the scores of the same frames in several runs.

  Runs have different turns, since a turn of several services may be scored as a whole.
  """
  ids = [np.char.add(run.frame_ids, f"#{number}") for number, run in enumerate(runs)]
  apart = 1 + int(runs[0].turns.max(initial=0))
  return FrameScores(
    np.concatenate(ids),
    np.concatenate([run.dialogue_ids for run in runs]),
    np.concatenate([run.turns + number * apart for number, run in enumerate(runs)]),
    np.concatenate([run.services for run in runs]),
    np.concatenate([run.seen for run in runs]),
    {key: np.concatenate([run.metrics[key] for run in runs]) for key in runs[0].metrics},
  )


def in_order_of(frames: FrameScores, by_frame: Mapping[str, float] | None) -> np.ndarray:
  """Returns each frame's number, nan where there is none: [F] float."""
  by_frame = by_frame or {}
  return np.array([by_frame.get(key, np.nan) for key in frames.frame_ids.tolist()], dtype=float)


def scores_checksum(scores: Mapping[str, FrameScores]) -> str:
  """8 hex digits over variants, frames and scores, since signatures do not identify a system."""
  crc = 0
  for variant, frames in scores.items():
    crc = zlib.crc32(f"{variant} {' '.join(frames.frame_ids.tolist())}".encode(), crc)
    for metric, values in frames.metrics.items():
      crc = zlib.crc32(np.ascontiguousarray(values).tobytes(), zlib.crc32(metric.encode(), crc))
  return f"{crc:08x}"
