"""Per-frame scores of one system, as `score_files` writes and reads them."""

import dataclasses
import itertools
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
  failures: Mapping[str, Sequence[Failure]] | None = None
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
    SgdxError: other frames or variants, or other settings; or the same scores twice.
  """
  reference, positions = tables[0], []
  if len(tables) == 1:
    return reference
  for a, b in itertools.combinations(tables, 2):
    if a.checksum == b.checksum:
      raise SgdxError(
        f"{a.path} and {b.path} have the same scores in every frame",
        expected="another run of the system in each file, which makes other errors",
        fix="leave one out: it would count twice",
      )
  warnings, notes = [], []
  signature, frame_ids = Signature.parse(reference.signature), reference.frame_ids.tolist()
  for table in tables:
    changes = differences(signature, Signature.parse(table.signature), same_frames=True)
    same_variants = set(table.scores) == set(reference.scores)
    same_frames = set(table.frame_ids.tolist()) == set(frame_ids)
    if changes or not (same_variants and same_frames):
      raise SgdxError(
        f"{reference.path} and {table.path} are not runs of one system",
        expected="scores of the same frames and variants, computed with the same settings",
        available=", ".join(changes) or "other frames or variants",
        fix="score all runs in the same way, and compare a run without an equal separately",
      )
    positions.append(table.frames.positions(frame_ids))
    warnings += table.warnings
    notes += table.notes
  scores = {}
  for variant in reference.scores:
    runs = [table.scores[variant].take(x) for table, x in zip(tables, positions, strict=True)]
    scores[variant] = _joined(runs)
  agreement: dict[str, float] | None = {}
  for number, table in enumerate(tables):
    if agreement is None or table.agreement is None:
      agreement = None  # one run lacks it
    else:
      agreement |= {f"{key}#{number}": share for key, share in table.agreement.items()}
  return FrameTable(
    pathlib.Path(", ".join(str(table.path) for table in tables)),
    reference.signature,
    scores_checksum(scores),
    scores,
    reference.metrics,
    tuple(dict.fromkeys(warnings)),  # each once, in order
    agreement=agreement,
    runs=len(tables),
    notes=tuple(dict.fromkeys(notes)),
  )


def _joined(runs: Sequence[FrameScores]) -> FrameScores:
  """Concatenates the scores of the same frames in several runs.

  Runs have different turns, since a turn of several services may be scored as a whole.
  """
  first, num_runs = runs[0], len(runs)
  run_numbers = np.repeat(np.arange(num_runs, dtype=np.int32), len(first))
  turns_apart = 1 + int(first.turns.max(initial=0))
  metrics = {}
  for key in first.metrics:
    metrics[key] = np.concatenate([run.metrics[key] for run in runs])
  return FrameScores(
    np.char.add(np.tile(first.frame_ids, num_runs), np.char.mod("#%d", run_numbers)),
    np.tile(first.dialogue_ids, num_runs),
    np.tile(first.turns, num_runs) + run_numbers * turns_apart,
    np.tile(first.services, num_runs),
    np.tile(first.seen, num_runs),
    metrics,
  )


def scores_checksum(scores: Mapping[str, FrameScores]) -> str:
  """8 hex digits over variants, frames and scores, since signatures do not identify a system."""
  crc = 0
  for variant, frames in scores.items():
    crc = zlib.crc32(f"{variant} {' '.join(frames.frame_ids.tolist())}".encode(), crc)
    for metric, values in frames.metrics.items():
      crc = zlib.crc32(np.ascontiguousarray(values).tobytes(), zlib.crc32(metric.encode(), crc))
  return f"{crc:08x}"
