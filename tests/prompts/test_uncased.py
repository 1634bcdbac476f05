"""Targets in the pieces of an uncased vocabulary come back as the values they were made from."""

import subprocess
import sys

import pytest
from minilm import minilm

from sgdx_t5x.corpus.dialogue import frame_id
from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import Slot
from sgdx_t5x.metrics import fuzzy
from sgdx_t5x.prompts import load_format
from sgdx_t5x.prompts.protocol import service_pairs
from sgdx_t5x.prompts.t5dst.text import PromptStyle, read_value, target_text
from sgdx_t5x.tasks import sample_encoder_vocabulary

UNCASED = PromptStyle(lowercase=True)


def through_pieces(text):
  vocabulary = sample_encoder_vocabulary()
  return vocabulary.decode(list(vocabulary.encode(text)))


@pytest.mark.parametrize("style", [load_format("t5dst", UNCASED), load_format("d3st")])
def test_gold_states_come_back(style):
  corpus = open_corpus("sample")
  schema = corpus.schema("test")
  pairs, frames = service_pairs(schema, schema), 0
  for dialogue in corpus["test"][:60]:
    for turn, frame in dialogue.user_frames():
      pair, gold = pairs[frame.service], frame.state.slot_values
      example = ExampleId("original", "test", frame_id(dialogue.dialogue_id, turn, frame.service))
      texts = map(through_pieces, style.targets(example, pair, frame.state))
      found = {}
      for slot, text in zip(style.asked(pair.original), texts, strict=True):
        answer = style.read(text, example.with_slot(slot), pair)
        found |= {slot: (answer,)} if slot else answer.slot_values
      found = {slot: values for slot, values in found.items() if values[0] is not None}
      assert found.keys() == gold.keys()
      for slot, (value,) in found.items():
        if pair.original.slots[pair.original.slot_index[slot]].is_categorical:
          assert value in gold[slot]
        else:  # as the official scorer compares them
          assert max(fuzzy.match(one, value) for one in gold[slot]) == 1
      frames += 1
  assert frames > 100


def test_the_value_none_is_not_no_value():
  """SGD's subtitle_language has a possible value "None"."""
  slot = Slot("subtitle_language", "", True, ("None", "English"))
  for values in ((), ("None",), ("English",), ("dontcare",)):
    text = through_pieces(target_text(slot, values, UNCASED))
    assert read_value(text, slot, UNCASED) == next(iter(values), None)


@pytest.mark.long
def test_the_vocabulary_of_the_tasks_decides():
  program = """
import seqio
from sgdx_t5x import tasks
print(tasks.REGISTERED["t5dst_sgd"].style_or_format.style.lowercase)
print(type(seqio.get_mixture_or_task("d3st_backtrans").output_features["inputs"].vocabulary))
"""
  done = subprocess.run(
    [sys.executable, "-c", program],
    env={"SGDX_VOCAB": str(minilm() / "vocab.txt"), "PATH": "/usr/bin:/bin"},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.stdout.splitlines()[0] == "True", done.stderr[-2000:]
  assert "WordPieceVocabulary" in done.stdout
