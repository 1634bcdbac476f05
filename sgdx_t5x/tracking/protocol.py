"""What a tracker of dialogues is: the one door through which `sgdx track` and Python ask for it.

A tracker is loaded from checkpoints of `t5x.train`, each of which says in its config.gin what it
was trained on: the name of its task or mixture, whose format is a key of `TRACKERS`. This module
imports neither TensorFlow nor JAX; the modules that `TRACKERS` names do when they are asked for.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from sgdx_t5x.data.dialogue import Dialogue
from sgdx_t5x.data.schema import NO_INTENT, Schema
from sgdx_t5x.trackers.sgpdst import PARTS
from sgdx_t5x.trackers.turns import NONE
from sgdx_t5x.trackers.walk import Prediction

# Format of a checkpoint's task (`tasks.REGISTERED[...].format`) -> module:function. The function
# gets the checkpoints, `Sequence[checkpoints.Checkpoint]`, and `lengths` of features that are to
# differ from those of their configurations, and returns a `Tracker`.
_PROMPTED = "sgdx_t5x.tracking.prompted:load"
TRACKERS = {
  "t5dst": _PROMPTED,
  "d3st": _PROMPTED,
  "sdt": _PROMPTED,
  "sdt_ind": _PROMPTED,
  **{f"sgpdst_{part}": "sgdx_t5x.tracking.sgpdst:load" for part in PARTS},
  "spandst": "sgdx_t5x.tracking.spandst:load",
  "baseline": "sgdx_t5x.tracking.baseline:load",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Shown:
  """The schema that a tracker is shown.

  Attributes:
    split: of the dialogues; part of the ids of examples.
    variant: its name as ids have it: "original", "v3", of a perturbed corpus "ned+v3".
    original: the schema in whose names dialogues come and predictions go.
    schema: the same services, slots and intents, by position, in the words that a model reads.
  """

  split: str
  variant: str
  original: Schema
  schema: Schema


@dataclasses.dataclass(frozen=True, slots=True)
class TrackedFrame:
  """What a tracker says of a frame, in original names; None for what it does not say.

  Attributes:
    slot_values: the state after the turn: slot -> values, of which any is meant.
    active_intent: its name, or "NONE".
    requested_slots: names.
    spans: (slot, first character, character behind the last) in the user's utterance.
  """

  slot_values: Mapping[str, tuple[str, ...]]
  active_intent: str | None = None
  requested_slots: tuple[str, ...] | None = None
  spans: tuple[tuple[str, int, int], ...] | None = None


class Tracker(Protocol):
  """A loaded tracker.

  Attributes:
    name: for messages: "SpanDST".
    reads_acts: whether it reads what the system did. Corpora without acts are then refused before
      the first question (`turns.check_acts`).
    reads_gold: whether it reads gold states of earlier turns, which are then left in dialogues.
      Predictions and their scores are marked as an oracle's.
    settings: all that its answers depend on: weights (`LoadedModel.digest`), style, lengths.
      Predictions of other settings are never written into the same folder.
  """

  @property
  def name(self) -> str:
    """See the class."""

  @property
  def reads_acts(self) -> bool:
    """See the class."""

  @property
  def reads_gold(self) -> bool:
    """See the class."""

  @property
  def settings(self) -> Mapping[str, str]:
    """See the class."""

  def check(self, shown: Shown) -> None:
    """Refuses, before any dialogue, a schema that it cannot show a model. Raises SgdxError."""

  def track(
    self, dialogues: Sequence[Dialogue], shown: Shown
  ) -> Iterator[Mapping[str, TrackedFrame]]:
    """Tracks dialogues, together so that a model gets full batches.

    Gold states play no part, unless it `reads_gold`: what was predicted is what is known in the
    next turn.

    Args:
      dialogues: in names of `shown.original`. Their user turns have a frame for each service to
        track; system turns have `actions` where the tracker reads acts.
      shown: the schema to show.

    Yields:
      Frame id (`dialogue.frame_id`) -> what was found: each user frame once, in any portions, as
      they come (a portion moves the progress shown).
    """


def tracked(prediction: Prediction, original: Schema, position: int) -> TrackedFrame:
  """Returns a prediction by positions (`trackers.walk`) in original names.

  Args:
    prediction: of a frame.
    original: see `Shown`.
    position: of the frame's service.
  """
  service = original.services[position]
  return TrackedFrame(
    {service.slots[i].name: tuple(values) for i, values in prediction.values.items()},
    NO_INTENT if prediction.intent == NONE else service.intents[prediction.intent].name,
    tuple(service.slots[i].name for i in prediction.requested),
  )
