"""The system's acts, read from its utterances: right answers give all that can be read."""

import dataclasses

import pytest
from minilm import minilm
from places import ROOT
from span_answers import right_answer

from sgdx_t5x.corpus.dialogue import SYSTEM, Frame, Turn
from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
from sgdx_t5x.records import turns
from sgdx_t5x.records.turns import NONE, Act, Gold, Span, user_turns
from sgdx_t5x.spandst import answers
from sgdx_t5x.spandst.span_features import SpanReader, targets
from sgdx_t5x.spandst.system_turns import as_read, example_of, labels_of, with_acts
from sgdx_t5x.spandst.vocabulary import WordPieceVocabulary


def text_alone(dialogue, but=()):
  """The dialogue without acts, except in the system's turns `but`."""
  bare = []
  for number, turn in enumerate(dialogue.turns):
    if turn.speaker == SYSTEM and number not in but:
      turn = dataclasses.replace(turn, frames=tuple(Frame(f.service) for f in turn.frames))
    bare.append(turn)
  return dataclasses.replace(dialogue, turns=tuple(bare))


class RightReader:
  """Answers the system's turns of an annotated dialogue as a model without a mistake."""

  def __init__(self, dialogue, original, reader):
    self.answers = []  # (input, answer) in the order of turns: one text may mean two things
    for context, *_ in user_turns(dialogue, original):
      # The user may answer another service than the one that the system spoke of.
      for frame in dialogue.turns[context.turn - 1].frames if context.turn else ():
        service, spans = original[frame.service], []
        about = dataclasses.replace(context, service=original.names.index(frame.service))
        for span in frame.slots:
          slot = service.slot_index[span["slot"]]
          spans.append(Span(slot, False, span["start"], span["exclusive_end"]))
        labels, gold = labels_of(service, about, Gold(NONE, (), {}, tuple(spans)))
        example = example_of(reader, about)
        rows = targets(example, labels, gold)
        self.answers.append((example.features["inputs"], right_answer(rows, len(example.slots))))

  def __call__(self, features):
    vectors = []
    for one in features:
      inputs = [x for x, _ in self.answers]
      vectors.append(self.answers.pop(inputs.index(one["inputs"]))[1])
    return vectors


def folded(acts):
  return {act._replace(values=tuple(map(str.casefold, act.values))) for act in acts}


def assert_all_is_read(dialogues, original, shown, vocabulary):
  reader, kinds = SpanReader(shown, vocabulary), set()
  for dialogue in dialogues:
    answer = RightReader(dialogue, original, reader)
    (read,) = with_acts([text_alone(dialogue)], original, reader, answer)
    both = zip(user_turns(dialogue, original), user_turns(read, original), strict=True)
    for (annotated, *_), (context, *_) in both:
      assert folded(as_read(annotated.acts)) == folded(context.acts), context.frame_id
      kinds.update(act.act for act in context.acts)
  return kinds


def test_all_acts_of_the_sample_are_read():
  corpus = open_corpus(SAMPLE)
  dialogues, original = corpus["test"][:60], corpus.schema("test")
  vocabulary = WordPieceVocabulary(ROOT / "sgdx_t5x/corpus/sample/vocab.txt", lower_case=True)
  for variant in ("original", "v5"):
    kinds = assert_all_is_read(dialogues, original, corpus.schema("test", variant), vocabulary)
    assert kinds >= {turns.OFFER, turns.CONFIRM, turns.REQUEST}


@pytest.mark.real
def test_all_acts_of_sgd_are_read(real_archive):
  corpus = open_corpus(real_archive)
  for split in ("train", "dev"):
    dialogues, schema = corpus[split][::100], corpus.schema(split)
    assert_all_is_read(dialogues, schema, schema, WordPieceVocabulary(minilm()))


def test_annotated_acts_stay_and_silence_is_not_read():
  corpus = open_corpus(SAMPLE)
  dialogue, original = corpus["test"][0], corpus.schema("test")
  vocabulary = WordPieceVocabulary(ROOT / "sgdx_t5x/corpus/sample/vocab.txt", lower_case=True)
  reader = SpanReader(original, vocabulary)

  def read(turns_of_dialogue):
    bare = dataclasses.replace(dialogue, turns=tuple(turns_of_dialogue))
    answer = RightReader(dialogue, original, reader)
    num_answers = len(answer.answers)
    (complete,) = with_acts([bare], original, reader, answer)
    return complete.turns, num_answers - len(answer.answers)

  assert read(dialogue.turns) == (dialogue.turns, 0)
  annotated_first, num_read = read(text_alone(dialogue, but=[1]).turns)
  assert annotated_first[1] == dialogue.turns[1]
  assert num_read > 0
  silent = (dialogue.turns[0], Turn(SYSTEM, "", ()), dialogue.turns[2])
  assert read(silent) == (silent, 0)
  # A turn without frames is about the services of the user turn before it.
  user, system, *_ = dialogue.turns
  (_, with_frames, _), num_read = read([user, Turn(SYSTEM, system.utterance, ()), user])
  assert [frame.service for frame in with_frames.frames] == [f.service for f in user.frames]
  assert num_read == len(user.frames)


def test_what_can_be_told_from_an_utterance():
  def act(kind, slot=0, *values):
    return Act(1, 0, kind, slot, values)

  read = as_read(
    [
      act(turns.INFORM, 0, "7 pm"),
      act(turns.CONFIRM, 1, "two"),
      act(turns.OFFER, 2, "one", "two"),  # which of them is the value?
      act(turns.REQUEST, 3, "red", "blue"),  # suggestions
      act(turns.REQUEST, NONE),
      act(turns.NOTIFY_SUCCESS, NONE),
      act(turns.OFFER_INTENT, 1),
    ]
  )
  assert read == (
    act(turns.OFFER, 0, "7 pm"),
    act(turns.CONFIRM, 1, "two"),
    act(turns.REQUEST, 3),
    act(turns.OFFER_INTENT, 1),
  )


def test_all_slots_are_open_and_the_user_is_not_read():
  corpus = open_corpus(SAMPLE)
  original = corpus.schema("test")
  vocabulary = WordPieceVocabulary(ROOT / "sgdx_t5x/corpus/sample/vocab.txt", lower_case=True)
  (_, (context, *_), *_) = user_turns(corpus["test"][0], original)
  features = example_of(SpanReader(original, vocabulary), context).features
  assert answers.USER_UTTERANCE not in features["segments"]
  assert answers.SYSTEM_UTTERANCE in features["segments"]
  for number, bits in enumerate(features["slot_context"], start=1):
    is_open = answers.FILLABLE
    is_open |= 0 if number in features["value_slots"] else answers.SPAN_OPEN
    assert bits == is_open
