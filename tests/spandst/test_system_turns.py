"""Values that the system gave, read from its utterances: right answers give all of them."""

import dataclasses

import pytest
from minilm import minilm
from places import ROOT
from span_answers import right_answer

from sgdx_t5x.corpus.dialogue import SYSTEM, Frame, Turn
from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
from sgdx_t5x.records.turns import NONE, OFFER, Gold, Span, user_turns
from sgdx_t5x.spandst import answers
from sgdx_t5x.spandst.choices import _GIVING
from sgdx_t5x.spandst.span_features import SpanReader, targets
from sgdx_t5x.spandst.spandst import Choice, _spans
from sgdx_t5x.spandst.system_turns import _with_all_slots_open, with_values
from sgdx_t5x.spandst.vocabulary import WordPieceVocabulary

VOCABULARY = WordPieceVocabulary(ROOT / "sgdx_t5x/corpus/sample/vocab.txt", lower_case=True)


def given(context, service):
  """The acts of a service in the system's last turn that give a single value."""
  for act in context.acts:
    is_now = (act.turn, act.service) == (context.turn - 1, service)
    if is_now and act.act in _GIVING and act.slot != NONE and len(act.values) == 1:
      yield act


class RightReader:
  """Answers the system's turns of an annotated dialogue as a model without a mistake."""

  def __init__(self, dialogue, original, reader):
    self.answers = []  # (input, answer) in the order of turns: one text may mean two things
    for context, *_ in user_turns(dialogue, original):
      # The user may answer another service than the one that the system spoke of.
      for frame in dialogue.turns[context.turn - 1].frames if context.turn else ():
        service, position = original[frame.service], original.names.index(frame.service)
        about = dataclasses.replace(context, service=position, user="", acts=())
        spans = []
        for span in frame.slots:
          slot = service.slot_index[span["slot"]]
          spans.append(Span(slot, False, span["start"], span["exclusive_end"]))
        gold, labels = Gold(NONE, (), {}, tuple(spans)), {}
        for act in given(context, position):
          slot, (value,) = service.slots[act.slot], act.values
          if slot.is_categorical:
            place = [x.casefold() for x in slot.possible_values].index(value.casefold())
            labels[act.slot] = [Choice(answers.VALUE, place)]
          else:
            labels[act.slot] = _spans(act.slot, about, gold, act.values, by_user=False)
        example = _with_all_slots_open(reader.example(about, {}))
        vector = right_answer(targets(example, labels, gold), len(example.slots))
        self.answers.append((example.features, vector))

  def __call__(self, features):
    vectors = []
    for one in features:
      number = [x for x, _ in self.answers].index(one)
      vectors.append(self.answers.pop(number)[1])
    return vectors


def text_alone(dialogue, but=()):
  """The dialogue without acts, except in the system's turns `but`."""
  bare = []
  for number, turn in enumerate(dialogue.turns):
    if turn.speaker == SYSTEM and number not in but:
      turn = dataclasses.replace(turn, frames=tuple(Frame(f.service) for f in turn.frames))
    bare.append(turn)
  return dataclasses.replace(dialogue, turns=tuple(bare))


def assert_all_is_read(dialogues, original, shown, vocabulary):
  reader, num_values = SpanReader(shown, vocabulary), 0
  for dialogue in dialogues:
    answer = RightReader(dialogue, original, reader)
    (read,) = with_values([text_alone(dialogue)], original, reader, answer)
    both = zip(user_turns(dialogue, original), user_turns(read, original), strict=True)
    for (annotated, *_), (context, *_) in both:
      expected, offered = set(), set()
      for service in range(len(original)):
        expected |= {(act.slot, act.values[0].casefold()) for act in given(annotated, service)}
        offered |= {(act.slot, act.values[0].casefold()) for act in given(context, service)}
      assert offered == expected, context.frame_id
      assert {act.act for act in context.acts} <= {OFFER}
      num_values += len(offered)
  assert num_values > len(dialogues)


def test_all_values_of_the_sample_are_read():
  corpus = open_corpus(SAMPLE)
  dialogues, original = corpus["test"][:60], corpus.schema("test")
  for variant in ("original", "v5"):
    assert_all_is_read(dialogues, original, corpus.schema("test", variant), VOCABULARY)


@pytest.mark.real
def test_all_values_of_sgd_are_read(real_archive):
  corpus = open_corpus(real_archive)
  for split in ("train", "dev"):
    dialogues, schema = corpus[split][::100], corpus.schema(split)
    assert_all_is_read(dialogues, schema, schema, WordPieceVocabulary(minilm()))


def test_annotated_acts_stay_and_silence_is_not_read():
  corpus = open_corpus(SAMPLE)
  dialogue, original = corpus["test"][0], corpus.schema("test")
  reader = SpanReader(original, VOCABULARY)

  def read(turns):
    bare = dataclasses.replace(dialogue, turns=tuple(turns))
    answer = RightReader(dialogue, original, reader)
    num_answers = len(answer.answers)
    (complete,) = with_values([bare], original, reader, answer)
    return complete.turns, num_answers - len(answer.answers)

  assert read(dialogue.turns) == (dialogue.turns, 0)
  annotated_first, num_read = read(text_alone(dialogue, but=[1]).turns)
  assert annotated_first[1] == dialogue.turns[1]
  assert num_read > 0
  user, system, *_ = dialogue.turns
  silent = (user, Turn(SYSTEM, "", ()), user)
  assert read(silent) == (silent, 0)
  last = (user, Turn(SYSTEM, system.utterance, ()))
  assert read(last) == (last, 0)
  # A turn without frames is about the services of the user turn before it.
  (_, with_frames, _), num_read = read([*last, user])
  assert [frame.service for frame in with_frames.frames] == [f.service for f in user.frames]
  assert num_read == len(user.frames)


def test_all_slots_are_open_and_the_user_is_not_read():
  corpus, asked = open_corpus(SAMPLE), []
  original = corpus.schema("test")

  def answer(features):
    asked.extend(features)
    return [[0, 0] for _ in features]

  with_values([text_alone(corpus["test"][0])], original, SpanReader(original, VOCABULARY), answer)
  for features in asked:
    assert answers.USER_UTTERANCE not in features["segments"]
    assert answers.SYSTEM_UTTERANCE in features["segments"]
    for number, bits in enumerate(features["slot_context"], start=1):
      is_open = answers.FILLABLE
      is_open |= 0 if number in features["value_slots"] else answers.SPAN_OPEN
      assert bits == is_open
  assert asked
