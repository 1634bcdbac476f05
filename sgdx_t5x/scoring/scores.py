"""Scores as an object, for notebooks and programs: the front door `sgdx_t5x.score`."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from sgdx_t5x.arguments import PATH, checked_arguments
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.errors import UsageError, nearest, require
from sgdx_t5x.scoring import score_tables
from sgdx_t5x.scoring.columns import JGA
from sgdx_t5x.scoring.frame_table import FrameTable
from sgdx_t5x.scoring.rows import Row, Rows
from sgdx_t5x.scoring.score import Scored, score_predictions, score_report
from sgdx_t5x.tables import document

_IN_MEMORY = "scores in memory"
_KINDS_OF_ROWS = ("service", "domain", "overall")


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
    """A row per service, which `pandas.DataFrame` takes: its name, frames and numbers."""
    return self._rows_by("service")

  def to_frame(self, by: str = "service") -> Any:
    """Returns a pandas DataFrame, a row per service; pandas must be installed.

    Args:
      by: "service", "domain", or "overall" for all, seen and unseen services.

    Raises:
      SgdxError: another word, or no pandas.
    """
    if by not in _KINDS_OF_ROWS:
      raise UsageError(
        f"to_frame: by = {by!r}",
        expected="what a row is about",
        available=nearest(by, _KINDS_OF_ROWS),
        fix="use one of these",
      )
    pandas = require("pandas", extra="report", why="scores as a DataFrame", beside="pandas")
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
    return self.scored.table(_IN_MEMORY)

  def format(self, style: str = "md") -> str:
    """Returns the tables of `sgdx score`, in percent. Args: style, "md", "latex" or "csv"."""
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
def score(corpus: Any, split: str, predictions: Mapping[str, Any], **settings: Any) -> Scores:
  """Reads and scores predictions.

  Args:
    corpus: the official archive, a folder in its layout, "sample", or an open corpus.
    split: "train", "dev" or "test".
    predictions: "original", "v1" to "v5" -> a file, a folder, files, or a list of rows {"id",
      "prediction"} or of DSTC8 dialogues; or "all" -> JSONL or rows whose ids name the variant.
    **settings: see `scoring.settings.Settings`.

  Raises:
    SgdxError: invalid or mismatched input; missing frames, unless allowed.
  """
  return Scores(score_predictions(corpus, split, predictions, **settings))
