"""Dialogues in the DSTC8 format: frozen dataclasses, a streaming reader, a writer.

The format is that of the SGD release (dstc8-schema-guided-dialogue README,
"Dialogue Representation"). `Dialogue.from_json(x).to_json() == x` for every dialogue
of the release, the older files without `canonical_values` included.
"""

import dataclasses
import json
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Annotated, Any

import msgspec

from sgdx_t5x.corpus.schema import NO_INTENT, Schema
from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files.reading import (
  available_keys,
  checked_list,
  converted_item,
  decode_json,
  decode_list,
  is_text,
)

USER = "USER"
SYSTEM = "SYSTEM"
# Acts whose slot is a keyword of the format; the schema may have a slot of the same name.
NAMED_ACTS = frozenset({"INFORM_INTENT", "OFFER_INTENT", "INFORM_COUNT"})
_NOTHING, _ONE_VALUE = frozenset({("", 0)}), frozenset({("slot", 1)})
_ANY_VALUES = frozenset({("slot", 0), ("slot", 1), ("slot", 2)})
_INTENT = frozenset({("intent", 1)})
# Acts that the SGD paper lists: speaker -> act -> allowed (kind of slot, number of values; 2 means
# 2 or more).
ACTS: Mapping[str, Mapping[str, frozenset[tuple[str, int]]]] = {
  USER: {
    "INFORM": _ONE_VALUE,
    "REQUEST": _ANY_VALUES - {("slot", 2)},
    "AFFIRM": _NOTHING,
    "NEGATE": _NOTHING,
    "SELECT": _NOTHING | _ONE_VALUE,
    "REQUEST_ALTS": _NOTHING,
    "INFORM_INTENT": _INTENT,
    "NEGATE_INTENT": _NOTHING,
    "AFFIRM_INTENT": _NOTHING,
    "THANK_YOU": _NOTHING,
    "GOODBYE": _NOTHING,
  },
  SYSTEM: {
    "INFORM": _ONE_VALUE,
    "REQUEST": _ANY_VALUES,
    "CONFIRM": _ONE_VALUE,
    "OFFER": _ANY_VALUES - {("slot", 0)},
    "NOTIFY_SUCCESS": _NOTHING,
    "NOTIFY_FAILURE": _NOTHING,
    "INFORM_COUNT": frozenset({("count", 1)}),
    "OFFER_INTENT": _INTENT,
    "REQ_MORE": _NOTHING,
    "GOODBYE": _NOTHING,
  },
}
_EXPECTED = "a list of dialogues in SGD's form"
_EXPECTED_SPANS = (
  "spans of the utterance in slots: slot, start and exclusive_end; items that mark no text "
  "(MultiWOZ 2.2's with copy_from) can be left out"
)
_FIX = "correct the file, or restore it from the archive"
_FIX_SPANS = "correct the item, or leave it out: only slot tagging and perturbations read spans"
_SPAN_PLACE = re.compile(r"`\$\.turns\[\d+\]\.frames\[\d+\]\.slots\[\d+\]")
Values = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]  # of a slot in a state


@dataclasses.dataclass(frozen=True)
class State:
  """What the user wants from a service after a turn: slot -> acceptable values."""

  active_intent: str
  requested_slots: tuple[str, ...]
  slot_values: Mapping[str, Values]

  def to_json(self) -> dict[str, Any]:
    """Returns the state as SGD writes it."""
    return {
      "active_intent": self.active_intent,
      "requested_slots": list(self.requested_slots),
      "slot_values": {slot: list(values) for slot, values in self.slot_values.items()},
    }


EMPTY_STATE = State(NO_INTENT, (), {})  # of frames without a state


@dataclasses.dataclass(frozen=True)
class Frame:
  """One service's annotation of one turn; `state` only in user turns.

  `slots` (spans, read for slot tagging), `actions`, `service_call` and `service_results` stay
  decoded JSON. None means that the key is absent.
  """

  service: str
  state: State | None = None
  slots: list[dict] | None = None
  actions: list[dict] | None = None
  service_call: dict | None = None
  service_results: list[dict] | None = None

  @property
  def user_state(self) -> State:
    """The state of a user frame. Raises ValueError without one, which `check_dialogue` refuses."""
    if self.state is None:
      raise ValueError(f"the frame of {self.service} has no state")
    return self.state

  def to_json(self) -> dict[str, Any]:
    """Returns the frame as SGD writes it, without absent keys."""
    data: dict[str, Any] = {"service": self.service}
    for key in ("slots", "actions", "service_call", "service_results"):
      if (value := getattr(self, key)) is not None:
        data[key] = value
    if self.state is not None:
      data["state"] = self.state.to_json()
    return data


@dataclasses.dataclass(frozen=True)
class Turn:
  """One utterance, by USER or SYSTEM, with a frame per service it concerns."""

  speaker: str
  utterance: str
  frames: tuple[Frame, ...]

  def to_json(self) -> dict[str, Any]:
    """Returns the turn as SGD writes it."""
    return {
      "speaker": self.speaker,
      "utterance": self.utterance,
      "frames": [frame.to_json() for frame in self.frames],
    }


@dataclasses.dataclass(frozen=True)
class Dialogue:
  """A conversation; `dialogue_id` is unique only within a split.

  `last_only` marks a counterfactual: it ends at a user turn, and only that one is scored.
  """

  dialogue_id: str
  services: tuple[str, ...]
  turns: tuple[Turn, ...]
  last_only: bool = False

  def to_json(self) -> dict[str, Any]:
    """Returns the dialogue as SGD writes it."""
    return {
      "dialogue_id": self.dialogue_id,
      "services": list(self.services),
      "turns": [turn.to_json() for turn in self.turns],
    }

  @classmethod
  def from_json(cls, data: Mapping[str, Any], origin: str = "dialogue") -> "Dialogue":
    """Reads a decoded dialogue. Raises SgdxError naming file, dialogue and place."""
    return _dialogue(converted_item(data, _Item, "dialogue_id", origin, _EXPECTED, _FIX), origin)

  def user_frames(self) -> Iterator[tuple[int, Frame]]:
    """Yields (turn index over all turns, frame) of user turns: the unit of every score."""
    for i, turn in enumerate(self.turns):
      if turn.speaker == USER and self.is_scored(i):
        for frame in turn.frames:
          yield i, frame

  def is_scored(self, turn: int) -> bool:
    """Whether the frames of a turn are scored, if it is a user turn."""
    return not self.last_only or turn == len(self.turns) - 1


def frame_id(dialogue_id: str, turn: int, service: str) -> str:
  """Names a frame as the official scorer does: dialogue-turn-service."""
  return f"{dialogue_id}-{turn:03d}-{service}"


def decode_dialogues(text: str | bytes, origin: str) -> list[Any]:
  """Returns the decoded dialogues of one file. Raises SgdxError if the JSON is no list of them."""
  return checked_list(decode_json(text, origin, _EXPECTED, _FIX), origin, _EXPECTED, _FIX)


# --- the form of a file --------------------------------------------------------------------


class _Span(msgspec.Struct):
  slot: str
  start: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
  exclusive_end: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Action(msgspec.Struct):
  act: str = ""
  slot: str = ""
  values: list[str] = []
  canonical_values: list[str] = []


class _Call(msgspec.Struct):
  method: str
  parameters: dict


class _Annotation(msgspec.Struct):
  slots: list[_Span] | None = None
  actions: list[_Action] | None = None
  service_call: _Call | None = None
  service_results: list[dict] | None = None


class _AnnotatedTurn(msgspec.Struct):
  frames: list[_Annotation]


class _AnnotatedDialogue(msgspec.Struct):
  turns: list[_AnnotatedTurn]


class _Item(msgspec.Struct):
  dialogue_id: str
  services: tuple[str, ...]
  turns: tuple[Turn, ...]


def read_dialogues(text: str | bytes, origin: str) -> Iterator[Dialogue]:
  """Yields the dialogues of one file. Raises SgdxError if the JSON is broken."""
  for item in decode_list(text, _Item, "dialogue_id", origin, _EXPECTED, _FIX):
    yield _dialogue(item, origin)


def _dialogue(item: _Item, origin: str) -> Dialogue:
  # Frames keep spans, acts and calls as they are in the file, unknown keys included: their form is
  # checked here.
  try:
    msgspec.convert(item, _AnnotatedDialogue, from_attributes=True)
  except (msgspec.ValidationError, UnicodeEncodeError) as e:  # the latter for half a character
    is_span = _SPAN_PLACE.search(str(e)) is not None
    raise SgdxError(
      f"{origin}, dialogue {item.dialogue_id}: {e}",
      expected=_EXPECTED_SPANS if is_span else _EXPECTED,
      available=available_keys(item, e),
      fix=_FIX_SPANS if is_span else _FIX,
    ) from None
  return Dialogue(item.dialogue_id, item.services, item.turns)


def write_dialogues(dialogues: Iterable[Dialogue]) -> str:
  """Returns the JSON text of a dialogue file, keys sorted as in the release."""
  data = [dialogue.to_json() for dialogue in dialogues]
  return json.dumps(data, indent=2, sort_keys=True) + "\n"


def check_dialogue(dialogue: Dialogue, schema: Schema, origin: str) -> None:
  """Refuses a dialogue that names something its schema lacks.

  Raises:
    SgdxError: for an unknown service, slot, intent or speaker, or turns that do not
      alternate starting with the user; it names dialogue and turn.
  """
  place = f"{origin}, dialogue {dialogue.dialogue_id}"
  check_speakers(dialogue, place)
  for i, turn in enumerate(dialogue.turns):
    for frame in turn.frames:
      _check_frame(frame, schema, f"{place}, turn {i}", needs_state=turn.speaker == USER)


def check_speakers(dialogue: Dialogue, place: str) -> None:
  """Raises SgdxError unless user and system speak in turn. Args: place, for errors."""
  for i, turn in enumerate(dialogue.turns):
    speaker = (USER, SYSTEM)[i % 2]  # records do not store who speaks
    if turn.speaker != speaker:
      raise SgdxError(
        f"{place}, turn {i}: speaker {turn.speaker!r}",
        expected=f"{speaker}: speakers alternate, and the user begins",
        fix="merge or split turns so that they alternate",
      )


def check_ids(dialogue: Dialogue, ids: Collection[str], origin: str) -> None:
  """Refuses a dialogue whose id is among `ids` or no text, or whose frames have the same id."""
  name = dialogue.dialogue_id
  if name in ids:
    raise SgdxError(
      f"{origin}: dialogue {name} occurs twice in the corpus",
      expected="unique dialogue ids in a split",
      fix="remove the duplicate file or dialogue",
    )
  if not is_text(name):
    raise SgdxError(
      f"{origin}: dialogue id {name!r} holds half a character (a lone surrogate)",
      expected="an id that UTF-8 can encode",
      fix="rename the dialogue, or write the file again",
    )
  frames = set()  # by which records, predictions and scores know them
  for turn, frame in dialogue.user_frames():
    if (turn, frame.service) in frames:
      raise SgdxError(
        f"{origin}, dialogue {name}, turn {turn}: two frames of {frame.service}",
        expected="at most one frame per service in a user turn",
        fix="merge them; sgdx data verify lists what else is wrong",
      )
    frames.add((turn, frame.service))


def _check_frame(frame: Frame, schema: Schema, place: str, needs_state: bool) -> None:
  try:
    service = schema[frame.service]
  except SgdxError as e:  # it names the schema, not the dialogue
    raise SgdxError(
      f"{place}: {e.found}", expected=e.expected, available=e.available, fix=e.fix
    ) from None
  if frame.state is None:
    if needs_state:
      raise SgdxError(
        f"{place}, service {frame.service}: user frame without a state",
        expected="active_intent, requested_slots and slot_values",
        fix="add the state; an empty one is valid",
      )
    return
  for slot in (*frame.state.slot_values, *frame.state.requested_slots):
    if slot not in service.slot_index:
      raise SgdxError(
        f"{place}: unknown slot {slot!r} of service {frame.service}",
        expected="a slot of the schema",
        available=nearest(slot, service.slot_index),
        fix="rename the slot in the dialogue, or use the schema that it was written for",
      )
  intent = frame.state.active_intent
  if intent != NO_INTENT and intent not in service.intent_index:
    raise SgdxError(
      f"{place}: unknown intent {intent!r} of service {frame.service}",
      expected="an intent of the schema, or NONE",
      available=nearest(intent, service.intent_index),
      fix="rename the intent in the dialogue, or use the schema that it was written for",
    )


def example_pick(frame_id: str) -> int:
  """A fixed number below 2**31 for a frame; the same in every process and engine."""
  return zlib.crc32(frame_id.encode()) & 0x7FFFFFFF
