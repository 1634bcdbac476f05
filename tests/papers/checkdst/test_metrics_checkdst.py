"""CheckDST's numbers: its parser and corner cases by hand, and the output of its own class.

tests/papers/fixtures/checkdst has cases of our own, and what CheckDST's class (commit 36da911)
gives for them, with four digits as it does: `expected.json`; `parser.json` is how it reads texts
of states.
"""

import json
import math

import pytest
from places import ROOT

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.checkdst import metrics_checkdst as checkdst
from sgdx_t5x.papers.checkdst.checks import checkdst_rows

CASES = (
  "extra_rows",
  "no_named_entities",
  "null_prediction",
  "parsing",
  "substring",
  "worked_example",
)


def row(key, predicted, gold, context=""):
  states = [None if x is None else checkdst.parse_state(x) for x in (predicted, gold)]
  return checkdst.Row(f"line of {key}", key, context, *states)


@pytest.mark.parametrize(
  ("text", "slots", "num_named"),
  [
    ("", (), 0),
    ("hotel name inn", ("hotel--name--inn",), 1),
    ("</bs> taxi departure a  b, </bs> hotel name inn", ("taxi--departure--a b",), 1),
    ("bus departure x y, hotel name, ship name z", (), 0),
    ("hotel book day, hotel book stay 2", ("hotel--book day--", "hotel--book stay--2"), 0),
    ("hotel area centre, hotel stars 5-star", ("hotel--area--center", "hotel--stars--5"), 0),
    ("train destination a, b", ("train--destination--a",), 1),  # a value ends at a comma
    ("hotel name inn, hotel name inn", ("hotel--name--inn",) * 2, 2),
    (" , ,hotel name inn,,", ("hotel--name--inn",), 1),
  ],
)
def test_states(text, slots, num_named):
  state = checkdst.parse_state(text)
  assert (state.slots, len(state.entities)) == (slots, num_named)


def test_a_state_at_which_checkdst_stops():
  with pytest.raises(ValueError, match="--"):
    checkdst.parse_state("hotel name a--b")


def test_corner_cases():
  one = checkdst.results({"orig": [row("a-0", "", ""), row("b-0", "hotel area west", "")]}).numbers
  assert (one["jga_orig"], one["pred_named_entity_cts_orig"]) == (0.5, 0)
  assert math.isnan(one["factuality_orig"])
  assert math.isnan(one["coref_jga_orig"])
  # Removing "domain slot" from within a name leaves two spaces.
  inside = row("a-0", "hotel name the hotel name inn", "", "at the hotel name inn")
  assert checkdst.hallucinated(inside) == 1
  assert checkdst.hallucinated(row("a-0", "hotel name inn", "", "")) == 1
  wrong = row("a-0", "hotel area west", "")
  pair = checkdst.results({"orig": [wrong], "NED": [wrong]}).numbers
  assert pair["cjga_orig_NED"] == 0
  assert math.isnan(pair["conditional_jga_orig_NED"])


def test_a_repeated_id_multiplies_rows():
  """The original's JGA is computed before the join, its part in cJGA after it."""
  right, wrong = row("a-0", "", ""), row("b-0", "hotel area west", "")
  found = checkdst.results({"orig": [right, wrong], "NED": [right, right, wrong]})
  assert found.numbers["jga_orig"] == 0.5
  assert found.numbers["jga_NED"] == found.numbers["cjga_orig_NED"] == 0.6667
  assert [key for key, _ in found.rows] == ["a-0", "a-0", "b-0"]


def test_the_gold_file_says_what_needs_coreference():
  gold = {"A.json-0": {"need_coref": True}, "b-0": {"need_coref": False}, "c-0": {}}
  needs = checkdst.gold_needs(gold)
  assert needs == {"a-0": True, "b-0": False, "c-0": True}  # absent, but others have it: true
  assert checkdst.gold_needs({"c-0": {}}) == {"c-0": False}
  rows = [row("A-0", "", ""), row("b-0", "", ""), row("c-0", "hotel area west", "")]
  found = checkdst.results({"orig": rows}, needs).numbers
  assert (found["jga_orig"], found["coref_jga_orig"], found["coref_ct_orig"]) == (0.5, 0, 1)


def test_a_gold_row_under_two_spellings_of_its_id():
  """The later one replaces the earlier one, field and all, before CheckDST looks for the field."""
  assert checkdst.gold_needs({"A.json-0": {"need_coref": True}, "a-0": {}}) == {"a-0": False}


def test_a_gold_file_without_rows():
  found = checkdst.results({"orig": [row("a-0", "", "")]}, {})
  assert math.isnan(found.numbers["jga_orig"])
  assert found.rows == ()


def test_a_prediction_without_gold_is_refused():
  with pytest.raises(SgdxError, match="line of a-0: no gold state"):
    checkdst.results({"orig": [row("a-0", "", None)]})


def test_what_checkdst_reads():
  for case in json.loads((ROOT / "tests/papers/fixtures/checkdst/parser.json").read_text()):
    state = checkdst.parse_state(case["text"])
    assert [list(state.slots), list(state.entities)] == [case["slots"], case["named"]], case["text"]


@pytest.mark.parametrize("case", CASES)
def test_what_checkdst_gave(case):
  folder = ROOT / "tests/papers/fixtures/checkdst" / case
  files = {
    kind: checkdst_rows.read_rows(folder / f"{kind}.jsonl")
    for kind in ("orig", "NED", "PI", "SDI")
    if (folder / f"{kind}.jsonl").exists()
  }
  gold = folder / "gold.json"
  found = checkdst.results(files, checkdst_rows.read_gold(gold) if gold.exists() else None)
  expected = json.loads((folder / "expected.json").read_text())
  assert _null(found.numbers) == expected["results"]
  assert {key: _null(columns) for key, columns in found.rows} == expected["rows"]


def _null(numbers):
  return {key: None if math.isnan(x) else x for key, x in numbers.items()}
