"""The system's acts, read from its utterances: right acts of the slots give those of SGD."""

import dataclasses

import pytest
from minilm import minilm
from places import ROOT

from sgdx_t5x.corpus.dialogue import SYSTEM, Frame, Turn
from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
from sgdx_t5x.records.turns import NONE, REQUEST, user_turns
from sgdx_t5x.spandst import answers
from sgdx_t5x.spandst.act_reader import ACTS, SlotAct
from sgdx_t5x.spandst.span_features import SpanReader
from sgdx_t5x.spandst.system_turns import system_context, system_example, with_acts
from sgdx_t5x.spandst.vocabulary import WordPieceVocabulary
from sgdx_t5x.tracking.act_training import right_acts

VOCABULARY = WordPieceVocabulary(ROOT / "sgdx_t5x/corpus/sample/vocab.txt", lower_case=True)


class RightReader:
  """Reads the system's turns of an annotated dialogue without a mistake."""

  def __init__(self, dialogue, original, reader):
    self.turns = []  # (features, acts) in the order of turns: one text may mean two things
    for number, turn in enumerate(dialogue.turns[:-1]):
      for frame in turn.frames if turn.speaker == SYSTEM else ():
        context = system_context(dialogue, number, frame.service, original)
        example = system_example(reader, context)
        right = right_acts(frame, original[frame.service], context, example)
        self.turns.append((example.features, right))

  def __call__(self, features):
    found = []
    for one in features:
      number = [x for x, _ in self.turns].index(one)
      found.append(self.turns.pop(number)[1])
    return found


def text_alone(dialogue, but=()):
  """The dialogue without acts, except in the system's turns `but`."""
  bare = []
  for number, turn in enumerate(dialogue.turns):
    if turn.speaker == SYSTEM and number not in but:
      turn = dataclasses.replace(turn, frames=tuple(Frame(f.service) for f in turn.frames))
    bare.append(turn)
  return dataclasses.replace(dialogue, turns=tuple(bare))


def said(context):
  """The acts of the system's last turn that can be read, values in lower case."""
  acts = set()
  for act in context.acts:
    one_value = len(act.values) == 1 or act.act == REQUEST
    if act.turn == context.turn - 1 and act.slot != NONE and act.act in ACTS and one_value:
      values = () if act.act == REQUEST else tuple(map(str.casefold, act.values))
      acts.add((act.service, act.act, act.slot, values))
  return acts


def assert_all_is_read(dialogues, original, shown, vocabulary):
  reader, num_acts = SpanReader(shown, vocabulary), 0
  for dialogue in dialogues:
    right = RightReader(dialogue, original, reader)
    (read,) = with_acts([text_alone(dialogue)], original, reader, right)
    both = zip(user_turns(dialogue, original), user_turns(read, original), strict=True)
    for (annotated, *_), (context, *_) in both:
      assert said(context) == said(annotated), context.frame_id
      assert {act.act for act in context.acts} <= set(ACTS)
      num_acts += len(said(context))
  assert num_acts > len(dialogues)


def test_all_acts_of_the_sample_are_read():
  corpus = open_corpus(SAMPLE)
  dialogues, original = corpus["test"][:60], corpus.schema("test")
  for variant in ("original", "v5"):
    assert_all_is_read(dialogues, original, corpus.schema("test", variant), VOCABULARY)


def test_a_span_of_what_the_schema_has_no_slot_for_is_ignored():
  """Regression: `sgdx weights pack --corpus` ended in a traceback."""
  corpus = open_corpus(SAMPLE)
  dialogue, schema = corpus["test"][0], corpus.schema("test")
  frame = dialogue.turns[1].frames[0]
  service = schema[frame.service]
  context = system_context(dialogue, 1, frame.service, schema)
  example = system_example(SpanReader(schema, VOCABULARY), context)
  marked = [*(frame.slots or ()), {"slot": "count", "start": 0, "exclusive_end": 1}]
  marked_frame = dataclasses.replace(frame, slots=marked)
  expected = right_acts(frame, service, context, example)
  assert right_acts(marked_frame, service, context, example) == expected


@pytest.mark.real
@pytest.mark.long
def test_all_acts_of_sgd_are_read(real_archive):
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
    right = RightReader(dialogue, original, reader)
    num_turns = len(right.turns)
    (complete,) = with_acts([bare], original, reader, right)
    return complete.turns, num_turns - len(right.turns)

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


def test_the_system_speaks_as_the_user_and_all_slots_are_open():
  corpus, asked = open_corpus(SAMPLE), []
  original = corpus.schema("test")

  def read(features):
    asked.extend(features)
    return [[SlotAct(NONE)] * len(one["slots"]) for one in features]

  with_acts([text_alone(corpus["test"][0])], original, SpanReader(original, VOCABULARY), read)
  for features in asked:
    assert answers.USER_UTTERANCE in features["segments"]
    assert answers.SYSTEM_UTTERANCE not in features["segments"]
    for number, bits in enumerate(features["slot_context"], start=1):
      is_open = answers.FILLABLE
      is_open |= 0 if number in features["value_slots"] else answers.SPAN_OPEN
      assert bits == is_open
  assert asked
