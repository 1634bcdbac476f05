"""CheckDST's own numbers, as its code computes them, including corner cases.

Source: Cho et al. 2022, "Know Thy Strengths: Comprehensive Dialogue State Tracking Diagnostics",
and the class `CheckDST` of its repository (wise-east/CheckDST, commit 36da911), whose results these
functions reproduce to the 4 digits that it gives. A row is one user turn of MultiWOZ; its state is
a string, "domain slot value, domain slot value". docs/papers/metrics/checkdst.md says where our
definitions differ, and why.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sgdx_t5x.errors import SgdxError

DOMAINS = frozenset({"attraction", "hospital", "hotel", "police", "restaurant", "taxi", "train"})
NAMED_ENTITIES = frozenset(  # bus slots would have no effect: "bus" is not in DOMAINS
  {
    ("attraction", "name"),
    ("hotel", "name"),
    ("restaurant", "name"),
    *itertools.product(("taxi", "train"), ("departure", "destination")),
  }
)
_BOOKED = ("day", "people", "stay", "time")
_SPELLINGS = {"centre": "center", **{f"{n}-star": str(n) for n in range(6)}}
_DIGITS = 4
_SEPARATOR = "--"  # between the parts of a slot


@dataclasses.dataclass(frozen=True, slots=True)
class State:
  """What CheckDST parses from the text of a state.

  Attributes:
    slots: "domain--slot--value", in order, including repeated ones.
    entities: the subset whose values are named entities.
  """

  slots: tuple[str, ...]
  entities: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
  """One row of CheckDST's JSON lines.

  Attributes:
    location: file and line, for error messages.
    key: `dial_id`, i.e. dialogue and turn: "mul0003-1".
    context: the dialogue up to this turn.
    predicted: the predicted state; None if the row has none, and is therefore left out.
    gold: the gold state.
  """

  location: str
  key: str
  context: str
  predicted: State | None
  gold: State | None


def parse_state(text: str) -> State:
  """Parses the text of a state.

  An item with fewer than three words, or of a domain that MultiWOZ does not have, is silently
  skipped: a tracker is not penalized for it. A value ends at a comma.

  Raises:
    ValueError: a slot or value contains "--", on which CheckDST fails.
  """
  words = text.split()
  if words and words[0] in ("<bs>", "</bs>"):
    words = words[1:]
  if "</bs>" in words:
    words = words[: words.index("</bs>")]
  slots, entities = [], []
  for item in " ".join(words).split(","):
    domain, *words_of_item = item.split() or [""]
    if len(words_of_item) < 2 or domain not in DOMAINS:
      continue
    # "hotel book day saturday": names of slots for bookings have two words.
    in_name = 2 if words_of_item[0] == "book" and words_of_item[1] in _BOOKED else 1
    name, value = " ".join(words_of_item[:in_name]), " ".join(words_of_item[in_name:])
    slot = _SEPARATOR.join((domain, name, _SPELLINGS.get(value, value)))
    if slot.count(_SEPARATOR) != 2:
      raise ValueError(f"{item.strip()!r} has {_SEPARATOR!r}")
    slots.append(slot)
    if (domain, name) in NAMED_ENTITIES:
      entities.append(slot)
  return State(tuple(slots), tuple(entities))


def is_right(row: Row) -> bool:
  """Whether the predicted state equals the gold state: order and repetition do not matter."""
  predicted, gold = _states(row)
  return set(predicted.slots) == set(gold.slots)


def hallucinated(row: Row) -> int:
  """Counts the predicted named entities that are not in the context.

  CheckDST first removes every "domain slot" of gold and prediction from the value, which leaves two
  spaces where one was removed from the middle. It then searches for a substring, case-sensitively:
  "art" is in "partial".
  """
  predicted, gold = _states(row)
  count = 0
  for entity in predicted.entities:
    value = entity.split(_SEPARATOR)[-1]
    for slot in (*gold.slots, *predicted.slots):
      value = value.replace(" ".join(slot.split(_SEPARATOR)[:2]), "")
    count += value not in row.context
  return count


@dataclasses.dataclass(frozen=True)
class Results:
  """CheckDST's numbers for some files.

  Attributes:
    numbers: its keys, such as `jga_orig` -> number, rounded to 4 digits unless it is a count; nan
      if undefined.
    rows: (id, column -> value) of its table of rows, after all files are joined; nan where a row
      has no value.
  """

  numbers: Mapping[str, float]
  rows: tuple[tuple[str, Mapping[str, float]], ...]


def results(
  files: Mapping[str, Sequence[Row]], need_coref: Mapping[str, bool] | None = None
) -> Results:
  """Computes what CheckDST's class returns for files added in this order.

  Args:
    files: kind -> rows; the first is that of the original dialogues, "orig". The others are
      left-joined to the rows so far by id: ids that the first lacks are left out, and a repeated id
      multiplies rows.
    need_coref: id -> whether coreference is needed, from a gold file; its ids then come first in
      the join, and rows of other ids are left out. None for no coreference.
  """
  original = next(iter(files))
  keyed_rows: list[tuple[str, dict[str, float]]] = [(key, {}) for key in need_coref or ()]
  numbers: dict[str, float] = {}
  for kind, rows in files.items():
    if need_coref is None and kind == original:
      joined: list[tuple[str, dict[str, float], Row | None]] = [(row.key, {}, row) for row in rows]
    else:
      joined = _join(keyed_rows, rows)
    for key, columns, row in joined:
      columns |= _columns(kind, row, (need_coref or {}).get(key, False))
    keyed_rows = [(key, columns) for key, columns, _ in joined]
    table = [columns for _, columns in keyed_rows]
    numbers |= _of_file(kind, table)
  for kind in list(files)[1:]:
    numbers |= _of_pair(original, kind, table)
  return Results(numbers, tuple(keyed_rows))


def gold_needs(gold: Mapping[str, Mapping[str, object]]) -> dict[str, bool]:
  """Returns id -> whether coreference is needed, from a gold file, as CheckDST interprets it.

  Ids lose ".json" and are lowercased; those of predictions are not. A row without the field counts
  as needing it if any other row has the field, since a missing value is truthy in CheckDST's table.
  """
  field = "need_coref"
  normal = {key.replace(".json", "").lower(): row for key, row in gold.items()}
  says = any(field in row for row in normal.values())
  return {key: bool(row.get(field, says)) for key, row in normal.items()}


# --- parts -----------------------------------------------------------------------------------


def _states(row: Row) -> tuple[State, State]:
  if row.predicted is None or row.gold is None:
    raise SgdxError(
      f"{row.location}: no {'prediction' if row.predicted is None else 'gold state'}",
      expected="strings pred and gold; CheckDST fails on a row with a prediction but no gold state",
      fix="write the gold state as a string ('' if it is empty), or remove the row",
    )
  return row.predicted, row.gold


def _join(
  table: Sequence[tuple[str, Mapping[str, float]]], rows: Iterable[Row]
) -> list[tuple[str, dict[str, float], Row | None]]:
  """Joins rows to a table of (id, columns), as a left join does."""
  by_key: dict[str, list[Row]] = {}
  for row in rows:
    by_key.setdefault(row.key, []).append(row)
  joined: list[tuple[str, dict[str, float], Row | None]] = []
  for key, columns in table:
    joined += [(key, dict(columns), row) for row in by_key.get(key, [None])]
  return joined


def _columns(kind: str, row: Row | None, needs_coref: bool) -> dict[str, float]:
  is_correct, invented, num_entities = math.nan, 0, 0
  if row is not None and row.predicted is not None:
    is_correct, invented = float(is_right(row)), hallucinated(row)
    num_entities = len(row.predicted.entities)
  return {
    f"jga_{kind}": is_correct,
    f"coref_jga_{kind}": is_correct if needs_coref else math.nan,
    f"hallucinate_cts_{kind}": invented,
    f"pred_named_entity_cts_{kind}": num_entities,
  }


def _of_file(kind: str, table: Sequence[Mapping[str, float]]) -> dict[str, float]:
  correct, coref = _column(table, f"jga_{kind}"), _column(table, f"coref_jga_{kind}")
  invented = sum(row[f"hallucinate_cts_{kind}"] for row in table)
  names = sum(row[f"pred_named_entity_cts_{kind}"] for row in table)
  return {
    f"jga_{kind}": _rounded_mean(correct),
    f"coref_jga_{kind}": _rounded_mean(coref),
    f"factuality_{kind}": _rounded(1 - np.float64(invented) / names if names else math.nan),
    f"hallucination_cts_{kind}": invented,
    f"pred_named_entity_cts_{kind}": names,
    f"coref_ct_{kind}": len(coref),
  }


def _of_pair(original: str, kind: str, table: Sequence[dict[str, float]]) -> dict[str, float]:
  """Adds the columns of a pair of files to the table, and returns their means."""
  joint, conditional = f"cjga_{original}_{kind}", f"conditional_jga_{original}_{kind}"
  for row in table:
    a, b = row[f"jga_{original}"], row[f"jga_{kind}"]
    row[joint] = math.nan if math.isnan(a + b) else float(a and b)
    row[conditional] = row[joint] if a or b else math.nan
  return {key: _rounded_mean(_column(table, key)) for key in (joint, conditional)}


def _column(table: Sequence[Mapping[str, float]], key: str) -> list[float]:
  return [row[key] for row in table if not math.isnan(row[key])]


def _rounded_mean(values: Sequence[float]) -> float:
  return _rounded(math.fsum(values) / len(values) if values else math.nan)


def _rounded(value: float) -> float:
  return float(np.round(np.float64(value), _DIGITS))  # half to even, of 10,000 times the number
