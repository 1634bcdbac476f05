"""Agreement of predicted states: hand-computed values, and consistency with the scorer."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgdx_t5x.corpus.schema import Service, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics import BACKENDS, frame_agreement, match, slot_score
from sgdx_t5x.metrics.fuzzy import equal

SLOTS = (
  Slot("kind", "", True, ("Checking", "Savings")),
  Slot("to", "", False, ()),
  Slot("note", "", False, ()),
)
BANK = Service("Bank_1", "", SLOTS, ())


def state(**values):
  return {name: (value,) for name, value in values.items()}


ANNA = state(kind="Checking", to="Anna Lee")


@pytest.mark.parametrize(
  ("states", "share"),
  [
    ([ANNA] * 5, 1.0),
    ([ANNA] * 4 + [{}], 6 / 10),  # of ten pairs, the last is in four
    ([ANNA] * 3 + [{}] * 2, 4 / 10),  # three pairs and one
    ([ANNA, {}, state(to="Anna"), state(kind="Savings"), state(kind="Checking")], 0.0),
    ([ANNA, {}], 0.0),
    ([{}] * 5, 1.0),  # right or wrong, they agree
  ],
)
def test_pairs_by_hand(states, share):
  assert frame_agreement(BANK, states) == pytest.approx(share)
  assert frame_agreement(BANK, states[::-1]) == pytest.approx(share)


@pytest.mark.parametrize(
  ("a", "b", "agree"),
  [
    (state(to="Anna Lee"), state(to="lee, anna"), True),  # order, case, punctuation ignored
    (state(to="Anna Lee"), state(to="Anna Le"), False),  # 93%
    (state(kind="Savings"), state(kind="savings"), False),  # categorical: exact match
    (state(kind="dontcare"), state(kind="Savings"), False),
    ({"to": ("Anna", "Ann")}, {"to": ("Anna", "Lee")}, True),  # the first is scored
    ({"to": ()}, {}, True),  # an empty list is no value
    ({"to": ["Anna"]}, {"to": ("Anna",)}, True),
    (state(to="Anna"), state(to="Anna", balance="$5"), True),  # not a slot of the service
  ],
)
def test_states_are_equal_as_the_scorer_compares(a, b, agree):
  assert frame_agreement(BANK, [a, b]) == float(agree)


def test_the_back_end_decides():
  pair = [state(to="Anna Lee"), state(to="Lee Anna")]
  assert [frame_agreement(BANK, pair, backend) for backend in BACKENDS] == [1.0, 1.0, 0.0]
  with pytest.raises(SgdxError, match="fuzzy = 'x'"):
    frame_agreement(BANK, pair, "x")


def test_long_values_may_round_to_a_match():
  """Of 201 characters in both values, 200 match: 99.5%, which the scorer rounds to 100."""
  a, b = "x" * 101, "x" * 100
  assert match(a, b) == 1.0
  assert frame_agreement(BANK, [state(to=a), state(to=b)]) == 1.0
  assert frame_agreement(BANK, [state(to=a[:90]), state(to=b[:89])]) == 0.0


def test_what_cannot_agree_is_nan():
  assert math.isnan(frame_agreement(BANK, []))
  assert math.isnan(frame_agreement(BANK, [ANNA]))
  assert math.isnan(frame_agreement(Service("Empty_1", "", (), ()), [{}, {}]))  # it has no JGA


WORDS = st.lists(st.sampled_from(["anna", "Anna", "lee", "le", "x" * 60, ",", "Ä"]), max_size=5)
VALUES = WORDS.map(" ".join)


@settings(deadline=None)  # the machine may be busy
@given(VALUES, VALUES, st.sampled_from(BACKENDS))
def test_equal_is_a_match_of_1_in_both_orders(a, b, backend):
  assert equal(a, b, backend) == (match(a, b, backend) == match(b, a, backend) == 1)


STATES = st.dictionaries(
  st.sampled_from(["kind", "to", "note"]), VALUES.map(lambda value: (value,)), max_size=3
)


@settings(deadline=None)  # the machine may be busy
@given(st.lists(STATES, min_size=2, max_size=5), st.sampled_from(BACKENDS))
def test_agreement_is_that_of_slot_scores(states, backend):
  """Two states agree if each slot scores 1, whichever of the two is the gold state."""

  def agree(a, b):
    return all(
      slot_score(x.get(slot.name, ()), y.get(slot.name, ()), slot.is_categorical, backend) == 1
      for slot in SLOTS
      for x, y in ((a, b), (b, a))
    )

  pairs = list(itertools.combinations(states, 2))
  expected = sum(agree(*pair) for pair in pairs) / len(pairs)
  assert frame_agreement(BANK, states, backend) == pytest.approx(expected)
