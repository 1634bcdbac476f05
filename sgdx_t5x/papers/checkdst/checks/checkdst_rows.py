"""CheckDST's own prediction files: its numbers, ours over the same rows, and unanswerable rows.

A file has a JSON object per line with `dial_id` (dialogue-turn), `context`, and the states `pred`
and `gold` as text; `pred` may be null. `metrics.checkdst` computes each file's numbers over that
file's rows; ours are over the rows shared with the first file.
"""

import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sgdx_t5x import metrics
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import decode_json, decode_lines, read_input
from sgdx_t5x.metrics.ratios import Counts, Ratio, ratio_intervals, ratios, share
from sgdx_t5x.papers.checkdst import metrics_checkdst as checkdst
from sgdx_t5x.papers.checkdst.checks.columns import CHANGED, SLOTS
from sgdx_t5x.papers.checkdst.metrics_checkdst import Row
from sgdx_t5x.papers.checkdst.metrics_factuality import History
from sgdx_t5x.papers.checkdst.metrics_perturbed import ALONE, COUNTS, PAIRED
from sgdx_t5x.scoring.summaries import null_for_nan
from sgdx_t5x.tables import Table, count, percent

FORMAT = "sgdx-checkdst/1"
_EXPECTED = 'one JSON object per line: {"dial_id", "context", "pred", "gold"}'
_OWN = ("unanswerable", "answerable_right")
_STATISTICS: dict[str, Ratio] = {
  **{key: ratio for key, ratio in PAIRED.items() if key not in ("reverted", "repair_taken")},
  **{key: ALONE[key] for key in ("jga", "factuality")},
  **{key: ALONE[key] for key in ("slot_precision", "slot_recall", "slot_f1")},
  "answerable_jga": Ratio({"answerable_right": 1}, {"scored": 1, "unanswerable": -1}),
  "unanswerable": share("unanswerable", "scored"),
}
_NAMES = (*COUNTS, *_OWN)


def read_rows(path: str | pathlib.Path) -> list[Row]:
  """Reads a file of CheckDST's rows. Raises SgdxError, with the line, if one is malformed."""
  text = read_input(path, "CheckDST's predictions (JSON lines)")
  lines = decode_lines(text, str(path), _EXPECTED, "write one row per line")
  rows = [_row(data, where) for where, data in lines]
  if not rows:
    raise SgdxError(f"{path}: no rows", expected=_EXPECTED, fix="write the predictions again")
  return rows


def read_gold(path: str | pathlib.Path) -> dict[str, bool]:
  """Reads CheckDST's gold file: id -> whether coreference is needed."""
  text = read_input(path, "CheckDST's gold file (JSON)")
  expected = 'a JSON object: id -> {"need_coref": true or false, ...}'
  data = decode_json(text, str(path), expected, "restore the file")
  if not isinstance(data, dict) or not all(isinstance(row, dict) for row in data.values()):
    raise SgdxError(f"{path}: not a gold file", expected=expected, fix="restore the file")
  return checkdst.gold_needs(data)


def rows_report(
  files: Mapping[str, Sequence[Row]],
  gold: Mapping[str, bool] | None = None,
  bootstrap_samples: int = metrics.bootstrap.NUM_BOOTSTRAP_SAMPLES,
  seed: int = 0,
) -> dict[str, Any]:
  """Returns CheckDST's numbers and ours.

  Args:
    files: kind -> rows; the first is that of the original dialogues.
    gold: from `read_gold`, or None.
    bootstrap_samples: number of bootstrap samples of dialogues for our intervals; 0: no intervals.
    seed: random seed of the bootstrap.
  """
  first = next(iter(files))
  before = {row.key: row for row in reversed(files[first]) if row.predicted is not None}
  return {
    "format": FORMAT,
    "first": first,
    "checkdst": null_for_nan(checkdst.results(files, gold).numbers),
    "ours": {
      kind: _ours(rows, before if kind != first else None, bootstrap_samples, seed)
      for kind, rows in files.items()
    },
  }


# --- parts ---------------------------------------------------------------------------------


def _row(data: Any, where: str) -> Row:
  is_row = isinstance(data, dict) and isinstance(data.get("dial_id"), str)
  if not is_row or not isinstance(data.get("context"), str) or "pred" not in data:
    raise SgdxError(
      f"{where}: not a row of CheckDST predictions",
      expected=f"{_EXPECTED}; dial_id and context are strings",
      available=", ".join(data)[:80] if isinstance(data, dict) else type(data).__name__,
      fix="write the row in the format of CheckDST's README",
    )
  states = []
  for key in ("pred", "gold"):
    text = data.get(key)
    try:
      states.append(checkdst.parse_state(text) if isinstance(text, str) else None)
    except ValueError as e:
      raise SgdxError(
        f"{where}: {key}: {e}",
        expected='a state without "--" in its values, on which CheckDST fails',
        fix='replace "--" in the value, both in pred and in gold',
      ) from None
  return Row(where, data["dial_id"], data["context"], *states)


def _ours(
  rows: Sequence[Row], before: Mapping[str, Row] | None, bootstrap_samples: int, seed: int
) -> dict[str, Any]:
  known = {row.key: row for row in reversed(rows) if row.predicted is not None}
  kept = [row for row in dict.fromkeys(row.key for row in rows) if row in known]
  found = [_counts(known[key], (before or {}).get(key)) for key in kept]
  values = np.array([[row.get(name, 0) for name in _NAMES] for row in found], dtype=np.float64)
  dialogues = np.array([key.rpartition("-")[0] or key for key in kept], dtype=str)
  counts = Counts(_NAMES, values.reshape(len(kept), len(_NAMES)).T, dialogues)
  sums = counts.sums()
  result: dict[str, Any] = {
    **null_for_nan(ratios(_STATISTICS, counts)),
    "num_rows": len(kept),
    "num_without_prediction": len({row.key for row in rows}) - len(kept),
    "num_repeated": len(rows) - len({row.key for row in rows}),
    "num_changed": int(sums["changed"]),
    "num_entities": int(sums["entities"]),
    "num_unanswerable": int(sums["unanswerable"]),
  }
  if bootstrap_samples and kept:
    samples = metrics.BootstrapSamples.draw(dialogues, bootstrap_samples, seed)
    ends = ratio_intervals(_STATISTICS, counts, samples)
    result["ci95"] = {k: None if math.isnan(x[0]) else list(x) for k, x in ends.items()}
  return result


def _counts(row: Row, before: Row | None) -> dict[str, float]:
  right = checkdst.is_right(row)
  predicted, gold = set(row.predicted.slots), set(row.gold.slots)
  history = History([row.context])
  names = [_value(slot) for slot in row.predicted.named]
  needed = {_value(slot) for slot in row.gold.named} - {"dontcare"}
  is_possible = all(name in row.context for name in needed)
  counts: dict[str, float] = {
    "scored": 1,
    "jga": right,
    "entities": sum(name != "dontcare" for name in names),
    "factual": sum(name != "dontcare" and history.has(name, 0) for name in names),
    "predicted_slots": len(predicted),
    "gold_slots": len(gold),
    "right_slots": len(predicted & gold),
    "unanswerable": not is_possible,
    "answerable_right": right and is_possible,
  }
  if before is not None:
    was_right = checkdst.is_right(before)
    counts |= {
      "changed": 1,
      "right_before": was_right,
      "right_after": right,
      "right_both": was_right and right,
      "compared": 1,
      "agreeing": set(before.predicted.slots) == predicted,
    }
  return counts


def _value(slot: str) -> str:
  return slot.split("--")[-1]


# --- tables ---------------------------------------------------------------------------------

_THEIRS = {  # heading -> CheckDST's key for a kind and the first file
  "JGA": "jga_{kind}",
  "cJGA": "cjga_{first}_{kind}",
  "conditional": "conditional_jga_{first}_{kind}",
  "CorefJGA": "coref_jga_{kind}",
  "factuality": "factuality_{kind}",
}
_THEIR_COUNTS = {
  "names": "pred_named_entity_cts_{kind}",
  "made up": "hallucination_cts_{kind}",
  "coref rows": "coref_ct_{kind}",
}


def layout(report: Mapping[str, Any]) -> list[Table]:
  """Returns the tables of a report of `checkdst_rows.rows_report`, in percent."""
  first, theirs, ours = report["first"], report["checkdst"], report["ours"]

  def their(key: str, kind: str) -> Any:
    return theirs.get(key.format(first=first, kind=kind))

  rows = tuple(
    (
      kind,
      *(percent(their(key, kind)) for key in _THEIRS.values()),
      *(count(their(key, kind)) for key in _THEIR_COUNTS.values()),
    )
    for kind in ours
  )
  tables = [Table("CheckDST's numbers (%)", ("", *_THEIRS, *_THEIR_COUNTS), rows)]
  compared = tuple(
    (kind, *(percent(row[x.key]) for x in CHANGED), count(row["num_changed"]))
    for kind, row in ours.items()
    if kind != first
  )
  if compared:
    title = f"the same rows as {first} (%)"
    tables.append(Table(title, ("", *(x.heading for x in CHANGED), "rows"), compared))
  alone = tuple(
    (
      kind,
      percent(row["jga"]),
      percent(row["answerable_jga"]),
      percent(row["factuality"]),
      *(percent(row[x.key]) for x in SLOTS),
      count(row["num_rows"]),
    )
    for kind, row in ours.items()
  )
  header = ("", "JGA", "answerable", "factuality", *(x.heading for x in SLOTS), "rows")
  return [*tables, Table("all rows of a file, by our definitions (%)", header, alone)]


def notes(report: Mapping[str, Any]) -> list[str]:
  """Returns what a reader should know about the rows."""
  lines = [
    f"{kind}: rows whose gold entities do not all occur in the text: "
    f"{row['num_unanswerable']:,} of {row['num_rows']:,}"
    for kind, row in report["ours"].items()
  ]
  lines += [
    f"{kind}: {row['num_without_prediction']:,} rows have no prediction; CheckDST skips them"
    for kind, row in report["ours"].items()
    if row["num_without_prediction"]
  ]
  lines += [
    f"{kind}: {row['num_repeated']:,} rows repeat an id; CheckDST counts them again, we do not"
    for kind, row in report["ours"].items()
    if row["num_repeated"]
  ]
  return [*lines, "answerable: JGA over the rows whose gold entities all occur in the text"]
