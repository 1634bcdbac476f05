"""The interface of dialogue trackers, through which `sgdx track` and Python use all of them.

`opening.py` loads one. This module imports neither TensorFlow nor JAX.
"""

import dataclasses
import numbers
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.schema import NO_INTENT, Schema
from sgdx_t5x.errors import UsageError
from sgdx_t5x.records.turns import NONE
from sgdx_t5x.spandst.walk import Predict, Prediction, walk

KEPT_SCHEMAS = 16  # whose features a tracker keeps: every call in Python may bring another schema


@dataclasses.dataclass(frozen=True, slots=True)
class Shown:
  """The schema that a tracker is shown.

  Attributes:
    split: of the dialogues; part of the ids of examples.
    variant: its name as in ids: "original", "v3", for a perturbed corpus "ned+v3".
    original: the schema whose names dialogues and predictions use.
    schema: the same services, slots and intents, by position, in the words that a model reads.
  """

  split: str
  variant: str
  original: Schema
  schema: Schema


@dataclasses.dataclass(frozen=True, slots=True)
class TrackedFrame:
  """A prediction for a frame, in original names; None for what the tracker does not predict.

  Attributes:
    slot_values: the state after the turn: slot -> alternative values.
    active_intent: its name, or "NONE".
    requested_slots: names.
  """

  slot_values: Mapping[str, tuple[str, ...]]
  active_intent: str | None = None
  requested_slots: tuple[str, ...] | None = None


class Tracker(Protocol):
  """A loaded tracker.

  Attributes:
    name: for messages: "SpanDST".
    reads_acts: whether it reads the system's acts, where there are any.
    needs_acts: whether corpora without acts are rejected before tracking starts
      (`turns.check_acts`).
    reads_gold: whether it reads gold states of earlier turns, which are then left in dialogues.
      Predictions and their scores are marked as an oracle's.
    settings: all that its answers depend on: weights (`LoadedModel.digest`), style, lengths.
      Predictions of other settings are never written into the same folder.
  """

  reads_acts: bool
  needs_acts: bool
  reads_gold: bool

  @property
  def name(self) -> str:
    """See the class."""

  @property
  def settings(self) -> Mapping[str, str]:
    """See the class."""

  def check(self, shown: Shown) -> None:
    """Raises SgdxError, before any dialogue, for a schema that it cannot show its model."""

  def track(
    self, dialogues: Sequence[Dialogue], shown: Shown
  ) -> Iterator[Mapping[str, TrackedFrame]]:
    """Tracks dialogues, together so that a model gets full batches.

    Gold states are not used, unless it `reads_gold`: what was predicted is what is known in the
    next turn.

    Args:
      dialogues: in the names of `shown.original`. Their user turns have a frame for each service to
        track; system turns have `actions` where the tracker reads acts.
      shown: the schema to show.

    Yields:
      Frame id (`dialogue.frame_id`) -> prediction: each user frame once, in portions of any size
      (each advances the progress display).
    """


def walked(
  dialogues: Sequence[Dialogue], shown: Shown, predict: Predict
) -> Iterator[dict[str, TrackedFrame]]:
  """Yields what `spandst.walk` yields, in original names; for `Tracker.track`."""
  for portion in walk(dialogues, shown.original, predict):
    frames = {}
    for context, prediction in portion:
      frames[context.frame_id] = tracked(prediction, shown.original, context.service)
    yield frames


def override_lengths(
  lengths: Mapping[str, int], overrides: Mapping[str, int], task: str
) -> dict[str, int]:
  """Returns the lengths of features, overridden where `overrides` has one.

  Args:
    lengths: of all features of a model.
    overrides: of some of them.
    task: for the message.

  Raises:
    UsageError: a feature that the model does not have, or a length that is none.
  """
  if unknown := [name for name in overrides if name not in lengths]:
    raise UsageError(
      f"length given for unknown feature {', '.join(map(str, unknown))}",
      expected=f"features of {task}",
      available=", ".join(f"{name}={length}" for name, length in lengths.items()),
      fix="use these feature names",
    )
  for name, length in overrides.items():
    least = 0 if name == "memory" else 1
    is_whole = isinstance(length, numbers.Integral) and not isinstance(length, bool)
    if not is_whole or length < least:
      raise UsageError(
        f"a length of {name}={length!r}",
        expected=f"a whole number of at least {least}",
        fix='pass, for example, --lengths inputs=512; in Python, {"inputs": 512}',
      )
  return {**lengths, **overrides}


def changes(style: Any) -> dict[str, str]:
  """Returns the fields of a style that differ from the defaults, for `Tracker.settings`."""
  default, fields = type(style)(), dataclasses.asdict(style)
  return {name: str(x) for name, x in fields.items() if x != getattr(default, name)}


def tracked(prediction: Prediction, original: Schema, position: int) -> TrackedFrame:
  """Converts a prediction by positions (`spandst.walk`) to original names.

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
