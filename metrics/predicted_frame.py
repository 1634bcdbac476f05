"""What is scored: a prediction for a frame, whoever made it."""

import dataclasses
from collections.abc import Mapping, Sequence


@dataclasses.dataclass(frozen=True, slots=True)
class PredictedFrame:
  """A tracker's prediction for a frame, in original names; None for what it does not predict.

  Attributes:
    slot_values: the state, slot -> values; {} is the empty state.
    active_intent: its name, or "NONE".
    requested_slots: names.
    spans: (slot, text).
    ignored: number of parts of the answer that refer to nothing in the frame, such as an index out
      of range. They count neither as right nor as wrong.
  """

  slot_values: Mapping[str, Sequence[str]]
  active_intent: str | None = None
  requested_slots: tuple[str, ...] | None = None
  spans: tuple[tuple[str, str], ...] | None = None
  ignored: int = 0
