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
    found = answers.read_answer(vector)
    right = {row[:4] for row in answers.target_rows(np.asarray(rows))}
    labelled = {slot for slot, kind, _, _ in right if kind <= answers.MEMORY}
    kept = {slot for slot, kind, _, _ in right if kind == answers.KEEP}
    frame = []
    for number, slot in enumerate(found.slots, start=1):
      keeps = slot.kind == answers.KEEP
      is_right = (
        keeps if number not in labelled else ((number, slot.kind, slot.first, slot.last) in right)
      )
      frame.append(is_right)
      if number in labelled - kept:
        changes.append(is_right)
    slots += frame
    frames.append(all(frame))
    wanted = {first for _, kind, first, _ in right if kind == answers.INTENT}
    if wanted:
      intents.append(found.intent in wanted)
    asked = {number for number, kind, _, _ in right if kind == answers.REQUESTED}
    said = {number for number, slot in enumerate(found.slots, start=1) if slot.requested > 0.5}
    requested.append(asked == said)
  return {
    "slot_accuracy": _mean(slots),
    "change_accuracy": _mean(changes),
    "frame_accuracy": _mean(frames),
    "intent_accuracy": _mean(intents),
    "requested_accuracy": _mean(requested),
  }


def _mean(found: list[bool]) -> float:
  return float(np.mean(found)) if found else float("nan")
