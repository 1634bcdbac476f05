"""The table of splits that `sgdx data prepare` and `verify` print."""

from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.corpus import PUBLISHED_DIALOGUES
from sgdx_t5x.tables import Table, count


def splits_table(rows: Sequence[Mapping[str, Any]], corpus: str) -> Table:
  """Returns a table of splits, with their state if any is PARTIAL.

  Args:
    rows: per split {"split", "dialogues", "user_turns", "frames", "services", "complete"};
      complete: see `Corpus.is_complete`.
    corpus: its name; of "sgd" it is known how many dialogues were published.
  """
  header = ("split", "dialogues", "user turns", "frames", "services")
  is_partial = not all(row["complete"] for row in rows)
  lines = []
  for row in rows:
    state = "complete" if row["complete"] else "PARTIAL"
    if not row["complete"] and corpus == "sgd":
      state += f": {PUBLISHED_DIALOGUES[row['split']]:,} published"
    numbers = [count(row[heading.replace(" ", "_")]) for heading in header[1:]]
    lines.append((row["split"], *numbers, *([state] * is_partial)))
  return Table("splits", header + ("state",) * is_partial, tuple(lines))
