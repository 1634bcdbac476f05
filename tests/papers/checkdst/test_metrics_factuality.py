"""Factuality: whether a dialogue has mentioned a value, by our rule and by CheckDST's."""

import pytest

from sgdx_t5x.papers.checkdst.metrics_factuality import History

SAID = ("A partial match at The  Ritz, please.", "In St. Mary's (north)?", "Yes, Zürich.")


@pytest.mark.parametrize(
  ("value", "first", "first_part"),
  [
    ("the ritz", 0, None),  # ours ignores case and extra whitespace
    ("The Ritz", 0, None),
    ("art", None, 0),  # part of a word
    ("St. Mary's", 1, 1),
    ("mary", 1, None),
    ("(north)?", 1, 1),
    ("zürich", 2, None),
    ("Zürich", 2, 2),
    ("Ritz, please. In", None, None),  # not across turns
    ("", None, 0),
    ("Oslo", None, None),
  ],
)
def test_where_a_value_is_said(value, first, first_part):
  history = History(SAID)
  for turn in range(3):
    assert history.has(value, turn) == (first is not None and turn >= first)
    assert history.has_part(value, turn) == (first_part is not None and turn >= first_part)
