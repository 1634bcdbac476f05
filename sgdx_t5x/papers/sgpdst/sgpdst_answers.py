"""Integer codes of SGP-DST's sub-models' inputs and answers; see README.md in this folder.

NumPy alone: trackers and tests read these without JAX.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Values of `segments`; 0 is padding. From OPTION on, each option has its own number.
FIRST, SYSTEM, USER, NULL = range(1, 5)
SECOND, OPTION = 6, 7
MAX_OPTIONS = 16  # SGD's most are 13: 11 values, "null" and "do not care"
# Labels in `targets`, numbered from 1 so that 0 means no label.
NO, YES = 1, 2
MILLION = 1_000_000


class SlotAnswer(NamedTuple):
  """The combine model's answer for a slot.

  Attributes:
    first: position in the input of the span's first token.
    last: of its last token; both are that of "null" if there is no span.
    span: sum of their probabilities, in [0, 2].
    option: 0 "null", 1 "do not care", 2 the first possible value.
    probability: of the option.
    requested: probability that the slot is requested.
  """

  first: int
  last: int
  span: float
  option: int
  probability: float
  requested: float


def read_intent(vector: Sequence[int] | np.ndarray) -> tuple[int, float]:
  """Decodes an answer of the intent model, int32 `[2]`: the option, from 0; its probability."""
  return int(vector[0]) - 1, int(vector[1]) / MILLION


def read_slot(vector: Sequence[int] | np.ndarray) -> SlotAnswer:
  """Decodes an answer of the combine model, int32 `[6]`."""
  start, end, span, option, probability, requested = (int(x) for x in vector)
  return SlotAnswer(
    start, end, span / MILLION, option - 1, probability / MILLION, requested / MILLION
  )


def read_copy(vector: Sequence[int] | np.ndarray) -> float:
  """Decodes an answer of the copy or cross model, int32 `[2]`: the probability of YES."""
  return int(vector[1]) / MILLION
