"""Fields of records for trackers that read a frame with an encoder; since version 1.1.0.

System acts, the states before the turn, and the spans of values in the last two utterances, all by
position in the split's schema, so that variants need no extra data. Both writing and reading are
here; `turns` says what the parts mean.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.schema import Schema, Service
from sgdx_t5x.records.turns import (
  NONE,
  Act,
  FrameContext,
  Gold,
  ServiceState,
  Span,
  States,
  add_act,
  gold_history,
)

# Columns of the rows of integers, which are stored flattened.
ROWS = {
  "turn_services": ("service",),  # of the frames of this turn
  "acts": ("turn", "service", "act", "slot"),  # of the system, a row per value, or one if none
  "frames": ("turn", "service", "intent"),  # user frames of earlier turns
  "before": ("service", "slot"),  # gold values before the turn, of each service's last frame
  "spans": ("slot", "by user", "start", "end"),  # of this service, in the last two utterances
}
TEXTS = ("act_values", "before_values")  # one per row of `acts` and of `before`
FIELDS = (*ROWS, *TEXTS)


def features() -> dict[str, tfds.features.Sequence]:
  """Returns the features of the builder."""
  numbers = {name: tfds.features.Sequence(np.int32) for name in ROWS}
  return numbers | {name: tfds.features.Sequence(tfds.features.Text()) for name in TEXTS}


def tracker_fields(dialogue: Dialogue, schema: Schema) -> Iterator[dict[str, list]]:
  """Yields the fields of a dialogue's frames, in the order of `Dialogue.user_frames`."""
  frames: list[tuple[int, int, int]] = []
  for context, gold, states in gold_history(dialogue, schema):
    if dialogue.is_scored(context.turn):
      # No frame of a turn may see the labels of another.
      earlier_frames = [frame for frame in frames if frame[0] < context.turn]
      yield _fields(context, gold, states, earlier_frames)
    frames.append((context.turn, context.service, gold.intent))


def _fields(
  context: FrameContext, gold: Gold, states: States, frames: Sequence[tuple[int, int, int]]
) -> dict[str, list]:
  # Rows of integers and, in the same order, texts: one of each per value, or per act without any.
  acts: list[int] = []
  act_values: list[str] = []
  for act in context.acts:
    for value in act.values or ("",):
      acts += act[:4]
      act_values.append(value)
  before: list[int] = []
  before_values: list[str] = []
  for service, state in states.items():
    for slot, values in state.values.items():
      for value in values:
        before += (service, slot)
        before_values.append(value)
  return {
    "turn_services": list(context.turn_services),
    "acts": acts,
    "act_values": act_values,
    "frames": _flat(frames),
    "before": before,
    "before_values": before_values,
    "spans": _flat(map(int, span) for span in gold.spans),
  }


def _flat(rows: Iterable[Iterable[int]]) -> list[int]:
  return list(itertools.chain.from_iterable(rows))


def _rows(record: Mapping[str, Any], name: str) -> Iterator[Any]:
  # The same iterator once per column: every row takes the next numbers from it.
  return zip(*[iter(record[name])] * len(ROWS[name]), strict=True)


def read_frame(record: Mapping[str, Any], service: Service) -> tuple[FrameContext, States, Gold]:
  """Returns what a tracker may know about a record's frame, the states before it, and the gold.

  Args:
    record: of version 1.1.0; numbers as lists of int, texts as bytes.
    service: the frame's, in the split's original schema.
  """
  utterances = record["utterances"]
  turn = record["turn"]
  context = FrameContext(
    record["frame_id"].decode(),
    turn,
    record["service_index"],
    utterances[-2].decode() if turn else "",
    utterances[-1].decode(),
    _acts(record),
    tuple(record["turn_services"]),
  )
  gold: dict[int, tuple[str, ...]] = {}  # a slot with several values recurs
  for slot, value in zip(record["gold_slot"], record["gold_value"], strict=True):
    gold[slot] = (*gold.get(slot, ()), value.decode())
  intent = service.intent_index.get(record["active_intent"].decode(), NONE)
  requested = tuple(service.slot_index[name.decode()] for name in record["requested_slots"])
  spans = tuple(Span(slot, bool(user), *at) for slot, user, *at in _rows(record, "spans"))
  return context, _states(record), Gold(intent, requested, gold, spans)


def _acts(record: Mapping[str, Any]) -> tuple[Act, ...]:
  acts: list[Act] = []
  for row, value in zip(_rows(record, "acts"), record["act_values"], strict=True):
    turn, service, act, slot = row
    add_act(acts, Act(turn, service, act, slot, (value.decode(),) if value else ()))
  return tuple(acts)


def _states(record: Mapping[str, Any]) -> dict[int, ServiceState]:
  values: dict[int, dict[int, tuple[str, ...]]] = {}
  for (service, slot), value in zip(_rows(record, "before"), record["before_values"], strict=True):
    slots = values.setdefault(service, {})
    slots[slot] = (*slots.get(slot, ()), value.decode())
  # A service's later frames replace its earlier ones; a state without values has no row above.
  last_frames = {service: (turn, intent) for turn, service, intent in _rows(record, "frames")}
  states = {}
  for service, (turn, intent) in last_frames.items():
    states[service] = ServiceState(turn, intent, values.get(service, {}))
  return states
