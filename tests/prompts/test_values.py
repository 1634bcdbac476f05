"""How answers name possible values."""

import pytest
from commands import assert_four_parts

from sgdx_t5x.errors import UsageError
from sgdx_t5x.prompts import FORMATS, load_format
from sgdx_t5x.prompts.values import matching_value


@pytest.mark.parametrize(
  ("text", "values", "found"),
  [
    ("$$", ("$", "$$", "$$$"), "$$"),
    ("1.5", ("15", "1.5"), "1.5"),
    ("ac", ("A/C", "AC"), "AC"),  # but for case before but for punctuation
    ("twin-bed", ("Twin bed",), "Twin bed"),
    ("NONE", ("one", "None"), "None"),
    ("?", ("$", "yes"), None),  # no letters and no digits match nothing
    ("", ("",), None),
  ],
)
def test_the_closest_value_is_meant(text, values, found):
  assert matching_value(text, values) == found


def test_a_value_may_be_named_as_the_prompt_shows_it():
  shown = {"True": "yes", "False": "no"}.__getitem__
  assert matching_value("No.", ("True", "False"), shown) == "False"


@pytest.mark.parametrize("name", ["t5dst", "d3st", "sdt"])
def test_a_style_names_a_field_that_it_lacks(name):
  """Regression: a bare TypeError."""
  assert name in FORMATS
  style = type(load_format(name).style)
  with pytest.raises(UsageError) as e:
    style(lowercas=True)
  assert_four_parts(str(e.value), f"{style.__name__} has no argument 'lowercas'", "lowercase")
