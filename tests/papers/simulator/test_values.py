"""Value pools: canonical forms, and test-only values."""

import datetime
import random
import re

import pytest

from sgdx_t5x.papers.simulator.values import TODAY, VALUE_KINDS, parse_pool

# The format of each kind's values; the simulator says the first four in other ways.
FORMS = {
  "date": r"2019-0[3-7]-\d\d",
  "time": r"(0[7-9]|1\d|2[01]):(00|15|30|45)|22:00",
  "count": r"1?[1-9]|10",
  "price": r"\$\d+",
  "number": r"[1-9]\d?",
  "rating": r"[345]\.\d",
  "duration": r"\d+ minutes",
  "phone": r"\d{3}-555-01\d\d",  # 555-0100 to 555-0199 are never given to anyone
  "address": r"\d+ [A-Z][a-z]+ (Street|Avenue|Road|Lane|Square)",
  "title": r"[A-Z]\w+ [A-Z]\w+( [A-Z]\w+)?",
  "person": r"[A-Z]\w+ [A-Z]\w+",
  "station": r"[A-Z]\w+ [A-Z]\w+",
  "city": r"[A-Z][a-z]+",
  "style": r"[a-z]+",
}
CLOSED = {"date", "time", "count", "price", "number", "rating", "duration"}


def drawn(kind: str, *, held_out: bool = False, number: int = 2000) -> set[str]:
  pool, rng = parse_pool({"kind": kind}), random.Random(0)
  return {pool.draw(rng, held_out) for _ in range(number)}


def test_every_kind_is_tested_here():
  assert set(FORMS) == set(VALUE_KINDS)


@pytest.mark.parametrize("kind", FORMS)
def test_values_have_the_form_of_their_kind(kind):
  values = drawn(kind) | drawn(kind, held_out=True)
  assert [value for value in values if not re.fullmatch(FORMS[kind], value)] == []
  assert len(values) > 10


def test_dates_are_days_soon_after_today():
  days = {datetime.date.fromisoformat(date) for date in drawn("date")}
  assert min(days) == TODAY == datetime.date(2019, 3, 1)
  assert max(days) == datetime.date(2019, 6, 28)  # 119 days later: 30 + 30 + 31 + 28


@pytest.mark.parametrize("kind", sorted(set(FORMS) - CLOSED))
def test_held_out_values_are_drawn_only_when_asked_for(kind):
  train, test = drawn(kind), drawn(kind, held_out=True)
  assert not train & test
  # 30% are held out: 3/7 if all distinct values are drawn, about 1 if few repeat.
  assert 0.1 < len(test) / len(train) < 1.1


def test_a_pool_all_of_one_share_gives_what_it_has():
  pool = parse_pool({"list": ["only"]})
  assert {pool.draw(random.Random(0), held_out) for held_out in (False, True)} == {"only"}


@pytest.mark.parametrize("kind", sorted(CLOSED))
def test_closed_kinds_have_the_same_values_everywhere(kind):
  assert drawn(kind, number=4000) == drawn(kind, held_out=True, number=4000)
