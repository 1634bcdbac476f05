"""The SGD baseline's labels: small cases by hand, and their upper bound on SGD."""

import pytest
from baseline_ceiling import ceiling

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import Intent, Service, Slot
from sgdx_t5x.papers.sgd_baseline.baseline_features import (
  NOTHING_OFFERED,
  UNFOUND,
  right_answers,
  state_update,
)
from sgdx_t5x.records.turns import FrameContext, Gold, Span
from sgdx_t5x.spandst.answers import DONTCARE, KEEP, SPAN, VALUE
from sgdx_t5x.spandst.spandst import Choice, new_values

CITY, SEATS, PHONE = range(3)
SERVICE = Service(
  "Cafes_1",
  "",
  (
    Slot("city", "", False),
    Slot("seats", "", True, ("1", "2")),
    Slot("phone", "", False),
  ),
  (Intent("Find", "", False, ("city",), {"seats": "dontcare"}, ("phone",)),),
)


def context(user="", system="", turn=4):
  return FrameContext("1-004-Cafes_1", turn, 0, system, user, (), (0,))


def gold(values, *spans):
  return Gold(0, (), values, spans)


def test_an_update_is_what_the_first_value_before_does_not_say():
  now = {CITY: ("Rome", "Roma"), SEATS: ("2",)}
  assert state_update(gold(now), {}) == now
  assert state_update(gold(now), {CITY: ("Roma", "Bari"), SEATS: ("2",)}) == {}
  # Only the first of the earlier values counts, as in the released code.
  assert state_update(gold(now), {CITY: ("Bari", "Roma"), SEATS: ("1",)}) == now
  assert state_update(gold({}), now) == {}  # a removed value is no update


def test_answers_of_all_kinds():
  said = context("In Roma for 2.", "Rome, or elsewhere?")
  spans = (Span(CITY, True, 3, 7), Span(CITY, False, 0, 4))
  values = {CITY: ("Rome", "Roma"), SEATS: ("2",)}
  found = right_answers(SERVICE, said, gold(values, *spans), {})
  # The user's utterance comes before the system's; in it, the value that is listed first.
  assert found == {CITY: Choice(SPAN, 1, 3, 7), SEATS: Choice(VALUE, 1)}
  decoded = new_values(SERVICE, said, {}, NOTHING_OFFERED, found)
  assert decoded == {CITY: ("Roma",), SEATS: ("2",)}
  dontcare = right_answers(SERVICE, said, gold({SEATS: ("dontcare",)}, *spans), {})
  assert dontcare == {SEATS: Choice(DONTCARE)}


def test_the_first_of_several_values_that_is_there():
  said = context("Roma or Rome")
  spans = (Span(CITY, True, 0, 4), Span(CITY, True, 8, 12))
  found = right_answers(SERVICE, said, gold({CITY: ("Rome", "Roma")}, *spans), {})
  assert found == {CITY: Choice(SPAN, 1, 8, 12)}


def test_what_is_in_neither_utterance_is_active_and_unfound():
  for said, spans in (
    (context("In Rome."), ()),  # without an annotated span, words alone are no label
    (context("In rome."), (Span(CITY, True, 3, 7),)),  # nor is a span that differs in case
  ):
    found = right_answers(SERVICE, said, gold({CITY: ("Rome",)}, *spans), {CITY: ("Bari",)})
    assert found == {CITY: UNFOUND}
    # Decoding it changes nothing.
    before = {CITY: ("Bari",)}
    assert new_values(SERVICE, said, before, NOTHING_OFFERED, found) == before


def test_what_the_model_cannot_be_asked_for():
  values = {PHONE: ("5-5",), SEATS: ("3",)}  # no intent takes the phone, and 3 is not in the schema
  found = right_answers(SERVICE, context("3, 5-5"), gold(values, Span(PHONE, True, 3, 6)), {})
  assert found == {SEATS: UNFOUND}


def test_nothing_is_ever_removed():
  before = {CITY: ("Rome",)}
  assert right_answers(SERVICE, context(), gold({}), before) == {}
  assert new_values(SERVICE, context(), before, NOTHING_OFFERED, {CITY: Choice(KEEP)}) == before


def test_a_service_without_slots_has_no_labels():
  empty = Service("Empty_1", "", (), (Intent("Ask", "", False, (), {}, ()),))
  assert right_answers(empty, context("Hi"), gold({}), {}) == {}


@pytest.mark.long
@pytest.mark.real
@pytest.mark.parametrize(
  ("split", "expected"),
  [("dev", (64.79, 64.21, 65.54)), ("test", (69.56, 61.01, 72.62))],
)
def test_ceilings_on_sgd(split, expected, real_archive):
  """JGA (all, seen, unseen) of another implementation; test is the 24 available files."""
  corpus = open_corpus(real_archive)
  dialogues = list(corpus.dialogues(split))
  schema, seen = corpus.schema(split), corpus.seen_services(split)
  assert [round(x, 2) for x in ceiling(dialogues, schema, seen)] == list(expected)
