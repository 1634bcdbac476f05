"""SeqIO tasks and mixtures of SpanDST, which reads a frame with an encoder.

Their metrics cover single turns, given the gold state before each; `sgdx track` gives the joint
goal accuracy of whole dialogues, from predictions alone.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import seqio

from sgdx_t5x.spandst import answers
from sgdx_t5x.spandst.span_examples import span_examples
from sgdx_t5x.spandst.span_features import FEATURES
from sgdx_t5x.spandst.span_text import SpanStyle
from sgdx_t5x.tasks.registration import register_encoder_task, register_mixtures

NAME = "spandst"


def register_spandst(
  name: str,
  *,
  data: str,
  variants: Sequence[str],
  vocabulary: Callable[[], seqio.Vocabulary],
  style: SpanStyle | None = None,
  folders: Mapping[str, Any] | None = None,
) -> seqio.Task:
  """Registers a task of SpanDST. Args: as for `registration.register`; style of the input."""
  return register_encoder_task(
    name,
    tracker="SpanDST",
    format=NAME,
    data=data,
    variants=variants,
    vocabulary=vocabulary,
    features=FEATURES,
    examples=span_examples,
    metric=turn_accuracies,
    folders=folders,
    style=style or SpanStyle(),
  )


def register_spandst_family(
  prefix: str,
  *,
  data: str,
  vocabulary: Callable[[], seqio.Vocabulary],
  style: SpanStyle | None = None,
) -> None:
  """Registers the tasks and mixtures of one data set, named like those of prompt formats."""
  task = functools.partial(register_spandst, vocabulary=vocabulary, style=style)
  register_mixtures(f"{prefix}{NAME}", data, task)


def turn_accuracies(targets: Sequence, predictions: Sequence) -> dict[str, float]:
  """SeqIO metric: accuracies, given the gold state before each turn.

  Args:
    targets: flattened rows of `targets` of each frame.
    predictions: the model's answers, see `spandst.answers.read_answer`.

  Returns:
    slot_accuracy over slots, change_accuracy over slots whose value changes, frame_accuracy (all
    slots right), intent_accuracy and requested_accuracy over frames.
  """
  slots, changes, frames, intents, requested = [], [], [], [], []
  for rows, vector in zip(targets, predictions, strict=True):
    predicted = answers.read_answer(vector)
    gold_rows = set(answers.target_rows(rows))
    labelled_slots, may_stay = set(), set()
    gold_intents, gold_requested = set(), set()
    for number, kind, intent, _ in gold_rows:
      if kind <= answers.MEMORY:
        labelled_slots.add(number)
        if kind == answers.KEEP:  # beside answers that repeat the value
          may_stay.add(number)
      elif kind == answers.INTENT:
        gold_intents.add(intent)
      elif kind == answers.REQUESTED:
        gold_requested.add(number)
    frame, predicted_requested = [], set()
    for number, slot in enumerate(predicted.slots, start=1):
      if number in labelled_slots:
        is_right = (number, slot.kind, slot.first, slot.last) in gold_rows
      else:
        is_right = slot.kind == answers.KEEP  # the targets leave such slots out
      frame.append(is_right)
      if slot.requested > 0.5:
        predicted_requested.add(number)
      if number in labelled_slots - may_stay:
        changes.append(is_right)
    slots += frame
    frames.append(all(frame))
    if gold_intents:
      intents.append(predicted.intent in gold_intents)
    requested.append(gold_requested == predicted_requested)
  return {
    "slot_accuracy": _mean(slots),
    "change_accuracy": _mean(changes),
    "frame_accuracy": _mean(frames),
    "intent_accuracy": _mean(intents),
    "requested_accuracy": _mean(requested),
  }


def _mean(values: list[bool]) -> float:
  return float(np.mean(values)) if values else float("nan")
