"""Per-frame scores of one system, as `score_files` writes and reads them."""

import dataclasses
import pathlib
import zlib
from collections.abc import Mapping

import numpy as np

from sgdx_t5x.metrics.failures import Failure
from sgdx_t5x.metrics.frames import FrameScores


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
  """

  path: pathlib.Path
  signature: str
  checksum: str
  scores: Mapping[str, FrameScores]
  metrics: tuple[str, ...]
  warnings: tuple[str, ...] = ()
  failures: Mapping[str, tuple[Failure, ...]] | None = None
  agreement: Mapping[str, float] | None = None

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
