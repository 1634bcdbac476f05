"""Scores as an object, for notebooks and programs: the front door `sgdx_t5x.score`."""

import dataclasses
import functools
import os
from collections.abc import Collection, Mapping
from typing import Any

from sgdx_t5x.arguments import PATH, check_choice, checked_arguments
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.errors import require
from sgdx_t5x.metrics.bootstrap import NUM_BOOTSTRAP_SAMPLES
from sgdx_t5x.prompts import DEFAULT
from sgdx_t5x.prompts.protocol import PromptFormat
from sgdx_t5x.scoring import score_tables
from sgdx_t5x.scoring.columns import JGA
from sgdx_t5x.scoring.frame_table import FrameTable
from sgdx_t5x.scoring.rows import Row, Rows
from sgdx_t5x.scoring.score import Scored, score_predictions, score_report
from sgdx_t5x.tables import document


@dataclasses.dataclass(frozen=True)
class Scores:
  """The scores of a tracker. Numbers are fractions, or None where variants are missing.

  Attributes:
    scored: the scores of every frame, by variant.
  """

  scored: Scored

  @functools.cached_property
  def report(self) -> dict[str, Any]:
    """All numbers with their intervals, as `sgdx score --json` writes them."""
    return score_report(self.scored)

  @functools.cached_property
  def rows(self) -> Rows:
    """JGA by group of services, domain and service, with intervals."""
    return Rows.from_json(self.report["sgdx"])

  @property
  def jga_original(self) -> float | None:
    """JGA with the original schemas."""
    return self._all.values.get(JGA.original.key)

  @property
  def jga_v1_5(self) -> float | None:
    """JGA averaged over v1 to v5."""
    return self._all.values.get(JGA.mean.key)

  @property
  def schema_sensitivity(self) -> float | None:
    """SS_JGA over v1 to v5, under the zero-mean rule of the scores."""
    return self._all.values.get(JGA.sensitivity.key)

  @property
  def per_service(self) -> list[dict[str, Any]]:
    """A row per service: its name, frames and numbers."""
    return self._rows_by("service")

  def to_frame(self, by: str = "service") -> Any:
    """Returns a pandas DataFrame, a row per service; pandas must be installed.

    Args:
      by: "service", "domain", or "overall" for all, seen and unseen services.

    Raises:
      SgdxError: another word, or no pandas.
    """
    check_choice(by, "to_frame: by", ("service", "domain", "overall"))
    pandas = require("pandas", extra="report", why="scores as a DataFrame", packages="pandas")
    return pandas.DataFrame(self._rows_by(by)).set_index(by)

  def _rows_by(self, by: str) -> list[dict[str, Any]]:
    rows = []
    for kind, name, row in self.rows.items():
      if kind == by:
        rows.append({by: name, "num_frames": row.num_frames, **row.values})
    return rows

  @property
  def signature(self) -> str:
    """What the scores depend on, in one line to report with them."""
    return self.scored.signature

  @property
  def frames(self) -> FrameTable:
    """The scores of every frame, for `compare`."""
    return self.scored.table("scores in memory")

  def format(self, style: str = "md") -> str:
    """Returns all tables of `sgdx score`. Args: style, "md", "latex"; or "csv", in fractions."""
    return document(
      style,
      score_tables.layout(self.report),
      warnings=self.scored.warnings,
      notes=self.scored.notes,
      signatures={"": self.signature},
    )

  def __str__(self) -> str:
    return self.format()

  @property
  def _all(self) -> Row:
    return self.rows.groups["all"]


@checked_arguments(corpus=(Corpus, *PATH), split=str, predictions=Mapping)
def score(
  corpus: Corpus | str | os.PathLike,
  split: str,
  predictions: Mapping[str, Any],
  *,
  fuzzy: str = "difflib",
  zero_mean: str = "zero",
  across_turn: bool = False,
  metrics: Collection[str] = (),
  allow_missing: bool = False,
  prompt_format: PromptFormat | str = DEFAULT,
  style: Any = None,
  bootstrap_samples: int = NUM_BOOTSTRAP_SAMPLES,
  seed: int = 0,
  provenance: bool = False,
  schemas: Mapping[str, str | os.PathLike] | None = None,
) -> Scores:
  """Reads and scores predictions.

  Args:
    corpus: an open corpus, or an argument of `open_corpus`.
    split: "train", "dev" or "test".
    predictions: "original", "v1" to "v5" -> a file, a folder, files, or a list of rows {"id",
      "prediction"} or of DSTC8 dialogues; or "all" -> JSONL or rows whose ids name the variant.
    fuzzy: "difflib" (official), "levenshtein" or "exact".
    zero_mean: how SS counts frames that are always wrong, "zero" or "exclude".
    across_turn: joint metrics per turn, as for MultiWOZ.
    metrics: official keys to summarise besides JGA.
    allow_missing: score what is there.
    prompt_format: of JSONL predictions, or its name.
    style: of these prompts.
    bootstrap_samples, seed: of the intervals; 0 samples: none.
    provenance: also score by the source of values.
    schemas: own variant -> folder of its schemas.

  Raises:
    SgdxError: invalid or mismatched input; missing frames, unless allowed.
  """
  scored = score_predictions(
    corpus,
    split,
    predictions,
    fuzzy=fuzzy,
    zero_mean=zero_mean,
    across_turn=across_turn,
    metrics=metrics,
    allow_missing=allow_missing,
    prompt_format=prompt_format,
    style=style,
    bootstrap_samples=bootstrap_samples,
    seed=seed,
    provenance=provenance,
    schemas=schemas or {},
  )
  return Scores(scored)
