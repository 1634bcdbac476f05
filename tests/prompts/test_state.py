"""The format "state": prompt and target by hand, answers of all kinds, every gold state."""

import dataclasses

import pytest

from sgdx_t5x.corpus.dialogue import State, frame_id
from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import Intent, Service, Slot
from sgdx_t5x.prompts.protocol import ServicePair, service_pairs
from sgdx_t5x.prompts.state import StateStyle, StateText

INTENT = Intent("Book", "book it", True, ("city", "seats"), ("with_pool",), ())
ORIGINAL = Service(
  "Hotels_1",
  "rooms to stay in",
  (
    Slot("city", "where it is", False),
    Slot("seats", "number of people", True, ("1", "2", "None")),
    Slot("with_pool", "whether it has one", True, ("True", "False")),
    Slot("phone", "its number", False),  # no intent takes it: never in a state
  ),
  (INTENT,),
)
REWORDED = Service(
  "Lodging_1",
  "places for the night",
  (
    Slot("town_of_stay", "the town", False),
    Slot("guests", "how many", True, ("1", "2", "None")),
    Slot("swimming", "a pool", True, ("True", "False")),
    Slot("contact", "phone", False),
  ),
  (INTENT,),
)
PAIR = ServicePair(ORIGINAL, REWORDED)
FRAME = ExampleId("v1", "test", "1-000-Hotels_1")


def state(**values):
  return State("Book", (), {slot: (value,) for slot, value in values.items()})


def test_prompt_and_target_by_hand():
  (prompt,) = StateText().prompts(FRAME, PAIR, (("USER", "Two in Rome"), ("SYSTEM", "Pool?")))
  assert prompt.text == (
    "Lodging : places for the night [slot] town of stay : the town "
    "[slot] guests : how many [PVs] 1, 2, None [slot] swimming : a pool [PVs] True, False "
    "[user] Two in Rome [system] Pool?"
  )
  (bare,) = StateText(StateStyle(descriptions=False, values=False)).prompts(FRAME, PAIR, ())
  assert bare.text == "Lodging [slot] town of stay [slot] guests [slot] swimming"
  # In the schema's order, whatever the state's.
  given = state(with_pool="True", city="Rome")
  assert StateText().targets(FRAME, PAIR, given) == ["town of stay = Rome || swimming = True"]
  assert StateText().targets(FRAME, PAIR, state()) == ["none"]


def test_names_that_are_nearly_alike():
  """As shown, a name is that of one slot; in another way of writing, of the first."""
  names = ("user_id", "userId", "b=c", "+1", "-1", "नाम", "नमी")
  slots = tuple(Slot(name, "", False) for name in names)
  intent = dataclasses.replace(INTENT, required_slots=names, optional_slots=())
  service = Service("A_1", "", slots, (intent,))
  pair = ServicePair(service, service)
  for name in names:
    (target,) = StateText().targets(FRAME, pair, state(**{name: "x = y"}))
    assert StateText().read(target, FRAME, pair).slot_values == {name: ("x = y",)}
  assert StateText().read("USERID = x", FRAME, pair).slot_values == {"userId": ("x",)}


@pytest.mark.parametrize(
  ("text", "values", "ignored"),
  [
    ("none", {}, 0),
    ("", {}, 0),
    ("town of stay = New York || guests = 2", {"city": "New York", "seats": "2"}, 0),
    ("Town_of stay=new york||swimming = TRUE", {"city": "new york", "with_pool": "True"}, 0),
    ("guests = none", {"seats": "None"}, 0),
    ("guests = seven", {"seats": "seven"}, 0),  # a wrong answer, not none
    ("town of stay = DontCare || guests = dontcare", {"city": "dontcare", "seats": "dontcare"}, 0),
    ("town of stay = Rome || town of stay = Oslo", {"city": "Rome"}, 0),
    ("town of stay = a = b | c", {"city": "a = b | c"}, 0),
    ("city = Rome || guests = 1 || swimming =", {"seats": "1"}, 2),  # not the variant's; no value
    ("I think guests 2", {}, 0),
  ],
)
def test_answers(text, values, ignored):
  found = StateText().read(text, FRAME, PAIR)
  assert found.slot_values == {slot: (value,) for slot, value in values.items()}
  assert found.ignored == ignored
  assert found.active_intent is None


@pytest.mark.parametrize("variant", ["original", "v1", "v5"])
def test_every_gold_state_comes_back(variant):
  corpus, text_format = open_corpus("sample"), StateText()
  pairs = service_pairs(corpus.schema("test"), corpus.schema("test", variant))
  for dialogue in corpus["test"]:
    for turn, frame in dialogue.user_frames():
      pair = pairs[frame.service]
      example = ExampleId(variant, "test", frame_id(dialogue.dialogue_id, turn, frame.service))
      (target,) = text_format.targets(example, pair, frame.state)
      found = text_format.read(target, example, pair).slot_values
      first = {slot: values[:1] for slot, values in frame.state.slot_values.items()}
      assert found == first
