"""Examples of single user turns, for CoCo's generator and classifier."""

import types

import pytest

from sgdx_t5x.corpus.dialogue import USER, Dialogue
from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.coco.turn_examples import (
  classifier_examples,
  generator_examples,
  goal_examples,
)


def test_a_turn_about_no_service_is_generated_but_not_classified():
  corpus = open_corpus(SAMPLE)
  data = next(corpus.dialogues("test")).to_json()
  turns = sum(turn["speaker"] == USER for turn in data["turns"])
  data["turns"].append({"speaker": USER, "utterance": "Bye", "frames": []})
  one = types.SimpleNamespace(
    dialogues=lambda split: [Dialogue.from_json(data)], schema=corpus.schema
  )
  assert len(list(generator_examples(one, "test"))) == turns + 1
  assert len(list(classifier_examples(one, "test"))) == turns


def test_goals_in_a_folder_are_refused(tmp_path, monkeypatch):
  """Regression: an IsADirectoryError."""
  monkeypatch.setenv("SGDX_GOALS", str(tmp_path))
  with pytest.raises(SgdxError, match="is a folder"):
    list(goal_examples())
