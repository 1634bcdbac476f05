"""From features to answers to states: correct answers give all gold states."""

import itertools

import pytest
from minilm import minilm
from places import ROOT
from span_answers import right_answer
from spandst_ceiling import changes, gold_and_before
from walked import walked_scores

from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
from sgdx_t5x.corpus.schema import Intent, Schema, Service, Slot
from sgdx_t5x.records.turns import NONE, FrameContext, Gold, Span, gold_history
from sgdx_t5x.spandst import answers
from sgdx_t5x.spandst.span_features import SpanReader
from sgdx_t5x.spandst.span_targets import read_choice, targets
from sgdx_t5x.spandst.span_text import SpanStyle, service_pieces
from sgdx_t5x.spandst.span_tracking import span_prediction
from sgdx_t5x.spandst.spandst import right_choices
from sgdx_t5x.spandst.vocabulary import WordPieceVocabulary
from sgdx_t5x.tasks import sample_encoder_vocabulary


def track(dialogues, original, variant, vocabulary, seen):
  """Returns the scores with the correct answers, encoded as a model's output; the longest span."""
  reader, longest = SpanReader(variant, vocabulary), 0
  gold, before = gold_and_before(dialogues, original)

  def predict(questions):
    nonlocal longest
    found = []
    for question in questions:
      context: FrameContext = question.context
      example = reader.example(context, question.states)
      service = original.services[context.service]
      right = right_choices(
        service, context, gold[context.frame_id], before[context.frame_id], example.choices
      )
      rows = targets(example, right, gold[context.frame_id])
      spans = [r for r in answers.target_rows(rows) if r[1] == answers.SPAN]
      longest = max([longest, *(last - first + 1 for *_, first, last in spans)])
      vector = right_answer(rows, len(example.slots))
      found.append(span_prediction(original, question, example, vector))
    return found

  return walked_scores(dialogues, original, predict, seen), longest


def sample_vocabulary():
  return WordPieceVocabulary(ROOT / "sgdx_t5x/corpus/sample/vocab.txt", lower_case=True)


def test_the_sample_is_tracked_without_a_mistake():
  corpus = open_corpus(SAMPLE)
  dialogues, original = list(corpus.dialogues("test"))[:60], corpus.schema("test")
  for variant in ("original", "v5"):
    shown = corpus.schema("test", variant)
    seen = corpus.seen_services("test")
    found, _ = track(dialogues, original, shown, sample_vocabulary(), seen)
    assert found.metrics["joint_goal_accuracy"].mean() == 1
    assert found.metrics["active_intent_accuracy"].mean() == 1
    assert (found.metrics["requested_slots_f1"] == 1).all()


@pytest.mark.long
@pytest.mark.real
def test_sgd_is_tracked_without_a_mistake_in_pieces(real_archive):
  corpus = open_corpus(real_archive)
  dialogues, original = list(corpus.dialogues("dev")), corpus.schema("dev")
  vocabulary = WordPieceVocabulary(minilm())
  seen = corpus.seen_services("dev")
  found, longest = track(dialogues, original, original, vocabulary, seen)
  assert longest <= 14  # in pieces, like `SpanModel.longest_span`
  assert found.metrics["joint_goal_accuracy"].mean() == 1
  assert found.metrics["active_intent_accuracy"].mean() == 1


_BITS = {
  answers.CLEAR: answers.CLEAR_OPEN,
  answers.SYSTEM: answers.SYSTEM_OPEN,
  answers.SPAN: answers.SPAN_OPEN,
  answers.MEMORY: answers.MEMORY_OPEN,
}


@pytest.mark.real
def test_every_change_in_train_has_a_right_answer_that_the_model_may_choose(real_archive):
  """Otherwise the loss would teach to keep the old value.

  Train begins with Restaurants_1, whose free-text slot `cuisine` has possible_values, of which only
  11% of its values are.
  """
  corpus = open_corpus(real_archive)
  dialogues = list(itertools.islice(corpus.dialogues("train"), 64))
  original = corpus.schema("train")
  gold, before = gold_and_before(dialogues, original)
  cuisine = original["Restaurants_1"].slots[original["Restaurants_1"].slot_index["cuisine"]]
  assert cuisine.possible_values
  assert not cuisine.is_categorical
  for variant in ("original", "v1"):
    reader = SpanReader(corpus.schema("train", variant), WordPieceVocabulary(minilm()))
    number = 0
    for context, _, states in (x for d in dialogues for x in gold_history(d, original)):
      example = reader.example(context, states)
      right = right_choices(
        original.services[context.service],
        context,
        gold[context.frame_id],
        before[context.frame_id],
        example.choices,
      )
      rows = answers.target_rows(targets(example, right, gold[context.frame_id]))
      for slot, _ in changes(right):
        place = example.slots.index(slot)
        bits = example.features["slot_context"][place]
        kinds = [row[1] for row in rows if row[0] == place + 1 and row[1] <= answers.MEMORY]
        assert bits & answers.FILLABLE
        assert any(bits & _BITS.get(kind, answers.FILLABLE) for kind in kinds), context.frame_id
        number += 1
    assert number > 300


@pytest.mark.real
@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_spans_are_for_free_text_slots_and_for_all_of_them(split, real_archive):
  schema = open_corpus(real_archive).schema(split)
  vocabulary = WordPieceVocabulary(minilm())
  reader = SpanReader(schema, vocabulary)
  for position, service in enumerate(schema):
    example = reader.example(FrameContext("", 0, position, "", "", (), ()), {})
    bits = dict(zip(example.slots, example.features["slot_context"], strict=True))
    values = service_pieces(service, vocabulary, SpanStyle(), 40).values
    for slot in service.tracked_slots:
      assert bool(bits[slot] & answers.SPAN_OPEN) != service.slots[slot].is_categorical
      assert bool(values[slot]) == service.slots[slot].is_categorical


@pytest.mark.parametrize("many", range(60, 84))
def test_a_value_that_is_half_cut_off_is_no_label(many):
  """The oldest words go first; what is left of "San Francisco" would be a wrong value."""
  slot = Slot("city", "city of it", False)
  intent = Intent("Find", "find it", False, ("city",), {}, ())
  service = Service("A_1", "x", (slot,), (intent,))
  lengths = {"inputs": 96, "segments": 96}
  reader = SpanReader(Schema([service]), sample_encoder_vocabulary(), None, lengths)
  user, value = f"I want to go to San Francisco {'please ' * many}", "San Francisco"
  start = user.index(value)
  context = FrameContext("0-00-A_1", 0, 0, "", user, (), (0,))
  gold = Gold(NONE, (), {0: (value,)}, (Span(0, True, start, start + len(value)),))
  example = reader.example(context, {})
  rows = targets(example, right_choices(service, context, gold, {}, example.choices), gold)
  for _, kind, first, last in answers.target_rows(rows):
    if kind == answers.SPAN:
      choice = read_choice(example, answers.SlotAnswer(kind, first, last, 1, 0, 0))
      assert user[choice.start : choice.end] == value
