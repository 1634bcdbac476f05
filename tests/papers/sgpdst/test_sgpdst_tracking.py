"""From features to answers to states: correct answers reach the upper bound of the rules."""

import pytest
from places import ROOT
from sgpdst_answers import ask, right_readers
from sgpdst_ceiling import ceiling, gold_labels
from walked import walked_scores

from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
from sgdx_t5x.corpus.schema import Schema, Service
from sgdx_t5x.papers.sgpdst.sgpdst_features import SgpReader, SgpStyle
from sgdx_t5x.papers.sgpdst.tracker import sgpdst_tracker
from sgdx_t5x.records.turns import NONE, FrameContext
from sgdx_t5x.spandst.vocabulary import WordPieceVocabulary
from sgdx_t5x.spandst.walk import Prediction, Question

VOCABULARY = WordPieceVocabulary(ROOT / "sgdx_t5x/corpus/sample/vocab.txt", lower_case=True)
STYLE = SgpStyle(utterance=150)


@pytest.mark.parametrize(("variant", "oracle"), [("original", False), ("v5", False), ("v5", True)])
def test_the_sample_is_tracked_as_far_as_the_rules_go(variant, oracle):
  corpus = open_corpus(SAMPLE)
  dialogues, original = list(corpus.dialogues("test"))[:40], corpus.schema("test")
  shown, seen = corpus.schema("test", variant), corpus.seen_services("test")
  readers = right_readers(dialogues, original, shown, VOCABULARY, STYLE, 400)
  gold = {frame: x[1:] for frame, x in gold_labels(dialogues, original).items()}
  tracker = sgpdst_tracker(original, readers, ask, gold if oracle else None)
  found = walked_scores(dialogues, original, tracker, seen)
  assert found.metrics["active_intent_accuracy"].mean() == 1
  assert (found.metrics["requested_slots_f1"] == 1).all()
  goal = found.metrics["joint_goal_accuracy"].mean() * 100
  assert goal == pytest.approx(ceiling(dialogues, original, seen, oracle)[0])
  assert goal > 90


def test_a_service_without_slots_has_an_intent_and_no_values():
  schema = Schema([Service("Empty_1", "", (), ())])
  readers = {
    part: SgpReader(part, schema, VOCABULARY, STYLE, 300)
    for part in ("intent", "combine", "copy", "cross")
  }
  context = FrameContext("1-000-Empty_1", 0, 0, "", "hello", (), (0,))
  predict = sgpdst_tracker(schema, readers, lambda part, asked: [[1, 1_000_000] for _ in asked])
  assert predict([Question(context, {})]) == [Prediction(NONE, (), {})]
