"""Integer codes of the span tracker's inputs and answers; see README.md in this folder.

NumPy alone: trackers and tests read these without JAX.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

# Of a frame; all are lists of integers.
FEATURES = (
  "inputs", "segments", "slots", "slot_context", "values", "value_slots", "memory", "intents",
  "intent_context", "targets",
)  # fmt: skip
# Kinds of answers, in rows of `targets` and in answers.
KEEP, DONTCARE, CLEAR, SYSTEM, SPAN, VALUE, MEMORY, REQUESTED, INTENT = range(1, 10)
# Bits of `slot_context` that allow answers; higher ones are defined by the tracker.
FILLABLE, SYSTEM_OPEN, CLEAR_OPEN, SPAN_OPEN, MEMORY_OPEN = 1, 2, 4, 8, 16
CONTEXT_BITS = 15
# Values of `segments`; 0 is padding.
SYSTEM_UTTERANCE, USER_UTTERANCE, SEPARATOR, SCHEMA, OTHER_SERVICES = range(1, 6)

ROW = 4  # integers per row of `targets`
HEAD, PER_SLOT = 2, 6  # integers in an answer: before the slots, per slot
MILLION = 1_000_000


@dataclasses.dataclass(frozen=True)
class SlotAnswer:
  """The model's answer for a slot.

  Attributes:
    kind: KEEP to MEMORY.
    first: SPAN: position of the first token; VALUE, MEMORY: number, from 1; else 0.
    last: SPAN: position of the last token; else 0.
    probability: joint probability of the kind and what it points to, in [0, 1].
    keep: probability of KEEP, in [0, 1].
    requested: probability that the user asks for the slot, in [0, 1].
  """

  kind: int
  first: int
  last: int
  probability: float
  keep: float
  requested: float


@dataclasses.dataclass(frozen=True)
class FrameAnswer:
  """The model's answer for a frame.

  Attributes:
    intent: 0 for NONE, else the number of the intent, from 1.
    slots: one answer per slot of the frame.
  """

  intent: int
  slots: tuple[SlotAnswer, ...]


def read_answer(vector: Sequence[int] | np.ndarray) -> FrameAnswer:
  """Decodes an answer of `SpanModel`, int32 `[2 + 6 * slots]`; padding slots are dropped."""
  numbers = np.asarray(vector).reshape(-1).tolist()
  slots = []
  for start in range(HEAD, len(numbers), PER_SLOT):
    kind, first, last, probability, keep, requested = numbers[start : start + PER_SLOT]
    if kind:  # 0 is padding
      shares = probability / MILLION, keep / MILLION, requested / MILLION
      slots.append(SlotAnswer(kind, first, last, *shares))
  return FrameAnswer(numbers[0], tuple(slots))


def target_rows(targets: Sequence[int] | np.ndarray) -> list[tuple[int, int, int, int]]:
  """Returns the rows (slot, kind, first, last) of `targets`, int32 `[4 * rows]`, unpadded."""
  rows = np.asarray(targets).reshape(-1, ROW)
  is_row = rows[:, 1] != 0  # no answer is of kind 0, which pads
  return list(map(tuple, rows[is_row].tolist()))
