"""Example ids: written and read in one place, for both units."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgdx_t5x.corpus.dialogue import frame_id
from sgdx_t5x.corpus.example_id import FRAME, SLOT, ExampleId
from sgdx_t5x.errors import SgdxError

names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
dialogues = st.lists(names, min_size=1, max_size=3).map("/".join)  # an id may hold slashes


@given(names, names, dialogues, st.integers(0, 2000), names, st.none() | names)
def test_ids_survive_the_way_there_and_back(variant, split, dialogue, turn, service, slot):
  example = ExampleId(variant, split, frame_id(dialogue, turn, service), slot)
  assert ExampleId.parse(str(example)) == example
  assert example.unit == (FRAME if slot is None else SLOT)
  assert (example.dialogue_id, example.service) == (dialogue, service)
  assert example.with_slot(None).with_slot(slot) == example


def test_the_two_forms():
  slot = ExampleId("v3", "dev", "1_00000-002-Banks_2", "account_type")
  assert str(slot) == "v3/dev/1_00000-002-Banks_2/account_type"
  assert str(slot.with_slot(None)) == "v3/dev/1_00000-002-Banks_2/*"
  assert ExampleId("v3", "dev", "17").dialogue_id == ""


@pytest.mark.parametrize(
  "text",
  [
    *("17", "", "v1/dev", "v1/dev/", "/dev/a-000-B/x", "v1//a-000-B/x", "/dev/a-000-B/*", "v1/*"),
    *("v1/dev/a-000-B", "v1/dev/a-000-B/", "v1/dev//kind", "v1/dev//*"),  # incomplete ids
  ],
)
def test_malformed_ids_are_refused(text):
  with pytest.raises(SgdxError, match=r"p\.jsonl, line 3: example id") as error:
    ExampleId.parse(text, "p.jsonl, line 3")
  assert "variant/split/frame/slot, as in" in error.value.expected
  assert "variant/split/frame/*, as in v3/dev/1_00000-002-Banks_2/*" in error.value.expected
