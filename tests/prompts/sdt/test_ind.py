"""SDT-ind, our own version: one example per slot, with a short demonstration of that slot."""

import dataclasses

import pytest

from sgdx_t5x.corpus.dialogue import SYSTEM, USER, State
from sgdx_t5x.corpus.example_id import SLOT, ExampleId
from sgdx_t5x.corpus.schema import Intent, Service, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.protocol import ServicePair
from sgdx_t5x.prompts.sdt import SDTInd, SdtIndStyle
from sgdx_t5x.prompts.sdt.demonstrations import Demonstration, demonstrations_text
from sgdx_t5x.prompts.sdt.ind import _short, _shown

SLOTS = (
  Slot("to", "Who gets it", False),
  Slot("kind", "Kind of account", True, ("Checking", "Savings")),
  Slot("fee", "What it costs", False),
  Slot("note", "What it says", False),
)
BANK = Service(
  "Banks_1", "", SLOTS, (Intent("Send", "", True, ("to",), {"kind": "", "note": ""}, ()),)
)
V3 = dataclasses.replace(
  BANK, slots=tuple(dataclasses.replace(s, name=f"{s.name}_x") for s in SLOTS)
)
PAIR = ServicePair(BANK, V3)
FRAME = ExampleId("v3", "test", "1_00000-002-Banks_1")
DEMOS = (
  Demonstration(
    "Banks_1",
    "[user] Hi [system] To whom? [user] To Ann [system] Ok [user] From savings",
    {"to": "Ann", "kind": "none", "note": "none"},
    "Send",
  ),
  Demonstration(
    "Banks_1", "[user] Use my savings", {"kind": "Savings", "to": "none", "note": "none"}, "Send"
  ),
)
HISTORY = ((USER, "Pay Bo"), (SYSTEM, "Yes"))


@pytest.fixture
def make(tmp_path):
  (tmp_path / "d.jsonl").write_text(demonstrations_text(DEMOS))

  def made(**style):
    return SDTInd(SdtIndStyle(demos=str(tmp_path / "d.jsonl"), **style))

  return made


def test_a_short_demonstration_of_each_slot(make):
  found = make(order="demonstration")
  assert (found.unit, found.asked(BANK)) == (SLOT, ("to", "kind", "note"))
  assert [prompt.text for prompt in found.prompts(FRAME, PAIR, HISTORY)] == [
    f"[example] {shown} [context] [user] pay bo [system] yes"
    for shown in (
      "[user] hi [system] to whom? [user] to ann [slot] to_x=ann",
      "[user] use my savings [slot] kind_x=b of possible values a) checking b) savings",
      "[user] hi [system] to whom? [user] to ann [system] ok [user] from savings "
      "[slot] note_x=none",
    )
  ]


def test_a_value_has_been_said_as_a_whole_word_only():
  text = "[user] On the 13th [system] For how many? [user] For 1"
  slots = {"to": "1", "kind": "none", "note": "none"}
  assert _short([Demonstration("Banks_1", text, slots, "Send")], "to").text == text


def test_the_leak_is_of_what_prompts_show():
  """The end of the first demonstration is shown for no slot with a value."""
  longer = "[user] Please send some of my money to Ann today [system] Ok [user] And then tell me "
  demos = (
    Demonstration(
      "Banks_1",
      f"{longer}what else I could do with it",
      {"to": "Ann", "kind": "none", "note": "none"},
      "Send",
    ),
    Demonstration(
      "Banks_1", "[user] Use my savings", {"kind": "Savings", "to": "none", "note": "money"}, "Send"
    ),
  )
  shown = {demo.text for demo in _shown(demos)}
  assert shown == {demos[0].text.partition(" [system]")[0], demos[1].text}


def test_targets_and_answers(make):
  found, state = make(lowercase=False), State("Send", (), {"to": ("Bo",), "kind": ("Checking",)})
  targets = found.targets(FRAME, PAIR, state)
  assert (targets[0], targets[2]) == ("to_x=Bo", "note_x=none")
  read = [
    found.read(text, FRAME.with_slot(slot), PAIR)
    for text, slot in zip(targets, found.asked(BANK), strict=True)
  ]
  assert read == ["Bo", "Checking", None]
  letters = {f.targets(x, PAIR, state)[1] for f in (found,) for x in map(_frame, range(20))}
  assert letters == {"kind_x=a", "kind_x=b"}
  assert found.read("savings", FRAME.with_slot("kind"), PAIR) == "Savings"
  assert found.read("", FRAME.with_slot("to"), PAIR) is None
  assert found.read("x", FRAME.with_slot("fee"), PAIR) is None


def _frame(number):
  return ExampleId("v3", "test", f"{number}-000-Banks_1")


def test_styles(make):
  assert make(values="list").style.frame_style.values == "list"
  with pytest.raises(SgdxError, match=r"values = 'x'"):
    make(values="x")
