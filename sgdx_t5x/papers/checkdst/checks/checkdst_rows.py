"""CheckDST's own prediction files, and its numbers of them.

A file has a JSON object per line with `dial_id` (dialogue-turn), `context`, and the states `pred`
and `gold` as text; `pred` may be null.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files.reading import decode_json, decode_lines, read_input
from sgdx_t5x.papers.checkdst import metrics_checkdst as checkdst
from sgdx_t5x.papers.checkdst.metrics_checkdst import Row
from sgdx_t5x.scoring.summaries import null_for_nan
from sgdx_t5x.tables import Table, count, percent

_EXPECTED = 'one JSON object per line: {"dial_id", "context", "pred", "gold"}'
_SHARES = {  # heading -> CheckDST's key for a kind and the first file
  "JGA": "jga_{kind}",
  "cJGA": "cjga_{first}_{kind}",
  "conditional": "conditional_jga_{first}_{kind}",
  "CorefJGA": "coref_jga_{kind}",
  "factuality": "factuality_{kind}",
}
_COUNTS = {
  "names": "pred_named_entity_cts_{kind}",
  "made up": "hallucination_cts_{kind}",
  "coref rows": "coref_ct_{kind}",
}


def read_rows(path: str | pathlib.Path) -> list[Row]:
  """Reads a file of CheckDST's rows. Raises SgdxError, with the line, if one is malformed."""
  text = read_input(path, "CheckDST's predictions (JSON lines)")
  lines = decode_lines(text, str(path), _EXPECTED, "write one row per line")
  rows = [_row(data, location) for location, data in lines]
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


def check_gold(path: str, gold: Mapping[str, bool], rows: Sequence[Row]) -> None:
  """Refuses a gold file that has no id of the original's rows: all of them would be left out."""
  if gold.keys().isdisjoint(row.key for row in rows):
    raise SgdxError(
      f"{path}: no id of the predictions",
      expected=f"ids such as {rows[0].key}",
      available=nearest(rows[0].key, gold),
      fix="pass their gold file; CheckDST reads its ids in lower case, and without .json",
    )


def layout(results: checkdst.Results, kinds: list[str]) -> Table:
  """Returns the table of CheckDST's numbers. Args: kinds, of the files, the original's first."""
  numbers = null_for_nan(results.numbers)

  def cells(kind: str) -> list[Any]:
    keys = {"first": kinds[0], "kind": kind}
    shares = [percent(numbers.get(key.format(**keys))) for key in _SHARES.values()]
    counts = [count(int(results.numbers[key.format(**keys)])) for key in _COUNTS.values()]
    return [kind, *shares, *counts]

  rows = tuple(tuple(cells(kind)) for kind in kinds)
  return Table("CheckDST's numbers (%)", ("", *_SHARES, *_COUNTS), rows)


class _Line(msgspec.Struct):
  """A line of a file; CheckDST fails on values with "--"."""

  dial_id: str
  context: str
  pred: str | None
  gold: str | None = None


def _row(data: Any, location: str) -> Row:
  try:
    line = msgspec.convert(data, _Line)
    states = [None if x is None else checkdst.parse_state(x) for x in (line.pred, line.gold)]
  except ValueError as e:  # msgspec's errors, too
    raise SgdxError(
      f"{location}: not a row of CheckDST predictions: {e}",
      expected=f'{_EXPECTED}; strings, and no "--" in values',
      fix="write the row in the format of CheckDST's README",
    ) from None
  return Row(location, line.dial_id, line.context, *states)
