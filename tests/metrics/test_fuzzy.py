"""The fuzzy back ends against fuzzywuzzy itself, and their corner cases."""

import difflib
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics.fuzzy import BACKENDS, match

with warnings.catch_warnings():
  warnings.simplefilter("ignore")  # "Using slow pure-python SequenceMatcher"
  fuzz = pytest.importorskip("fuzzywuzzy.fuzz", reason="fuzzywuzzy is a test-only dependency")

# SGD-like gold values with plausible wrong predictions, and corner cases.
PAIRS = [
  ("Ginza | Japanese Sushi Restaurant", "Ginza Japanese Sushi"),
  ("11:30 am", "half past 11 in the morning"),
  ("2664 Berryessa Road #206", "2664 Berryessa Rd"),
  ("March 8th", "8th of March"),
  ("San Francisco", "SF"),
  ("LAX International Airport", "Los Angeles International"),
  ("Angel's Share", "Angels share"),
  ("$1,620", "1620 dollars"),
  ("Café Pêche", "Cafe Peche"),
  ("Aloft Austin at The Domain", "The Domain, Aloft Austin"),
  ("next Monday", "Sunday next week"),
  ("dontcare", "don't care"),
  ("東京", "京都"),
  ("a_b", "a b"),
  ("!!!", "???"),
  ("!!!", "a"),
  ("", ""),
  ("", "a"),
]


@pytest.fixture
def use_difflib(monkeypatch):
  """Uses difflib, as with the official requirements, whatever else is installed here."""
  monkeypatch.setattr(fuzz, "SequenceMatcher", difflib.SequenceMatcher)


@pytest.mark.parametrize(("ref", "hyp"), PAIRS)
def test_difflib_is_fuzzywuzzy(ref, hyp, use_difflib):
  assert match(ref, hyp) == fuzz.token_sort_ratio(ref, hyp) / 100
  assert match(hyp, ref) == fuzz.token_sort_ratio(hyp, ref) / 100


def test_levenshtein_is_fuzzywuzzy_with_levenshtein(monkeypatch):
  from fuzzywuzzy.StringMatcher import StringMatcher

  monkeypatch.setattr(fuzz, "SequenceMatcher", StringMatcher)
  for ref, hyp in PAIRS:
    assert match(ref, hyp, "levenshtein") == fuzz.token_sort_ratio(ref, hyp) / 100, (ref, hyp)


def test_the_two_back_ends_differ():
  # The example of Python's difflib documentation: 2 * 1 / 8 one way, 2 * 2 / 8 the other; the
  # longest common subsequence is "ie", so the InDel ratio is 2 * 2 / 8 both ways.
  assert (match("tide", "diet", "difflib"), match("diet", "tide", "difflib")) == (0.25, 0.5)
  assert match("tide", "diet", "levenshtein") == match("diet", "tide", "levenshtein") == 0.5


def test_values_by_hand():
  assert match("March 8th", "8th March", "difflib") == 1.0  # tokens are sorted
  assert match("Anna Lee", "anna lee!", "difflib") == 1.0  # case and punctuation do not count
  assert match("Anna Lee", "anna lee!", "exact") == 0.0
  # "anna lee" and "anna": 4 characters of 8 + 4 match, 2 * 4 / 12 = 0.667 -> 67
  assert match("Anna Lee", "Anna", "difflib") == 0.67
  assert match("Anna Lee", "Anna", "levenshtein") == 0.67


@settings(deadline=None)  # the machine may be busy
@given(st.text(max_size=12), st.text(max_size=12))
def test_difflib_is_fuzzywuzzy_on_any_text(ref, hyp):
  saved, fuzz.SequenceMatcher = fuzz.SequenceMatcher, difflib.SequenceMatcher
  try:
    assert match(ref, hyp) == fuzz.token_sort_ratio(ref, hyp) / 100
  finally:
    fuzz.SequenceMatcher = saved


@settings(deadline=None)  # the machine may be busy
@given(st.text(max_size=12), st.sampled_from(BACKENDS))
def test_a_right_value_scores_one_with_any_back_end(value, backend):
  assert match(value, value, backend) == 1.0


@pytest.mark.real
def test_difflib_is_fuzzywuzzy_on_real_value_pairs(real_archive, use_difflib):
  """Consecutive values of the same slot: what a tracker might confuse."""
  last, pairs = {}, set()
  for dialogue in open_corpus(real_archive).dialogues("test"):
    for _, frame in dialogue.user_frames():
      for slot, values in frame.state.slot_values.items():
        old = last.get((frame.service, slot), values[0])
        pairs.add((values[-1], old))
        last[frame.service, slot] = values[0]
  assert len(pairs) > 5_000
  for ref, hyp in sorted(pairs)[::4]:
    assert match(ref, hyp) == fuzz.token_sort_ratio(ref, hyp) / 100, (ref, hyp)


def test_unknown_back_end_is_refused():
  with pytest.raises(SgdxError, match=r"(?s)fuzzy = 'jaro'.*difflib, levenshtein, exact"):
    match("a", "b", "jaro")
