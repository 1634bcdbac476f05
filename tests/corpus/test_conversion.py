"""The SGD-X conversion, rule by rule (dstc8 repository, generate_sgdx_dialogues.py)."""

import pytest
from commands import assert_four_parts, sgdx

from sgdx_t5x.corpus import variants
from sgdx_t5x.corpus.conversion import Renaming, convert_dialogue, renamings
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.opening import open_corpus

HOMES = {
  # A real slot called "intent" (SGD's Homes_2), and two slots that swap names (as in v3 of
  # Events_1, where a key renamed in place would overwrite the other).
  "Homes_2": Renaming(
    "Homes_21", {"intent": "purpose", "area": "city", "city": "area"}, {"Find": "Search"}
  )
}


def convert(frame, speaker="USER"):
  data = {
    "dialogue_id": "1",
    "services": ["Homes_2"],
    "turns": [{"speaker": speaker, "utterance": "hi", "frames": [{"service": "Homes_2", **frame}]}],
  }
  converted = convert_dialogue(Dialogue.from_json(data), HOMES).to_json()
  assert converted["services"] == ["Homes_21"]
  return converted["turns"][0]["frames"][0]


def test_state_spans_calls_and_results_are_renamed():
  frame = convert(
    {
      "slots": [{"slot": "area", "start": 0, "exclusive_end": 2}],
      "state": {
        "active_intent": "Find",
        "requested_slots": ["intent"],
        "slot_values": {"area": ["A"], "city": ["C"]},
      },
      "service_call": {"method": "Find", "parameters": {"city": "C"}},
      "service_results": [{"area": "A", "city": "C"}],
    }
  )
  assert frame == {
    "service": "Homes_21",
    "slots": [{"slot": "city", "start": 0, "exclusive_end": 2}],
    "state": {
      "active_intent": "Search",
      "requested_slots": ["purpose"],
      "slot_values": {"city": ["A"], "area": ["C"]},
    },
    "service_call": {"method": "Search", "parameters": {"area": "C"}},
    "service_results": [{"city": "A", "area": "C"}],
  }


def test_actions_tell_the_slot_intent_from_intents():
  actions = [
    {"act": "INFORM_INTENT", "slot": "intent", "values": ["Find"], "canonical_values": ["Find"]},
    {"act": "INFORM", "slot": "intent", "values": ["rent"]},
    {"act": "INFORM_COUNT", "slot": "count", "values": ["3"]},
    {"act": "GOODBYE"},
  ]
  assert convert({"actions": actions}, "SYSTEM")["actions"] == [
    {
      "act": "INFORM_INTENT",
      "slot": "intent",
      "values": ["Search"],
      "canonical_values": ["Search"],
    },
    {"act": "INFORM", "slot": "purpose", "values": ["rent"]},
    {"act": "INFORM_COUNT", "slot": "count", "values": ["3"]},
    {"act": "GOODBYE"},
  ]


def test_no_intent_stays():
  state = {"active_intent": "NONE", "requested_slots": [], "slot_values": {}}
  assert convert({"state": state})["state"] == state


def test_there_and_back_is_the_identity():
  corpus = open_corpus("sample")
  original = corpus.schema("test")
  for variant in corpus.variants[1:]:
    schema = corpus.schema("test", variant)
    for dialogue in list(corpus.dialogues("test"))[:14]:
      there = convert_dialogue(dialogue, renamings(original, schema))
      assert there != dialogue
      assert convert_dialogue(there, renamings(schema, original)) == dialogue


@pytest.mark.parametrize(
  "command",
  [
    ("prompts", "--variant", "ned", "--limit", "1"),
    ("data", "export", "--variant", "ned"),
    ("data", "export", "--variant", "ned+v1"),
  ],
)
def test_variants_of_dialogues_that_are_not_perturbed_so(command, tmp_path, capsys, monkeypatch):
  """Regression: `sgdx prompts` took the name for the variant alone."""
  monkeypatch.setattr(variants, "PERTURBATIONS", ("ned",))
  out = tmp_path / "out"
  assert sgdx(*command, "--corpus", "sample", "--out", out) == 1
  error = capsys.readouterr().err
  assert_four_parts(error, "whose test is not perturbed so", "dialogues as they were")
  assert not out.exists()
