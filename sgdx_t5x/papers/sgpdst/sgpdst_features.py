"""SGP-DST's examples: what each of its four sub-models reads of a frame.

The released code pads the utterance to a fixed length inside the sequence. Here that padding is
left out, but tokens keep the positions they have with it.
"""

import bisect
import dataclasses
import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence

from sgdx_t5x.corpus.schema import Schema, Service, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.sgpdst import sgpdst_answers as a
from sgdx_t5x.papers.sgpdst.sgpdst import NULL, Answers, Pair, history, offers
from sgdx_t5x.records.turns import NONE, NOTIFY_SUCCESS, REQUEST, FrameContext, Span, States
from sgdx_t5x.spandst.span_text import readable
from sgdx_t5x.spandst.vocab_file import WordPieceFile

FEATURES = ("inputs", "segments", "positions", "context", "targets")
# Maximum pieces before the schema's texts, and in the whole input, in the released code.
UTTERANCE = {"intent": 96, "combine": 72, "copy": 96, "cross": 96}
INPUTS = {"intent": 196, "combine": 144, "copy": 160, "cross": 160}
# Bits of `context` of combine; of copy and cross; and of intent, on the pieces of one option.
GIVEN, ASKED = 2, 4
ALWAYS, FILLED, REQUIRED, OPTIONAL, DONE = 1, 2, 4, 8, 16
WAS_ACTIVE = 1
_SHORTER = (None, 24, 16, 10, 6, 4)  # pieces per description if an input is too long
_LEAST = 16  # pieces that the utterances always keep


@dataclasses.dataclass(frozen=True)
class SgpStyle:
  """Switches of the input and of training.

  Attributes:
    sampling: which examples an epoch uses: "meant" or "mild", see `sgpdst.SAMPLING`.
    utterance: maximum pieces before the schema's texts; None means `UTTERANCE`.
  """

  sampling: str = "meant"
  utterance: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Example:
  """What a sub-model reads.

  Attributes:
    features: all of `FEATURES` except `targets`.
    pieces: position of each utterance piece in the input -> (by the user, start character, end
      character (exclusive)).
    null: position of "null"; 0 if there is none.
  """

  features: dict[str, list[int]]
  pieces: Mapping[int, tuple[bool, int, int]]
  null: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class _Said:
  ids: list[int]
  segments: list[int]
  places: list[tuple[bool, int, int] | None]


class SgpReader:
  """Makes the examples of a sub-model for the frames of a split in one variant."""

  def __init__(
    self,
    part: str,
    variant: Schema,
    vocabulary: WordPieceFile,
    style: SgpStyle | None = None,
    length: int | None = None,
  ):
    """Reads a schema.

    Args:
      part: one of `sgpdst.PARTS`.
      variant: the schema shown.
      vocabulary: tokenizes texts.
      style: of the input.
      length: maximum pieces in an input; None means `INPUTS`.
    """
    self._part = part
    self._services, self._vocabulary = variant.services, vocabulary
    self._limit = (style or SgpStyle()).utterance or UTTERANCE[part]
    self._length = length or INPUTS[part]
    self._cut = functools.lru_cache(maxsize=20_000)(vocabulary.cut)
    self._said = functools.lru_cache(maxsize=64)(self._say)
    self._texts = functools.lru_cache(maxsize=None)(self._fitting)
    null = self._cut("null").ids
    self._null = null[0] if len(null) == 1 else vocabulary.marker(1)

  # --- examples ----------------------------------------------------------------------------

  def intent(self, context: FrameContext, previous: int, jumped: bool) -> Example:
    """Returns the example of a frame for the intent model.

    Args:
      context: of the frame.
      previous: position of the intent that was active, or NONE.
      jumped: whether the turn's services differ from those of the previous user turn.
    """
    options = self._texts(context.service, None)[1]
    active = previous if previous != NONE else len(self._services[context.service].intents)
    head = [*self._cut("jump" if jumped else "keep").ids, self._vocabulary.eos_id]
    example = self._example(context.system, context.user, head, [], ([], options), 0)
    numbers = example.features["segments"]
    example.features["context"] = [WAS_ACTIVE * (n == a.OPTION + active) for n in numbers]
    return example

  def combine(self, context: FrameContext, slot: int) -> Example:
    """Returns the example of a slot for the combine model."""
    texts = self._texts(context.service, slot)
    bits = combine_context(context, slot)
    return self._example(context.system, context.user, [], None, texts, bits)

  def combine_system(self, context: FrameContext, slot: int) -> Example:
    """Returns the combine model's example of a slot for the system turn before a frame."""
    acts = tuple(act for act in context.acts if act.turn < context.turn - 1)
    bits = combine_context(dataclasses.replace(context, acts=acts, turn=context.turn - 1), slot)
    return self._example(context.system, None, [], None, self._texts(context.service, slot), bits)

  def copy(self, context: FrameContext, slot: int, filled: bool, intent: int) -> Example:
    """Returns the copy model's example of a slot that the system gave a value.

    Args:
      context: of the frame.
      slot: position of the slot.
      filled: whether the previous state has a value for it.
      intent: position of the active intent of this frame, or NONE.
    """
    service = self._services[context.service]
    bits = ALWAYS | FILLED * filled | needed_by(service, slot, intent)
    service_text = self._cut(f"api: {service.description.lower()}").ids[: self._limit - _LEAST - 1]
    head = [*service_text, self._vocabulary.eos_id]
    texts = self._texts(context.service, slot)
    return self._example(context.system, context.user, head, [], texts, bits)

  def cross(self, context: FrameContext, pair: Pair, filled: bool, intent: int) -> Example:
    """Returns the cross model's example of a pair of slots; args as in `copy`, of the first."""
    slot, (source, theirs) = pair
    service = self._services[context.service]
    is_done = any(act.act == NOTIFY_SUCCESS and act.service == source for act in context.acts)
    bits = ALWAYS | FILLED * filled | needed_by(service, slot, intent) | DONE * is_done
    tail = [self._vocabulary.eos_id, *self._texts(context.service, slot)[0]]
    texts = self._texts(source, theirs)
    return self._example(context.system, context.user, [], tail, texts, bits)

  def check(self) -> None:
    """Raises SgdxError, before any frame, for a service whose texts do not fit into the input."""
    for position, service in enumerate(self._services):
      for slot in (None,) if self._part == "intent" else range(len(service.slots)):
        self._texts(position, slot)

  # --- their parts -------------------------------------------------------------------------

  def _example(
    self,
    system: str,
    user: str | None,
    head: list[int],
    tail: list[int] | None,
    texts: tuple[list[int], list[list[int]]],
    bits: int,
  ) -> Example:
    """Builds an example: [CLS] head utterance tail [SEP] text [SEP] option [SEP] ...

    Args:
      system: what the system said.
      user: what the user said; None for the system's utterance alone.
      head: pieces before the utterances.
      tail: pieces after them; None for "null".
      texts: of the schema: pieces, and pieces of each option.
      bits: of `context`, for all pieces.
    """
    utterances, v = self._said(system, user), self._vocabulary
    behind = [self._null] if tail is None else tail
    room = self._limit - len(head) - len(behind)
    if room < _LEAST:
      raise self._too_long(f"{self._limit - room} pieces besides the utterances", self._limit)
    cut = max(len(utterances.ids) - room, 0)
    ids = [v.bos_id, *head, *utterances.ids[cut:], *behind]
    segments = [a.FIRST] * (1 + len(head)) + utterances.segments[cut:]
    placed = enumerate(utterances.places[cut:], start=1 + len(head))
    pieces = {position: place for position, place in placed if place is not None}
    null = len(ids) - 1 if tail is None else 0
    segments += [a.NULL if tail is None else a.FIRST] * len(behind)
    positions = list(range(len(ids)))
    second = [*texts[0], v.eos_id] if texts[0] else []
    numbers = [a.SECOND] * len(second)
    for number, option in enumerate(texts[1]):
      second += [*option, v.eos_id]
      numbers += [a.OPTION + number] * (len(option) + 1)
    ids += [v.eos_id, *second]
    segments += [a.FIRST, *numbers]
    positions += range(1 + self._limit, 2 + self._limit + len(second))
    features = {"inputs": ids, "segments": segments, "positions": positions}
    return Example({**features, "context": [bits] * len(ids)}, pieces, null)

  def _say(self, system: str, user: str | None) -> _Said:
    """Returns the pieces of the last utterances."""
    utterances = _Said([], [], [])
    spoken = ((False, "sys :", system), (True, "usr :", user))
    for by_user, name, text in spoken if user is not None else ((False, "", system),):
      ids = self._cut(name).ids
      utterances.ids.extend(ids)
      utterances.segments.extend([a.FIRST] * len(ids))
      utterances.places.extend([None] * len(ids))
      cut = self._cut(text or "")
      utterances.ids.extend(cut.ids)
      utterances.segments.extend([a.USER if by_user else a.SYSTEM] * len(cut.ids))
      utterances.places.extend((by_user, *at) for at in zip(cut.starts, cut.ends, strict=True))
    return utterances

  def _fitting(self, position: int, slot: int | None) -> tuple[list[int], list[list[int]]]:
    """Returns pieces of a slot, or of a service's intents, with descriptions cut to fit."""
    service = self._services[position]
    room = self._length - 2 - self._limit
    if self._part == "cross":
      room = min(room, self._limit - _LEAST)
    for limit in _SHORTER:
      text, options = self._shown(service, slot, limit)
      length = (len(text) + 1 if text else 0) + sum(len(option) + 1 for option in options)
      if length <= room:
        break
    element = "its intents" if slot is None else f"slot {service.slots[slot].name}"
    if length > room:
      raise self._too_long(f"service {service.name}: {element} takes {length} pieces", room)
    if len(options) > a.MAX_OPTIONS:
      raise SgdxError(
        f"service {service.name}: {element} with {len(options)} options",
        expected=f"at most {a.MAX_OPTIONS}, including 'null' and 'do not care'",
        fix="remove some intents, or some of the slot's possible values",
      )
    return text, options

  def _shown(
    self, service: Service, slot: int | None, limit: int | None
  ) -> tuple[list[int], list[list[int]]]:
    def cut(name: str, between: str, description: str) -> list[int]:
      return [*self._cut(f"{name} {between}").ids, *self._cut(description).ids[:limit]]

    if slot is None:
      options = [
        [*self._cut(intent.description).ids[:limit], *self._cut(f"# {intent.name}").ids]
        for intent in service.intents
      ]
      return [], [*options, list(self._cut("none").ids)]
    schema_slot: Slot = service.slots[slot]
    if self._part == "copy":
      return list(self._cut(schema_slot.description).ids[:limit]), []
    text = cut(readable(schema_slot.name), "#", schema_slot.description)
    if self._part == "cross":
      return text, []
    kind = "sort" if schema_slot.is_categorical else "tag"
    options = ["null", "do not care", *schema_slot.possible_values]
    return [*self._cut(f"{kind} #").ids, *text], [list(self._cut(o).ids) for o in options]

  def _too_long(self, problem: str, room: int) -> SgdxError:
    return SgdxError(
      problem,
      expected=f"at most {room} of {self._length} pieces for it: TASK_FEATURE_LENGTHS['inputs']",
      fix="shorten the service's description, names and values, or raise it in gin, up to the "
      "encoder's number of positions",
    )


def combine_context(context: FrameContext, slot: int) -> int:
  """Returns the bits of a slot: the system gave it a value before, or asks for it now."""
  bits = GIVEN if (context.service, slot) in offers(context.acts, inform=True) else 0
  asks = any(
    (act.service, act.slot, act.act) == (context.service, slot, REQUEST)
    and act.turn == context.turn - 1
    for act in context.acts
  )
  return bits | ASKED * asks


def needed_by(service: Service, slot: int, intent: int) -> int:
  """Returns whether an intent requires or accepts a slot, as bits of `context`."""
  if intent == NONE:
    return 0
  name, taker = service.slots[slot].name, service.intents[intent]
  return REQUIRED * (name in taker.required_slots) | OPTIONAL * (name in taker.optional_slots)


def has_jumped(context: FrameContext, states: States) -> bool:
  """Whether a turn's services differ from those of the previous user turn."""
  previous = {service for service, state in states.items() if state.turn == context.turn - 2}
  return bool(states) and previous != set(context.turn_services)


def copied_slots(context: FrameContext) -> list[int]:
  """Returns the slots of a frame that copy is asked about: those that the system gave a value."""
  return sorted(slot for service, slot in offers(context.acts) if service == context.service)


def given_slots(context: FrameContext) -> set[int]:
  """Returns the slots of a frame that the system gave any value, INFORM included."""
  return {slot for service, slot in offers(context.acts, True) if service == context.service}


def crossed_pairs(context: FrameContext, states: States, slots: Iterable[int]) -> list[Pair]:
  """Returns the pairs of slots that cross is asked about. Args: slots of the frame's service."""
  return list(itertools.product(slots, sorted(history(context, states))))


def open_slots(
  service: Service, context: FrameContext, filled: Mapping[int, Sequence[str]]
) -> list[int]:
  """Returns the free-text slots that another service's value may fill: empty and not given.

  Args:
    service: the frame's.
    context: of the frame.
    filled: the service's values before the turn.
  """
  from_system = given_slots(context)
  unavailable = from_system.union(filled)
  empty = [slot for slot in service.tracked_slots if slot not in unavailable]
  return [slot for slot in empty if not service.slots[slot].is_categorical]


# --- targets, and answers read ------------------------------------------------------------------


def span_targets(example: Example, span: Span | None) -> tuple[int, int]:
  """Returns positions of a span's first and last piece; of "null" if it is None or was cut off."""
  if span is not None:
    mine = [(at, *place[1:]) for at, place in example.pieces.items() if place[0] == span.by_user]
    first_piece = bisect.bisect_right([end for _, _, end in mine], span.start)
    last = bisect.bisect_left([start for _, start, _ in mine], span.end) - 1
    cut_off = not mine or mine[0][1] > span.start
    if first_piece <= last and not cut_off:
      return mine[first_piece][0], mine[last][0]
  return example.null, example.null


def slot_targets(example: Example, labels: Answers, slot: int) -> list[int]:
  """Returns combine's targets: first and last piece, option from 1, is requested, has a span.

  Args:
    example: of the slot.
    labels: `sgpdst.right_answers` of the frame.
    slot: its position.
  """
  span = labels.spans[slot][0] if slot in labels.spans else None
  number = labels.options[slot][0] if slot in labels.options else NULL
  first_piece, last = span_targets(example, span)
  is_span = (first_piece, last) != (example.null, example.null)
  is_requested = a.YES if slot in labels.requested else a.NO
  return [first_piece, last, number + 1, is_requested, a.YES if is_span else a.NO]


def read_span(example: Example, answer: a.SlotAnswer, slot: int) -> Span | None:
  """Returns the span that an answer points to; None for "null" or a span across utterances."""
  first_piece, last = (example.pieces.get(at) for at in (answer.first, answer.last))
  if first_piece is None or last is None or first_piece[0] != last[0]:
    return None
  return Span(slot, first_piece[0], first_piece[1], last[2])
