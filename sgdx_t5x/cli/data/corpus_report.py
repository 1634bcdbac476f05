"""What `sgdx data prepare` and `verify` print about a corpus."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sgdx_t5x.cli import output
from sgdx_t5x.tables import Table
from sgdx_t5x.tables import count as number

_FORMAT = "sgdx-data/1"  # of `--format json`; raise the number when a reader must change


def splits_table(rows: Sequence[Mapping[str, Any]], corpus: str) -> Table:
  """Returns the table of splits. Args: rows, as in `corpus_report`; corpus, its name."""
  columns = {
    key: key.replace("_", " ") for key in ("dialogues", "user_turns", "frames", "services")
  }
  cells = {row["split"]: [number(row[key]) for key in columns] for row in rows}
  partial = [row["split"] for row in rows if not row["complete"]]
  return output.splits_table(tuple(columns.values()), cells, partial, corpus == "sgd")


def corpus_report(
  name: str, checksum: str, schemas: Iterable[str], rows: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
  """Returns what `--format json` prints about a corpus.

  Args:
    name: of the corpus.
    checksum: see `Corpus.checksum`.
    schemas: variants that the corpus has schemas for.
    rows: per split {"split", "dialogues", "user_turns", "frames", "services", "complete"}.
  """
  return {
    "format": _FORMAT,
    "corpus": name,
    "checksum": checksum,
    "complete": all(row["complete"] for row in rows),
    "schemas": list(schemas),
    "splits": {row["split"]: {k: row[k] for k in row if k != "split"} for row in rows},
  }
