"""States to calls and back: gold survives, and what calls cannot express is counted."""

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgdx_t5x.corpus.dialogue import State
from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import Intent, Service, Slot
from sgdx_t5x.errors import UsageError
from sgdx_t5x.metrics.goals import JOINT_GOAL, goal_scores
from sgdx_t5x.prompts.protocol import ServicePair, service_pairs
from sgdx_t5x.tools.calls import calls_text, read_calls, state_calls
from sgdx_t5x.tools.delivery import ToolStyle
from sgdx_t5x.tools.format import ToolCalls

EATS = Service(
  "Eats",
  "Food",
  (
    Slot("fine", "", True, ("True", "False")),
    Slot("seats", "", True, ("1", "2")),
    Slot("class", "", False),
    Slot("time", "", False),
  ),
  (
    Intent("Find", "", False, ("class",), {"fine": "dontcare"}, ()),
    Intent("Book", "", True, ("class", "time"), {"seats": "2"}, ()),
  ),
)
PAIR = ServicePair(EATS, EATS)


def state(intent, **values):
  return State(intent, (), {slot: (value,) for slot, value in values.items()})


def read(*calls, pair=PAIR):
  return read_calls([{"name": f"Eats__{name}", "arguments": given} for name, given in calls], pair)


# --- round trip ----------------------------------------------------------------------------


def check_round_trip(corpus, split, limit=None):
  """Round-trips the gold state of each frame, cycling through the variants.

  Returns (frames, wrong states, frames whose intent calls cannot express, other wrong intents).
  """
  schema, fmt = corpus.schema(split), ToolCalls()
  pairs = [service_pairs(schema, corpus.schema(split, v)) for v in corpus.variants]
  frames = wrong = unsayable = wrong_intents = 0
  for dialogue in itertools.islice(corpus.dialogues(split), limit):
    for turn, frame in dialogue.user_frames():
      pair = pairs[frames % len(pairs)][frame.service]
      example = ExampleId("v", split, f"{dialogue.dialogue_id}-{turn:03d}-{frame.service}")
      found = fmt.read(fmt.targets(example, pair, frame.state)[0], example, pair)
      frames += 1
      scores = goal_scores(pair.original, frame.state.slot_values, found.slot_values, "exact")
      wrong += scores[JOINT_GOAL] != 1
      same = found.facts.intent == frame.state.active_intent
      cannot = frame.state.active_intent == "NONE" and bool(frame.state.slot_values)
      unsayable += cannot
      wrong_intents += not (same or cannot)
      facts = found.facts
      assert not any((facts.other_tools, facts.invented, facts.mistyped, facts.invalid))
  return frames, wrong, unsayable, wrong_intents


def test_every_gold_state_of_the_sample_survives():
  """802 frames of the sample's test; 60 goodbyes have a state and no active intent."""
  corpus = open_corpus("sample")
  frames = [f for d in corpus.dialogues("test") for _, f in d.user_frames()]
  assert sum(f.state.active_intent == "NONE" and bool(f.state.slot_values) for f in frames) == 60
  assert check_round_trip(corpus, "test") == (802, 0, 60, 0)


@pytest.mark.long
@pytest.mark.real
def test_every_gold_state_of_sgd_survives(real_archive):
  """All 228,659 frames of the archive at hand.

  The exceptions, counted in the corpus itself: frames without an active intent whose state is
  not empty, at the ends of dialogues.
  """
  corpus = open_corpus(real_archive)
  assert {split: check_round_trip(corpus, split) for split in corpus.splits} == {
    "train": (175_780, 0, 12_584, 0),
    "dev": (26_077, 0, 1_753, 0),
    "test": (26_802, 0, 1_887, 0),
  }


@settings(max_examples=150)
@given(
  st.sampled_from(["NONE", "Find", "Book"]),
  st.dictionaries(st.sampled_from(list(EATS.slot_index)), st.text(min_size=1, max_size=9)),
)
def test_any_state_survives(intent, values):
  """Values need not be possible values, or sensible: strings are kept as they are."""
  text = calls_text(state_calls(PAIR, state(intent, **values)))
  found = read_calls(json.loads(text), PAIR)
  assert found.slot_values == {slot: (value,) for slot, value in values.items()}
  assert found.facts.intent == intent or (intent == "NONE" and values)


# --- by hand -------------------------------------------------------------------------------


def test_slots_of_other_intents_come_first_and_the_active_intent_last():
  calls = state_calls(PAIR, state("Book", fine="True", **{"class": "thai", "time": "7 pm"}))
  assert calls == [
    {"name": "Eats__Find", "arguments": {"fine": "True"}},
    {"name": "Eats__Book", "arguments": {"class": "thai", "time": "7 pm"}},
  ]
  assert state_calls(PAIR, state("Find")) == [{"name": "Eats__Find", "arguments": {}}]
  assert state_calls(PAIR, state("NONE")) == []
  several = State("Find", (), {"class": ("thai food", "thai")})
  assert state_calls(PAIR, several)[0]["arguments"] == {"class": "thai food"}


def test_values_of_other_types():
  found = read(
    ("Book", {"seats": 2.0, "class": ["thai", 7], "time": None}), ("Find", {"fine": True})
  )
  assert found.slot_values == {"seats": ("2",), "class": ("thai", "7"), "fine": ("True",)}
  assert (found.facts.mistyped, found.facts.arguments, found.facts.intent) == (3, 4, "Find")
  # Strings are not corrected: a categorical value must match exactly, as in DSTC8 predictions.
  assert read(("Find", {"fine": "true", "class": ""})).slot_values == {"fine": ("true",)}
  assert read(("Find", {"class": {"a": 1}})).slot_values == {"class": ("{'a': 1}",)}
  # Nor are numbers: -1 is not "1".
  assert read(("Book", {"seats": -2})).slot_values == {"seats": ("-2",)}


def test_a_later_call_counts_and_may_take_back():
  assert read(("Find", {"class": "a"}), ("Book", {"class": "b"})).slot_values == {"class": ("b",)}
  assert read(("Find", {"class": "a"}), ("Book", {"class": None})).slot_values == {}


def test_what_a_tool_does_not_have_is_left_out_and_counted():
  found = read(("Find", {"class_": "thai", "time": "7 pm", "x": "y"}), ("Cook", {"class": "x"}))
  assert found.slot_values == {"class": ("thai",)}  # BFCL's name of `class`
  assert (found.facts.invented, found.facts.arguments) == (2, 3)
  assert found.facts.other_tools == ("Eats__Cook",)
  assert found.facts.calls == 2


@pytest.mark.parametrize(
  ("calls", "values"),
  [
    (None, {}),
    ({"name": "Eats__Find"}, {}),
    ("[]", {}),
    ([None], {}),
    ([{"name": "Eats__Find", "arguments": '{"class": "th'}], {}),
    ([{"name": "Eats__Find", "arguments": "[1]"}], {}),
    ([{"name": "Eats__Find", "arguments": "[" * 100_000}], {}),
    (
      [
        {"name": "Eats__Find", "arguments": 3},
        {"name": "Eats__Book", "arguments": '{"time": "7"}'},
      ],
      {"time": ("7",)},
    ),
  ],
)
def test_what_is_not_valid_json_is_a_wrong_answer(calls, values):
  found = read_calls(calls, PAIR)
  assert found.facts.invalid
  assert found.slot_values == values


@given(
  st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda x: (
      st.lists(x, max_size=3)
      | st.dictionaries(st.sampled_from(["name", "arguments", "Eats__Find", "fine"]), x, max_size=3)
    ),
  )
)
def test_no_json_raises(calls):
  read_calls(calls, PAIR)
  read_calls([{"name": "Eats__Find", "arguments": {"fine": calls}}], PAIR)


def test_a_call_without_arguments_is_valid():
  for given_ in ({}, "", "{}", None, "null", " \n"):
    found = read(("Find", given_))
    assert (found.facts.invalid, found.facts.intent, found.slot_values) == (False, "Find", {})


def test_text_prompts_show_the_tools_of_the_frame_only():
  example = ExampleId("original", "test", "1-000-Eats")
  history = (("USER", "Hi."), ("SYSTEM", "Yes?"), ("USER", "Eat."))
  text = ToolCalls().prompts(example, PAIR, history)[0].text
  assert text.startswith('[tools] {"name": "Eats__Find"')
  assert text.endswith("[user] Hi. [assistant] Yes? [user] Eat. [calls]")
  assert text.count('"parameters"') == 2
  for style in (ToolStyle("all"), ToolStyle(shots=2), ToolStyle(seed=1)):
    with pytest.raises(UsageError, match="sgdx tools requests"):
      ToolCalls(style).prompts(example, PAIR, history)
