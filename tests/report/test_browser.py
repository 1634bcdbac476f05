"""Texts of the error browser; test_page.py has the page."""

import pytest

from sgdx_t5x.report.browser import changed_words


@pytest.mark.parametrize(
  ("before", "after", "parts"),
  [
    ("To Elmport, please.", "To Ropmelt, please.", ["To ", "*Ropmelt", ", please."]),
    ("Book it", "Um, I mean book it", ["*Um, I mean book", " it"]),
    ("No", "No", ["No"]),
    ("", "Well", ["*Well"]),
    ("at San Jose", "at Nas Sejo", ["at ", "*Nas Sejo"]),
    ("I like it", "I uh like it", ["I ", "*uh", " like it"]),
    ("Well", " Well", [" Well"]),
  ],
)
def test_words_that_differ_are_marked(before, after, parts):
  found = changed_words(before, after)
  assert ["*" * is_new + text for is_new, text in found] == parts
  assert "".join(text for _, text in found) == after
