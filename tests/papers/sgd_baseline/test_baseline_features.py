"""The SGD baseline's examples: texts of schema elements, truncated utterances, targets."""

import pytest
from places import ROOT

from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
from sgdx_t5x.corpus.schema import Intent, Schema, Service, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.sgd_baseline.baseline_features import (
  UNFOUND,
  BaselineReader,
  BaselineStyle,
  element_texts,
  table_texts,
  targets,
)
from sgdx_t5x.records.turns import NONE, FrameContext, Gold
from sgdx_t5x.spandst import answers
from sgdx_t5x.spandst.span_targets import read_choice
from sgdx_t5x.spandst.spandst import Choice
from sgdx_t5x.spandst.vocabulary import WordPieceVocabulary
from sgdx_t5x.variants.variant_schemas import VariantSchemas

CITY, SEATS, PHONE = range(3)
CAFES = Service(
  "Cafes_1",
  "Coffee",
  (
    Slot("city", "Where", False),
    Slot("seats", "How many", True, ("1", "2")),
    Slot("phone", "Number", True, ("5-5",)),
  ),
  (Intent("Find", "Look for", False, ("city",), {"seats": "dontcare"}, ("phone",)),),
)
EMPTY = Service("Empty_1", "Nothing", (), (Intent("Ask", "Ask", False, (), {}, ()),))
SCHEMA = Schema([CAFES, EMPTY])
VOCABULARY = WordPieceVocabulary(ROOT / "sgdx_t5x/corpus/sample/vocab.txt", lower_case=True)
TEXTS = list(element_texts(SCHEMA, BaselineStyle()))


def row(pair):
  return TEXTS.index(pair) + 1


def context(user, system="", service=0):
  return FrameContext("1-000-Cafes_1", 0, service, system, user, (), (service,))


def reader(**lengths):
  return BaselineReader(SCHEMA, VOCABULARY, row, lengths=lengths)


def test_the_texts_of_the_released_code():
  assert TEXTS == [
    ("Coffee", "Find Look for"),
    ("Coffee", "city Where"),
    ("Coffee", "seats How many"),
    ("seats How many", "1"),
    ("seats How many", "2"),
    ("Coffee", "phone Number"),
    ("phone Number", "5-5"),
    ("Nothing", "Ask Ask"),
  ]
  described = list(element_texts(SCHEMA, BaselineStyle(names=False)))
  assert described[:4] == [
    ("Coffee", "Look for"),
    ("Coffee", "Where"),
    ("Coffee", "How many"),
    ("How many", "1"),
  ]


def test_an_example_names_rows():
  example = reader().example(context("in Rome", "where"))
  features = example.features
  assert features["intents"] == [1]
  assert features["slots"] == [2, 3, 6]
  fillable = answers.FILLABLE
  assert features["slot_context"] == [fillable | answers.SPAN_OPEN, fillable, 0]
  # Only values of tracked slots.
  assert (features["values"], features["value_slots"]) == ([4, 5], [2, 2])
  system, user = VOCABULARY.cut("where").ids, VOCABULARY.cut("in Rome").ids
  cls, sep = VOCABULARY.bos_id, VOCABULARY.eos_id
  assert features["inputs"] == [cls, *system, sep, *user, sep]
  assert features["segments"] == [3, *[1] * len(system), 3, *[2] * len(user), 3]


def test_targets_and_answers_mean_the_same():
  example = reader().example(context("in Rome for 2", "where"))
  right = {CITY: Choice(answers.SPAN, 1, 3, 7), SEATS: Choice(answers.VALUE, 1)}
  found = answers.target_rows(targets(example, right, Gold(0, (PHONE,), {}, ())))
  first, last = next(row[2:] for row in found if row[1] == answers.SPAN)
  assert set(found) == {
    (0, answers.INTENT, 1, 0),
    (1, answers.SPAN, first, last),
    (2, answers.VALUE, 2, 0),
    (3, answers.REQUESTED, 0, 0),
  }
  for slot, kind, a, b in found:
    if kind in (answers.SPAN, answers.VALUE):
      answer = answers.SlotAnswer(kind, a, b, 1.0, 0.0, 0.0)
      assert read_choice(example, answer) == right[slot - 1]
  none = answers.target_rows(targets(example, {CITY: UNFOUND}, Gold(NONE, (), {}, ())))
  assert none == [(0, answers.INTENT, 0, 0), (1, answers.SPAN, 0, 0)]
  cls = answers.SlotAnswer(answers.SPAN, 0, 0, 1.0, 0.0, 0.0)
  assert read_choice(example, cls) == Choice(answers.KEEP)


def test_long_utterances_are_cut_at_the_beginning():
  """The system's first; there is room for 5 pieces."""
  system, user, said = "c", "efgh", context("e f g h", "a b c")
  example = reader(inputs=8).example(said)
  flat = [VOCABULARY.cut(c).ids[0] for c in system], [VOCABULARY.cut(c).ids[0] for c in user]
  cls, sep = VOCABULARY.bos_id, VOCABULARY.eos_id
  assert example.features["inputs"] == [cls, *flat[0], sep, *flat[1], sep]
  # Answers still map to the user's original characters.
  last = len(example.features["inputs"]) - 2
  choice = read_choice(example, answers.SlotAnswer(answers.SPAN, last, last, 1.0, 0.0, 0.0))
  assert said.user[choice.start : choice.end] == user[-1]


def test_a_user_alone_is_cut_at_the_beginning():
  example = reader(inputs=8).example(context("a b c d e f g"))
  shown = [VOCABULARY.cut(c).ids[0] for c in "cdefg"]
  assert example.features["inputs"][2:-1] == shown


def test_a_service_without_slots_is_asked_for_its_intent():
  features = reader().example(context("Hi", service=1)).features
  assert features["intents"] == [8]
  assert features["slots"] == features["values"] == []


def test_a_service_too_large_says_which_feature():
  with pytest.raises(SgdxError, match="has 3 slots") as e:
    reader(slots=2, slot_context=2).check()
  assert "TASK_FEATURE_LENGTHS['slots']" in e.value.expected


def test_the_samples_table_has_all_that_its_tasks_show():
  corpus = open_corpus(SAMPLE)
  schemas = VariantSchemas(corpus)
  texts = set(table_texts(schemas, corpus.splits))
  for split, variant in (("test", "v3"), ("train", "corrupt_2"), ("dev", "original")):
    assert texts >= set(element_texts(schemas.get(split, variant), BaselineStyle()))
  only = table_texts(schemas, ["test"], ["v3"])
  assert set(only) == set(element_texts(schemas.get("test", "v3"), BaselineStyle()))
