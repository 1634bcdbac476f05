"""The tables of `sgdx checkdst check --checkdst-rows`: CheckDST's numbers next to ours."""

from collections.abc import Mapping
from typing import Any

from sgdx_t5x.papers.checkdst.checks.columns import CHANGED, SLOTS
from sgdx_t5x.tables import Table, count, percent

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
