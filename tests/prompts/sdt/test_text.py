"""SDT prompts, targets and answers of a small service, by hand."""

import dataclasses
import random

import pytest
from google_rows import google_rows
from hypothesis import given
from hypothesis import strategies as st

from sgdx_t5x.corpus.dialogue import SYSTEM, USER, Dialogue, Frame, State, Turn
from sgdx_t5x.corpus.example_id import FRAME, ExampleId
from sgdx_t5x.corpus.schema import Intent, Service, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics.frames import PredictedFrame
from sgdx_t5x.prompts.protocol import ServicePair
from sgdx_t5x.prompts.sdt import SDT, SdtStyle
from sgdx_t5x.prompts.sdt.demonstrations import (
  Demonstration,
  demonstrations_text,
  parse_demonstrations,
)
from sgdx_t5x.prompts.sdt.layout import PARTS, chosen, shuffled_layout, written_layout
from sgdx_t5x.prompts.sdt.text import before_parts, read_answer, target_text, turn_text

SLOTS = (
  Slot("to", "Who gets it", False),
  Slot("to_kind", "Kind of account", True, ("Checking", "Savings", "None")),
  Slot("seats", "How many", True, ("1", "2")),
  Slot("fee", "What it costs", False),  # no intent takes it
)
INTENTS = (
  Intent("Send", "Send money", True, ("to",), {"to_kind": "dontcare"}, ()),
  Intent("Check", "Look at it", False, ("to_kind", "seats"), {}, ("fee",)),
)
BANK = Service("Banks_1", "A bank", SLOTS, INTENTS)
V3 = dataclasses.replace(
  BANK,
  name="Banks_13",
  slots=tuple(dataclasses.replace(s, name=f"{s.name}_x") for s in SLOTS),
  intents=tuple(dataclasses.replace(i, name=f"{i.name}X") for i in INTENTS),
)
PAIR = ServicePair(BANK, BANK)
FRAME_ID = ExampleId("v1", "test", "1_00000-002-Banks_1")
HISTORY = ((USER, "Hi  there"), (SYSTEM, "Yes?\nPlease"))
DEMOS = (
  Demonstration(
    "Banks_1",
    "[user] Two to Ann [system] Ok",
    {"to": "Ann", "seats": "2", "to_kind": "none"},
    "Send",
    ("Check", "Send"),
  ),
  Demonstration(
    "Banks_1", "[user] Bo", {"to_kind": "Savings", "to": "Bo", "seats": "dontcare"}, "NONE"
  ),
)
EXAMPLE = "[example] [user] two to ann [system] ok [slots]"
STATE = State("Check", (), {"to": ("Al", "Albert"), "to_kind": ("Savings",)})


@pytest.fixture
def file(tmp_path):
  path = tmp_path / "demos.jsonl"
  path.write_text(demonstrations_text(DEMOS))
  return str(path)


def texts(file, pair=PAIR, **style):
  style = {"order": "demonstration"} | style
  prompt_format = SDT(SdtStyle(demos=file, **style))
  [prompt] = prompt_format.prompts(FRAME_ID, pair, HISTORY)
  [target] = prompt_format.targets(FRAME_ID, pair, STATE)
  return prompt, target


def before(prompt):
  return " ".join(prompt.before)


LETTERED = (
  "to=ann seats=b of possible values a) 1 b) 2 "
  "to_kind=none of possible values a) checking b) savings c) none"
)
LISTED = (
  "to=ann seats=2 of possible values 1, 2 to_kind=none of possible values checking, savings, none"
)


@pytest.mark.parametrize(
  ("style", "shown", "target"),
  [
    ({}, LETTERED, "[state] to=al seats=none to_kind=b"),
    ({"values": "list"}, LISTED, "[state] to=al seats=none to_kind=savings"),
    ({"target": "active"}, LETTERED, "[state] to=al to_kind=b"),
    (
      {"intents": "letters"},
      f"{LETTERED} [intent] b of possible values a) check b) send",
      "[state] to=al seats=none to_kind=b [intent] a",
    ),
    (
      {"intents": "list", "target": "active"},
      f"{LETTERED} [intent] send of possible values check, send",
      "[state] to=al to_kind=b [intent] check",
    ),
    (
      {"slot_ids": True},
      LETTERED.replace("to=", "0=").replace("seats=", "1=").replace("to_kind=", "2="),
      "[state] 0=al 1=none 2=b",
    ),
  ],
  ids=str,
)
def test_prompts_and_targets_of_each_style(file, style, shown, target):
  prompt, found = texts(file, **style)
  assert before(prompt) == f"{EXAMPLE} {shown} [context]"
  assert prompt.turns == ("[user] hi  there", "[system] yes? please")
  assert prompt.text == f"{before(prompt)} [user] hi  there [system] yes? please"
  assert found == target


def test_a_variant_renames_slots_and_intents_not_the_demonstration(file):
  prompt, target = texts(file, ServicePair(BANK, V3), intents="letters", lowercase=False)
  assert before(prompt) == (
    "[EXAMPLE] [user] Two to Ann [system] Ok [slots] to_x=Ann seats_x=b of possible values a) 1 b) "
    "2 to_kind_x=none of possible values a) Checking b) Savings c) None [intent] b of possible "
    "values a) CheckX b) SendX [CONTEXT]"
  )
  assert target == "[state] to_x=Al seats_x=none to_kind_x=b [intent] a"


def test_descriptions_precede_the_example(file):
  prompt, _ = texts(file, descriptions=True, intents="list")
  assert before(prompt).startswith(
    "to=who gets it seats=how many a) 1 b) 2 to_kind=kind of account a) checking b) savings c) "
    "none check=look at it send=send money [example] [user] two"
  )
  assert before(texts(file, descriptions=True, values="list")[0]).startswith(
    "to=who gets it seats=how many to_kind=kind of account [example]"
  )


def test_which_demonstrations_are_shown(file):
  prompt, target = texts(file, demo=1)
  assert before(prompt).startswith("[example] [user] bo [slots] to_kind=b of possible values a) ch")
  assert "seats=dontcare of possible values" in before(prompt)
  assert target == "[state] to_kind=b to=al seats=none"
  prompt, target = texts(file, demo=-1)
  assert before(prompt).count("[example]") == 2
  assert target == "[state] to=al seats=none to_kind=b to_kind=b to=al seats=none"
  _, target = texts(file, demo=-1, order="fixed")
  assert sorted(part.partition("=")[0] for part in target.split()) == [
    "[state]",
    "seats",
    "to",
    "to_kind",
  ]
  with pytest.raises(SgdxError, match="Banks_1 has 2 demonstrations"):
    texts(file, demo=2)


def test_several_demonstrations_as_googles_script_shows_them(file):
  """Each has its own descriptions and numbering; the target's numbers continue across them."""
  prompt, target = texts(
    file, demo=-1, descriptions=True, slot_ids=True, intents="list", values="list"
  )
  assert before(prompt) == (
    "0=who gets it 1=how many 2=kind of account check=look at it send=send money "
    "[example] [user] two to ann [system] ok [slots] 0=ann 1=2 of possible values 1, 2 "
    "2=none of possible values checking, savings, none [intent] send of possible values check, "
    "send 0=kind of account 1=who gets it 2=how many send=send money check=look at it "
    "[example] [user] bo [slots] 0=savings of possible values checking, savings, none 1=bo "
    "2=dontcare of possible values 1, 2 [intent] none of possible values send, check [context]"
  )
  assert target == "[state] 0=al 1=none 2=savings 3=savings 4=al 5=none [intent] check"
  prompt_format = SDT(SdtStyle(demos=file, demo=-1, slot_ids=True, order="demonstration"))
  found = prompt_format.read("[state] 5=b 0=al 3=a 2=b 6=x", FRAME_ID, PAIR)
  state = {"seats": ("2",), "to": ("al",), "to_kind": ("Checking",)}  # the first answers count
  assert found == PredictedFrame(state, ignored=1)


def test_no_intent(file):
  for intents, lowercase, expected in (
    ("list", False, "NONE"),
    ("list", True, "none"),
    ("letters", False, "none"),
  ):
    style = SdtStyle(demos=file, intents=intents, lowercase=lowercase, target="active")
    [target] = SDT(style).targets(FRAME_ID, PAIR, State("NONE", (), {}))
    assert target == f"[state]  [intent] {expected}"


def test_no_state(file):
  [target] = SDT(SdtStyle(demos=file, target="active")).targets(
    FRAME_ID, PAIR, State("NONE", (), {})
  )
  assert target == "[state] "  # as Google's script writes it


# --- order -----------------------------------------------------------------------------------


def test_googles_sequence_of_draws():
  """Section B1 of the notes: demonstrations, then the slots of each, then a slot's values, once."""
  demos = chosen(DEMOS, SdtStyle(demo=-1))
  found = shuffled_layout(written_layout(demos, BANK), random.Random(123), PARTS)
  rng = random.Random(123)
  order = [0, 1]
  rng.shuffle(order)
  names, values, intents = [], {}, []
  for demo in (DEMOS[k] for k in order):
    slots = list(demo.slots)
    rng.shuffle(slots)
    names.append(slots)
    for slot in slots:
      possible = list(SLOTS[BANK.slot_index[slot]].possible_values)
      if possible and slot not in values:
        rng.shuffle(possible)
        values[slot] = possible
    if not intents:
      intents = list(demo.intents or BANK.intent_index)
      rng.shuffle(intents)
  assert [demo.text for demo in found.demos] == [DEMOS[k].text for k in order]
  assert [[SLOTS[i].name for i in slots] for slots in found.slots] == names
  assert {
    SLOTS[i].name: [SLOTS[i].possible_values[k] for k in shown] for i, shown in found.values.items()
  } == values
  assert [INTENTS[i].name for i in found.intents] == intents


def drawn_rows(shuffle, **style):
  frame = Frame("Banks_1", STATE)
  turns = (Turn(USER, "Hi ", (frame,)), Turn(SYSTEM, "Yes", ()), Turn(USER, "Do", (frame,)))
  demos = parse_demonstrations(demonstrations_text(DEMOS).encode(), "x")
  dialogues = [Dialogue("1_00000", ("Banks_1",), turns)] * 8
  return [
    str(x) for x in google_rows(dialogues, {"Banks_1": PAIR}, demos, SdtStyle(**style), shuffle)
  ]


def test_the_script_draws_only_for_what_it_shows_with_letters():
  for style in ({"values": "list"}, {"intents": "list"}, {"intents": "absent"}):
    style = {"values": "list", "demo": -1, **style}
    assert drawn_rows(True, **style) == drawn_rows(("slots",), **style)
    assert drawn_rows(("values", "intents"), **style) == drawn_rows(False, **style)
  lettered = {"intents": "letters", "demo": -1}
  found = [drawn_rows(shuffle, **lettered) for shuffle in (False, *[(x,) for x in PARTS], True)]
  assert len({tuple(rows) for rows in found}) == 5


def test_the_order_follows_from_the_id_and_the_seed(file):
  def order(example=FRAME_ID, **style):
    layout = SDT(SdtStyle(demos=file, **style)).layout(example, PAIR)
    return before_parts(PAIR, layout, SdtStyle())

  assert order() == order(dataclasses.replace(FRAME_ID, variant="v2"))
  assert order() != order(dataclasses.replace(FRAME_ID, split="dev"))
  ids = [ExampleId("v1", "test", f"1_{i:05d}-000-Banks_1") for i in range(40)]
  assert len({order(x) for x in ids}) > 20
  assert len({order(seed=seed) for seed in range(20)}) > 10
  # 3! orders of slots, 3! and 2! of values: all occur, about equally often
  many = [order(ExampleId("v1", "test", f"{i}-000-Banks_1")) for i in range(7200)]
  counts = [many.count(x) for x in set(many)]
  assert len(counts) == 72
  assert min(counts) > 50


# --- reading ---------------------------------------------------------------------------------

STYLES = [
  SdtStyle(values=values, intents=intents, target=target, slot_ids=ids, order=order, lowercase=low)
  for values in ("letters", "list")
  for intents in ("absent", "letters", "list")
  for target in ("all", "active")
  for ids in (False, True)
  for order in ("fixed", "demonstration")
  for low in (False, True)
]
words = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=6)
free = st.lists(words, min_size=1, max_size=3).map(" ".join)
states = st.fixed_dictionaries(
  {},
  optional={
    "to": free.filter(lambda v: v.lower() not in ("none", "dontcare")).map(lambda v: (v,)),
    "to_kind": st.sampled_from([("Checking",), ("Savings",), ("dontcare",)]),
    "seats": st.sampled_from([("1",), ("2",)]),
  },
)


@given(states, st.sampled_from(["Send", "Check", "NONE"]), st.sampled_from(STYLES), st.integers(0))
def test_every_state_survives_the_way_there_and_back(values, intent, style, number):
  written = written_layout(DEMOS[:1], BANK)
  layout = shuffled_layout(written, random.Random(number), PARTS)
  for pair in (PAIR, ServicePair(BANK, V3)):
    target = target_text(pair, State(intent, (), values), layout, style)
    found = read_answer(target, pair, layout, style)
    expected = {
      slot: (v.lower() if style.lowercase and slot == "to" else v,) for slot, [v] in values.items()
    }
    assert found.slot_values == expected
    assert found.active_intent == (None if style.intents == "absent" else intent)


def test_names_need_not_be_words():
  slots = (SLOTS[0], dataclasses.replace(SLOTS[1], name="to whom"), *SLOTS[2:])
  pair = ServicePair(BANK, dataclasses.replace(BANK, slots=slots))
  text = "[state] to whom=b to=ann"
  found = read_answer(text, pair, written_layout(DEMOS[:1], BANK), SdtStyle())
  assert found.slot_values == {"to": ("ann",), "to_kind": ("Savings",)}


@given(st.text(), st.sampled_from(STYLES))
def test_reading_never_raises(text, style):
  layout = written_layout(DEMOS, BANK)
  for said in (text, f"[state] to={text} seats={text}", f"[state] 0={text} [intent] {text}"):
    found = read_answer(said, PAIR, layout, style)
    assert set(found.slot_values) <= {"to", "to_kind", "seats"}


@pytest.mark.parametrize(
  ("text", "state", "style"),
  [
    ("", {}, {}),
    ("nonsense", {}, {}),
    ("[state]", {}, {}),
    ("to=ann", {"to": "ann"}, {}),  # without its tag
    ("junk to=x [state] to=ann", {"to": "ann"}, {}),
    ("[state] TO=Ann Seats=B)", {"to": "Ann", "seats": "2"}, {}),
    ("[state] to=ann to=bo", {"to": "ann"}, {}),  # the first counts
    ("[state] to_kind=savings seats=2", {"to_kind": "Savings", "seats": "2"}, {}),
    ("[state] to_kind=c", {"to_kind": "None"}, {}),  # SGD has a possible value "None"
    ("[state] to_kind=none", {}, {}),
    ("[state] to_kind=None", {"to_kind": "None"}, {"values": "list", "lowercase": False}),
    ("[state] to_kind=z seats=7", {"to_kind": "z", "seats": "7"}, {}),  # wrong, not absent
    ("[state] to=a=b x to_kind=a", {"to": "a=b x", "to_kind": "Checking"}, {}),
    ("[state] fee=3 to=ann", {"to": "ann"}, {}),  # not a tracked slot
    ("[state] to=ann other=3 fee=4 seats=a", {"to": "ann", "seats": "1"}, {}),
    ("[state] to=dontcare seats=DONTCARE", {"to": "dontcare", "seats": "dontcare"}, {}),
    ("[state] to=ann [intent] b", {"to": "ann"}, {}),
    ("[state] 0=ann 9=x 2=b", {"to": "ann", "to_kind": "Savings"}, {"slot_ids": True}),
  ],
)
def test_answers(text, state, style):
  found = read_answer(text, PAIR, written_layout(DEMOS[:1], BANK), SdtStyle(**style))
  unknown = sum(text.count(f"{name}=") for name in ("fee", "other", "9"))
  values = {slot: (value,) for slot, value in state.items()}
  assert found == PredictedFrame(values, ignored=unknown)


@pytest.mark.parametrize(
  ("said", "intent"),
  [
    ("[intent] a", "Check"),
    ("[intent] Send", "Send"),
    ("[intent] none", "NONE"),
    ("[intent] z", "NONE"),
    ("", "NONE"),
  ],
)
def test_intents_that_are_answered(said, intent):
  style = SdtStyle(intents="letters")
  found = read_answer(f"[state] to=x {said}", PAIR, written_layout(DEMOS[:1], BANK), style)
  assert found == PredictedFrame({"to": ("x",)}, intent, ignored=int("z" in said))


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
  ("style", "part"),
  [
    ({"values": "absent"}, "available: 'letters', 'list'"),
    ({"order": "google"}, "available: 'fixed', 'demonstration'"),
    ({"demo": -2}, "SdtStyle.demo = -2"),
    ({"demos": ""}, "SdtStyle.demos = ''"),
  ],
)
def test_wrong_styles_are_refused(style, part):
  with pytest.raises(SgdxError, match=part):
    SdtStyle(**style)


def test_more_values_than_letters_are_refused():
  many = dataclasses.replace(SLOTS[2], possible_values=tuple(map(str, range(30))))
  bank = dataclasses.replace(BANK, slots=(*SLOTS[:2], many, SLOTS[3]))
  layout = written_layout(DEMOS[:1], bank)
  with pytest.raises(SgdxError, match="slot 'seats' has 30 choices"):
    before_parts(ServicePair(bank, bank), layout, SdtStyle())
  parts = before_parts(ServicePair(bank, bank), layout, SdtStyle(values="list"))
  assert "29 to_kind" in " ".join(parts)


def test_turns_keep_their_blanks():
  assert turn_text(USER, " Hi  you\n", SdtStyle(lowercase=False)) == "[user]  Hi  you "


def test_the_unit_is_a_frame():
  assert (SDT.unit, SDT().asked(BANK)) == (FRAME, (None,))
  assert parse_demonstrations(demonstrations_text(DEMOS).encode(), "x").source == "own"
