"""T5DST prompts: strings as in the field notes' sources, and reading values back."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.schema import Intent, Service, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.protocol import ServicePair
from sgdx_t5x.prompts.t5dst import T5DST, PromptStyle
from sgdx_t5x.prompts.t5dst import text as t5dst

KIND = Slot("account_type", "Which account", True, ("checking", "Savings", "None"))
CITY = Slot("city", "Where to", False)
ID = Slot("account_id", "Never asked for", False)
BANK = Service(
  "Banks_21",
  "Manage  bank accounts",
  (KIND, CITY, ID),
  (Intent("Find", "Find it", False, ("city",), {"account_type": "checking"}, ("account_id",)),),
)
HISTORY = (("USER", "I need cash. "), ("SYSTEM", "How much?"), ("USER", "Fifty"))
SAID = "[USER] I need cash. [SYSTEM] How much? [USER] Fifty"


@pytest.mark.parametrize(
  ("style", "slot", "expected"),
  [
    ({}, CITY, "[domain] Banks [slot] city Where to"),
    (
      {},
      KIND,
      "[domain] Banks [slot] account type Which account [PVs] checking, Savings, None",
    ),
    ({"values": "absent"}, KIND, "[domain] Banks [slot] account type Which account"),
    (
      {"service_description": True, "slot_description": False},
      CITY,
      "[domain] Banks Manage bank accounts [slot] city",
    ),
    # The authors' later form (field notes 3b): no names, lettered choices, lower case.
    (
      {"service_name": False, "slot_name": False, "values": "letters", "lowercase": True},
      KIND,
      "[slot] which account a) checking b) savings c) none",
    ),
  ],
)
def test_prompt_of_each_style(style, slot, expected):
  style = PromptStyle(**style)
  said = SAID.lower() if style.lowercase else SAID
  frame = ExampleId("v1", "test", "1_00000-004-Banks_1")
  prompts = T5DST(style).prompts(frame, ServicePair(BANK, BANK), HISTORY)
  assert prompts[BANK.slots.index(slot)].text == f"{said} {expected}"


def test_which_slots_are_asked_for():
  assert t5dst.slot_indices(BANK, PromptStyle()) == (0, 1)
  assert t5dst.slot_indices(BANK, PromptStyle(slots="all")) == (0, 1, 2)


def test_which_gold_value_is_the_target():
  values = ["6 pm", "six", "18:00"]
  assert t5dst.target_text(CITY, [], PromptStyle()) == "none"
  assert t5dst.target_text(CITY, values, PromptStyle()) == "6 pm"
  assert t5dst.target_text(CITY, values, PromptStyle(target="join")) == "6 pm || six || 18:00"
  sampled = {t5dst.target_text(CITY, values, PromptStyle(target="sample"), i) for i in range(9)}
  assert sampled == set(values)
  letters = PromptStyle(values="letters")
  assert t5dst.target_text(KIND, ["Savings"], letters) == "b"
  assert t5dst.target_text(KIND, ["dontcare"], letters) == "dontcare"


@pytest.mark.parametrize(
  ("slot", "text", "style", "value"),
  [
    (CITY, "none", {}, None),
    (CITY, " ", {}, None),
    (CITY, "dontcare", {}, "dontcare"),
    (CITY, " New   York ", {}, "New York"),
    (CITY, "6 pm || six", {"target": "join"}, "6 pm"),
    (KIND, "savings", {}, "Savings"),  # case
    (KIND, "Check ing", {}, "checking"),  # spacing
    (KIND, "none", {}, None),
    (KIND, "None", {}, "None"),  # SGD has a possible value "None" (Media_2)
    (KIND, "(none)", {"lowercase": True}, "None"),
    (KIND, "none", {"lowercase": True}, None),
    (KIND, "gold", {}, "gold"),  # outside the list: a wrong value, not an absent one
    (KIND, "b", {"values": "letters"}, "Savings"),
    (KIND, "B)", {"values": "letters"}, "Savings"),
    (KIND, "savings", {"values": "letters"}, "Savings"),
    (KIND, "z", {"values": "letters"}, "z"),
    (KIND, "ab", {"values": "letters"}, "ab"),  # two letters, which follow each other
    (KIND, ")", {"values": "letters"}, ")"),
  ],
)
def test_generated_text_is_read_back(slot, text, style, value):
  assert t5dst.read_value(text, slot, PromptStyle(**style)) == value


STYLES = [
  PromptStyle(values=values, lowercase=lowercase, target=target)
  for values in ("list", "letters", "absent")
  for lowercase in (False, True)
  for target in ("first", "sample", "join")
]


@pytest.mark.parametrize("style", STYLES, ids=str)
@pytest.mark.parametrize("value", [*KIND.possible_values, "dontcare"])
def test_every_possible_value_survives_the_way_there_and_back(style, value):
  assert t5dst.read_value(t5dst.target_text(KIND, [value], style), KIND, style) == value


words = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
free = st.lists(words, min_size=1, max_size=3).map(" ".join)


@given(free.filter(lambda v: v.lower() not in ("none", "dontcare")), st.sampled_from(STYLES))
def test_free_values_survive_but_for_case(value, style):
  read = t5dst.read_value(t5dst.target_text(CITY, [value], style), CITY, style)
  assert read == (value.lower() if style.lowercase else value)


def test_wrong_styles_are_refused():
  with pytest.raises(SgdxError, match=r"PromptStyle.values = 'lettered'") as error:
    PromptStyle(values="lettered")
  assert "'list', 'letters', 'absent'" in str(error.value)
  with pytest.raises(SgdxError, match="so that the prompt identifies its slot"):
    PromptStyle(slot_name=False, slot_description=False)
  many = dataclasses.replace(KIND, possible_values=tuple(map(str, range(30))))
  with pytest.raises(SgdxError, match="30 choices"):
    t5dst.slot_text(BANK, many, PromptStyle(values="letters"))


@pytest.mark.parametrize(
  ("name", "base"), [("Banks_1", "Banks"), ("Banks_21", "Banks"), ("Home", "Home")]
)
def test_service_names_lose_their_number(name, base):
  assert t5dst.base_name(name) == base
