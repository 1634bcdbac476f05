"""Tracks dialogues with SpanDST: from a model's answers to the state after every turn."""

from collections.abc import Callable, Mapping, Sequence

from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.records.turns import NONE
from sgdx_t5x.spandst.answers import read_answer
from sgdx_t5x.spandst.span_features import Example, SpanReader, read_choice
from sgdx_t5x.spandst.spandst import new_values
from sgdx_t5x.spandst.walk import Predict, Prediction, Question

# Maps features of frames, without targets, to one answer each: see `spandst.answers`.
Answer = Callable[[Sequence[Mapping[str, Sequence[int]]]], Sequence[Sequence[int]]]
_ASKED = 0.5  # probability above which a slot counts as requested


def span_tracker(original: Schema, reader: SpanReader, answer: Answer) -> Predict:
  """Returns the tracker for `walk`.

  Args:
    original: the split's original schema.
    reader: for the split in the variant shown to the model.
    answer: the model.
  """

  def predict(questions: Sequence[Question]) -> list[Prediction]:
    examples = [reader.example(question.context, question.states) for question in questions]
    vectors = answer([example.features for example in examples])
    triples = zip(questions, examples, vectors, strict=True)
    return [span_prediction(original, *triple) for triple in triples]

  return predict


def span_prediction(
  original: Schema, question: Question, example: Example, vector: Sequence[int]
) -> Prediction:
  """Decodes an answer into the prediction for a frame.

  Args:
    original: the split's original schema.
    question: the frame, and the states before it.
    example: what the model read.
    vector: what it answered.
  """
  context, answer = question.context, read_answer(vector)
  slots = list(zip(example.slots, answer.slots, strict=False))
  state = question.states.get(context.service)
  values = new_values(
    original.services[context.service],
    context,
    state.values if state else {},
    example.choices,
    {slot: read_choice(example, answer) for slot, answer in slots},
  )
  intents = example.intents
  intent = intents[answer.intent - 1] if 1 <= answer.intent <= len(intents) else NONE
  requested = sorted(slot for slot, answer in slots if answer.requested > _ASKED)
  return Prediction(intent, tuple(requested), values)
