"""From an answer of SpanDST's model to the prediction for a frame."""

from collections.abc import Sequence

from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.records.turns import NONE
from sgdx_t5x.spandst.answers import read_answer
from sgdx_t5x.spandst.span_features import Example
from sgdx_t5x.spandst.span_targets import read_choice
from sgdx_t5x.spandst.spandst import new_values
from sgdx_t5x.spandst.walk import Prediction, Question

_ASKED = 0.5  # probability above which a slot counts as requested


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
  choices, requested = {}, []
  for slot, slot_answer in zip(example.slots, answer.slots, strict=False):
    choices[slot] = read_choice(example, slot_answer)
    if slot_answer.requested > _ASKED:
      requested.append(slot)
  service, state = original.services[context.service], question.states.get(context.service)
  values = new_values(service, context, state.values if state else {}, example.choices, choices)
  intents = example.intents
  intent = intents[answer.intent - 1] if 1 <= answer.intent <= len(intents) else NONE
  return Prediction(intent, tuple(sorted(requested)), values)
