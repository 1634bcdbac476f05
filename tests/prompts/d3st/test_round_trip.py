"""Gold states of SGD survive a round trip through D3ST targets, under the official comparison."""

import collections

import pytest

from sgdx_t5x.corpus.dialogue import frame_id
from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.metrics.goals import goal_scores
from sgdx_t5x.prompts.d3st import D3ST, D3stStyle
from sgdx_t5x.prompts.protocol import service_pairs


def lost(corpus, formats, splits=("train", "dev", "test")):
  """Returns (number of frames, name of a format -> (split, what went wrong) -> frames)."""
  num_frames, wrong = 0, {name: collections.Counter() for name in formats}
  for split in splits:
    pairs = service_pairs(corpus.schema(split), corpus.schema(split))
    for dialogue in corpus.dialogues(split):
      for turn, frame in dialogue.user_frames():
        num_frames += 1
        key = ExampleId("original", split, frame_id(dialogue.dialogue_id, turn, frame.service))
        for name, prompt_format in formats.items():
          for what in differences(prompt_format, key, pairs[frame.service], frame.state):
            wrong[name][split, what] += 1
  return num_frames, wrong


def differences(prompt_format, key, pair, state):
  """Yields which parts of a state differ after the round trip."""
  [text] = prompt_format.targets(key, pair, state)
  found = prompt_format.read(text, key, pair)
  if not same_values(pair.original, state.slot_values, found.slot_values):
    yield "state"
  if found.active_intent != state.active_intent:
    yield "intent"
  if sorted(found.requested_slots) != sorted(state.requested_slots):
    yield "requested slots"
  if found.ignored:
    yield "index"


def same_values(service, gold, found):
  """Whether JGA is 1; most values differ in case at most and need no fuzzy comparison."""
  if gold.keys() == found.keys() and all(
    found[slot][0] in (values[0], " ".join(values[0].lower().split()))
    for slot, values in gold.items()
    if slot in service.noncategorical_slots
  ):
    categorical = gold.keys() - service.noncategorical_slots
    return all(found[slot][0] == gold[slot][0] for slot in categorical)
  return goal_scores(service, gold, found)["joint_goal_accuracy"] == 1


def test_states_of_the_sample_survive():
  corpus = open_corpus("sample")
  styles = [
    D3stStyle(),
    D3stStyle(join=" | "),
    D3stStyle(order="schema", values="none", lowercase=False),
    D3stStyle(values="a", slots="tracked", numeric_choices=True, description="name"),
  ]
  num_frames, wrong = lost(corpus, {str(style): D3ST(style) for style in styles}, ("dev",))
  assert num_frames > 500
  # With slots=tracked, targets cannot request other slots.
  *whole, tracked = wrong.values()
  assert whole == [{}, {}, {}]
  assert {what for _, what in tracked} <= {"requested slots"}


@pytest.mark.real
@pytest.mark.long
def test_states_of_sgd_survive(real_archive):
  """ " | " also occurs inside values: "Ginza | Japanese Sushi Restaurant"."""
  formats = {"||": D3ST(), "|": D3ST(D3stStyle(join=" | "))}
  num_frames, wrong = lost(open_corpus(real_archive), formats)
  assert num_frames == 228_659
  assert wrong["||"] == {}
  assert wrong["|"] == {("train", "state"): 69, ("dev", "state"): 1}
