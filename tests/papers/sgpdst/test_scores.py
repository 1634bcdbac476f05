"""The scores of the page are those of the stored files."""

import pytest
from places import ROOT
from stored_scores import check_page, scores_in_words, stored

PAGE = "docs/papers/sgpdst.md"


def test_the_page_has_the_stored_scores():
  check_page(PAGE, "sgpdst")


@pytest.mark.parametrize("run", ["none-1", "backtrans-0", "backtrans-1"])
def test_the_page_has_those_of_the_other_runs(run):
  assert scores_in_words(stored("sgpdst", run)) in (ROOT / PAGE).read_text("utf-8")
