"""Trackers of prompt formats: what their answers depend on."""

import types

import pytest
from minilm import minilm

from sgdx_t5x.corpus.dialogue import frame_id
from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.metrics.goals import goal_scores
from sgdx_t5x.prompts import load_format
from sgdx_t5x.prompts.protocol import service_pairs
from sgdx_t5x.prompts.sdt import SDT, SdtStyle
from sgdx_t5x.prompts.t5dst import T5DST
from sgdx_t5x.prompts.t5dst.text import PromptStyle
from sgdx_t5x.spandst.vocabulary import WordPieceVocabulary
from sgdx_t5x.tracking.prompted import PromptedTracker
from sgdx_t5x.tracking.protocol import Shown


def settings(prompt_format):
  """Of a model that is never run."""
  task = types.SimpleNamespace(
    style_or_format=prompt_format, name="task", format=prompt_format.name
  )
  vocabulary = types.SimpleNamespace(eos_id=1, tokenizer=None)
  model = types.SimpleNamespace(input_vocabulary=vocabulary)
  given = types.SimpleNamespace(task=task, model=model, settings={"weights": "a"}, lengths={})
  return PromptedTracker(given).settings


def test_demonstrations_are_settings(tmp_path):
  one = '{"service": "A_1", "text": "[user] in rome", "slots": {"city": "rome"}}\n'
  found = []
  for number, text in enumerate((one, one.replace("rome", "oslo"))):
    (tmp_path / f"{number}.jsonl").write_text(text)
    found.append(settings(SDT(SdtStyle(demos=str(tmp_path / f"{number}.jsonl")))))
  assert found[0]["demos"] != found[1]["demos"]
  assert {**found[0], "demos": ""} == {**found[1], "demos": ""}
  assert "demos" not in settings(T5DST())


@pytest.fixture(scope="module")
def real_test(real_archive):
  """The schema of the real test split and every tenth of its dialogues."""
  corpus = open_corpus(real_archive)
  return corpus.schema("test"), list(corpus.dialogues("test"))[::10]


@pytest.mark.real
@pytest.mark.parametrize(
  "style", [load_format("t5dst", PromptStyle(lowercase=True)), *map(load_format, ("d3st", "state"))]
)
def test_gold_answers_in_minilms_pieces_are_spelled_as_the_dialogue_does(style, real_test):
  """Of a tenth of test; docs/trackers.md has all."""
  (schema, dialogues), vocabulary = real_test, WordPieceVocabulary(minilm())
  pairs, gold, texts = service_pairs(schema, schema), {}, []
  for dialogue in dialogues:
    for turn, frame in dialogue.user_frames():
      name = frame_id(dialogue.dialogue_id, turn, frame.service)
      gold[name] = pairs[frame.service], frame.state.slot_values
      texts += style.targets(ExampleId("original", "test", name), pairs[frame.service], frame.state)
  knowing = types.SimpleNamespace(
    task=types.SimpleNamespace(style_or_format=style),
    model=types.SimpleNamespace(input_vocabulary=vocabulary, output_vocabulary=vocabulary),
    lengths={"inputs": 512},
    # As a model answers: with what ends a text, and padded.
    answer=lambda prompts: [[*vocabulary.encode(x), vocabulary.eos_id, 0] for x in texts],
  )
  shown = Shown("test", "original", schema, schema)
  (found,) = PromptedTracker(knowing).track(dialogues, shown)
  number, exact = 0, 0
  for name, (pair, state) in gold.items():
    values = found[name].slot_values
    assert goal_scores(pair.original, state, values)["joint_goal_accuracy"] == 1, name
    for slot in state.keys() & pair.original.noncategorical_slots:
      number += 1
      exact += values[slot][0] in state[slot]
      assert values[slot][0].lower() in [value.lower() for value in state[slot]]
  assert len(gold) > 2000
  assert exact / number > 0.998
