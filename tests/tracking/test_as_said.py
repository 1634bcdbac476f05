"""Uncased answers get the spelling of the dialogue."""

import pytest

from sgdx_t5x.tracking.as_said import as_said

SAID = ("A table at Café Zoë for 14 people, 7:30 PM.", "Is 4 or St. John's fine?", "cafe zoe, yes")


@pytest.mark.parametrize(
  ("answer", "spelled"),
  [
    ("7 : 30 pm", "7:30 PM"),
    ("cafe zoe", "cafe zoe"),  # the latest utterance counts
    ("at cafe zoe", "at Café Zoë"),
    ("st . john ' s", "St. John's"),
    ("4", "4"),
    ("1", "1"),  # not the one of 14
    ("nowhere", "nowhere"),
    ("", ""),
  ],
)
def test_spelling(answer, spelled):
  assert as_said(answer, SAID) == spelled


def test_combining_marks_belong_to_their_letter():
  said = ("At Cafe\u0301, Zoe\u0308s",)  # as macOS writes names of files
  assert as_said("cafe", said) == "Cafe\u0301"
  assert as_said("zoe", said) == "zoe"  # not said: "Zoës" is
  assert as_said("S", said) == "S"


def test_a_number_within_another_is_not_it():
  assert as_said("PEOPLE", ("14 people",)) == "people"
  assert as_said("4 People", ("14 people",)) == "4 People"
