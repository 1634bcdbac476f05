"""SpanDST's examples: frames and their context as the features of `spandst/README.md`.

All features are sequences of integers, which are joined for many frames at once. Examples keep what
each index refers to, so that `span_targets` can write and read answers.
"""

import array
import dataclasses
import functools
import random
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.records import turns
from sgdx_t5x.records.turns import FrameContext, States
from sgdx_t5x.spandst import answers
from sgdx_t5x.spandst.choices import Choices, frame_choices
from sgdx_t5x.spandst.span_text import (
  MEMORY,
  ServicePieces,
  SpanStyle,
  readable,
  service_pieces,
)
from sgdx_t5x.spandst.vocab_file import WordPieceFile

FEATURES = answers.FEATURES
LENGTHS = {
  "inputs": 384, "segments": 384, "slots": 24, "slot_context": 24, "values": 64, "value_slots": 64,
  "memory": 12, "intents": 8, "intent_context": 8, "targets": 256,
}  # fmt: skip
# Tracker-defined bits of `slot_context`, and those of `intent_context`.
REQUESTED_NOW, OFFERED_NOW, CONFIRMED_NOW, INFORMED_NOW = 32, 64, 128, 256
IS_SYSTEMS, REQUIRED, OPTIONAL, DONE_NOW, DONE_BEFORE = 512, 1024, 2048, 4096, 8192
_ACT_BITS = {
  turns.REQUEST: REQUESTED_NOW,
  turns.OFFER: OFFERED_NOW,
  turns.CONFIRM: CONFIRMED_NOW,
  turns.INFORM: INFORMED_NOW,
}
WAS_ACTIVE, WAS_OFFERED, WAS_DONE = 1, 2, 4
_numbers = functools.partial(array.array, "i")
_SEGMENT = {kind: _numbers([kind]) for kind in range(1, answers.OTHER_SERVICES + 1)}
_SHORTER = (20, 12, 8, 5)  # pieces per description if an input is too long
_ORDERS = 1_009  # of the parts of a service, from which a frame's is drawn
_LEAST = 32  # pieces that the utterances always keep
_POSITIONS = 512  # of MiniLM, and of any BERT


@dataclasses.dataclass(frozen=True, slots=True)
class Example:
  """A frame as a model reads it.

  Attributes:
    features: all of `FEATURES` except `targets`; the longest as arrays.
    choices: what the dialogue offers for its slots.
    slots: position of each slot shown.
    values: (number of the slot, position of the value) of each value shown.
    intents: position of each intent shown.
    system: (start of each piece in characters, its end (exclusive), position of the first piece).
    user: the same for the user's utterance.
  """

  features: dict[str, Any]
  choices: Choices
  slots: Sequence[int]
  values: Sequence[tuple[int, int]]
  intents: Sequence[int]
  system: tuple[Sequence[int], Sequence[int], int]
  user: tuple[Sequence[int], Sequence[int], int]


@dataclasses.dataclass(frozen=True, slots=True)
class _OrderedService:
  """A service as an input has it.

  Attributes:
    pieces: its parts, in the schema's order.
    ids: of all pieces, in the order of the input.
    slots, values, intents: as in `Example`.
    value_slots: number of the slot of each value.
    markers: "slots", "values" or "intents" -> where in `ids` the marker of each is.
  """

  pieces: ServicePieces
  ids: array.array
  slots: Sequence[int]
  values: Sequence[tuple[int, int]]
  value_slots: list[int]
  intents: Sequence[int]
  markers: Mapping[str, Sequence[int]]


class SpanReader:
  """Makes examples from the frames of a split in one variant; caches repeated parts."""

  def __init__(
    self,
    variant: Schema,
    vocabulary: WordPieceFile,
    style: SpanStyle | None = None,
    lengths: Mapping[str, int] | None = None,
  ):
    """Args: variant, the schema shown; vocabulary; style; lengths of features, see `LENGTHS`.

    A service may have any number of what has no length: a model that pads nothing needs none.
    """
    self._services, self._vocabulary = variant.services, vocabulary
    self._style = style or SpanStyle()
    self._lengths = LENGTHS if lengths is None else lengths
    self._cut = functools.lru_cache(maxsize=20_000)(vocabulary.cut)
    self._pieces = functools.lru_cache(maxsize=None)(self._service_pieces)
    self._ordered = functools.lru_cache(maxsize=512)(self._in_order)

  def _service_pieces(self, position: int, limit: int) -> ServicePieces:
    service = self._services[position]
    pieces = service_pieces(service, self._vocabulary, self._style, limit)
    slots = [slot for slot in pieces.slots if slot]
    check_sizes(service.name, self._lengths, slots, pieces.values, pieces.intents)
    return pieces

  def example(self, context: FrameContext, states: States, shuffle: str | None = None) -> Example:
    """Returns the example of a frame, without targets.

    Args:
      context: of the frame.
      states: of all services before its turn.
      shuffle: seed text for the order of slots, values and intents; None keeps the schema's.

    Raises:
      SgdxError: the service does not fit into the input, even with the shortest descriptions.
    """
    system, user = self._cut(context.system), self._cut(context.user)
    num_spoken = len(system.ids) + len(user.ids)
    choices, memory, limit, num_cut = self._fitting_choices(context, states, num_spoken)
    # What does not fit is cut from the oldest end: of the system's utterance before the user's.
    cut_of_system = min(len(system.ids), num_cut)
    cut_of_user = num_cut - cut_of_system
    draw = None if shuffle is None else zlib.crc32(shuffle.encode()) % _ORDERS
    schema = self._ordered(context.service, limit, draw)
    system_ids, user_ids = system.ids[cut_of_system:], user.ids[cut_of_user:]
    cls, sep = self._vocabulary.bos_id, self._vocabulary.eos_id
    ids = _numbers((cls, *system_ids, sep, *user_ids, sep))
    first_user = len(system_ids) + 2
    schema_start = len(ids)
    segments = _SEGMENT[answers.SEPARATOR] + _SEGMENT[answers.SYSTEM_UTTERANCE] * len(system_ids)
    segments += _SEGMENT[answers.SEPARATOR] + _SEGMENT[answers.USER_UTTERANCE] * len(user_ids)
    segments += _SEGMENT[answers.SEPARATOR] + _SEGMENT[answers.SCHEMA] * len(schema.ids)
    ids += schema.ids
    markers: dict[str, list[int]] = {}
    for name, places in schema.markers.items():
      markers[name] = [schema_start + place for place in places]
    markers["memory"] = []
    for pieces in memory:
      markers["memory"].append(len(ids))
      ids.fromlist(pieces)
    segments += _SEGMENT[answers.OTHER_SERVICES] * (len(ids) - len(segments))
    slot_context, intent_context = self._context_bits(context, states, choices, schema.pieces)
    features = {
      "inputs": ids,
      "segments": segments,
      **markers,
      "value_slots": schema.value_slots,
      "slot_context": [slot_context[slot] for slot in schema.slots],
      "intent_context": [intent_context[intent] for intent in schema.intents],
    }
    return Example(
      features,
      choices,
      schema.slots,
      schema.values,
      schema.intents,
      (system.starts[cut_of_system:], system.ends[cut_of_system:], 1),
      (user.starts[cut_of_user:], user.ends[cut_of_user:], first_user),
    )

  def _in_order(self, service: int, limit: int, draw: int | None) -> _OrderedService:
    """Returns a service with descriptions of at most `limit` pieces, in the order of `draw`."""
    pieces = self._pieces(service, limit)
    ids, values, value_slots = list(pieces.head), [], []
    markers: dict[str, list[int]] = {"slots": [], "values": [], "intents": []}
    positions = range(len(pieces.slots)) if self._style.all_slots else sorted(pieces.tracked)
    slots = [positions[i] for i in _order(len(positions), draw)]
    for number, slot in enumerate(slots, start=1):
      markers["slots"].append(len(ids))
      ids += pieces.slots[slot]
      for value in _order(len(pieces.values[slot]), draw):
        markers["values"].append(len(ids))
        values.append((number, value))
        value_slots.append(number)
        ids += pieces.values[slot][value]
    intents = _order(len(pieces.intents), draw)
    for intent in intents:
      markers["intents"].append(len(ids))
      ids += pieces.intents[intent]
    return _OrderedService(pieces, _numbers(ids), slots, values, value_slots, intents, markers)

  def _fitting_choices(
    self, context: FrameContext, states: States, num_spoken: int
  ) -> tuple[Choices, list[list[int]], int, int]:
    """Returns the choices, the pieces of each value of `memory`, and what `_fitting` returns.

    Of the utterances' `num_spoken` pieces at least 32 stay: the oldest values of other services
    make room for these.
    """
    size = min(self._style.memory, self._lengths.get("memory", self._style.memory))
    # The values of other services matter least, so one is dropped before another try.
    while True:
      choices = frame_choices(context, states, size)
      memory = []
      for value in choices.memory:
        name = readable(self._services[value.service].slots[value.slot].name)
        texts = self._cut(f"{name} :"), self._cut(value.values[0])
        memory.append([self._vocabulary.marker(MEMORY), *texts[0].ids, *texts[1].ids])
      if fitting := self._fitting(context.service, num_spoken, sum(map(len, memory))):
        return choices, memory, *fitting
      if not memory:
        raise self._too_long(context.service)
      size = len(memory) - 1

  def check(self) -> None:
    """Raises SgdxError, before any frame, for a service that leaves no room for utterances."""
    for position in range(len(self._services)):
      if self._fitting(position, _LEAST, 0) is None:
        raise self._too_long(position)

  def _fitting(self, service: int, num_spoken: int, num_memory: int) -> tuple[int, int] | None:
    """Returns how many pieces descriptions may have, and how many the utterances lose.

    None if too few of the utterances' `num_spoken` pieces would be left, beside `num_memory` of
    other services' values.
    """
    # Shorter descriptions before shorter utterances: a lost word of the user is a lost value.
    for limit in (self._style.description_tokens, *_SHORTER):
      # 3 pieces are [CLS] and a [SEP] after each utterance.
      room = self._lengths["inputs"] - 3 - num_memory - self._pieces(service, limit).length
      if num_spoken <= room:
        return limit, 0
    return None if room < min(num_spoken, _LEAST) else (limit, num_spoken - room)

  def _too_long(self, service: int) -> SgdxError:
    limit, shortest = self._lengths["inputs"], _SHORTER[-1]
    length = self._pieces(service, shortest).length + 3
    fix = "remove slots or values from it, or make two services of it"
    if length + _LEAST <= _POSITIONS:
      fix = f"`sgdx track --lengths inputs={_POSITIONS}`, in gin TASK_FEATURE_LENGTHS; or {fix}"
    return SgdxError(
      f"service {self._services[service].name}: {length} pieces without the utterances, "
      f"{_LEAST - limit + length} too many, even with names and descriptions cut to {shortest}",
      expected=f"at most {limit - _LEAST} of inputs={limit}",
      fix=fix,
    )

  def _context_bits(
    self, context: FrameContext, states: States, choices: Choices, pieces: ServicePieces
  ) -> tuple[list[int], list[int]]:
    """Returns the bits of all slots and of all intents, by their positions in the schema."""
    state = states.get(context.service)
    values = state.values if state else {}
    active = state.intent if state else turns.NONE
    bits, of_intents = [0] * len(pieces.slots), [0] * len(pieces.required)
    for slot in pieces.tracked:
      bits[slot] = answers.FILLABLE | (answers.MEMORY_OPEN if choices.memory else 0)
      if not pieces.values[slot]:
        bits[slot] |= answers.SPAN_OPEN
    if active != turns.NONE:
      of_intents[active] |= WAS_ACTIVE
      for slot in pieces.required[active]:
        bits[slot] |= REQUIRED
      for slot in pieces.optional[active]:
        bits[slot] |= OPTIONAL
    for slot in values:
      if slot in pieces.tracked:
        bits[slot] |= answers.CLEAR_OPEN
    for slot, (value, _) in choices.system.items():
      if slot in pieces.tracked:
        bits[slot] |= answers.SYSTEM_OPEN | (IS_SYSTEMS if value in values.get(slot, ()) else 0)
    success = 0
    for turn, service, act, slot, _ in context.acts:
      if service != context.service:
        continue
      if act == turns.NOTIFY_SUCCESS:
        success |= DONE_NOW if turn == context.turn - 1 else DONE_BEFORE
      # What the system did longer ago shows only in its last values, `choices.system`.
      elif turn == context.turn - 1 and slot != turns.NONE:
        if act == turns.OFFER_INTENT:
          of_intents[slot] |= WAS_OFFERED
        else:
          bits[slot] |= _ACT_BITS.get(act, 0)
    if success:
      bits = [x | success for x in bits]
      of_intents = [x | WAS_DONE for x in of_intents]
    return bits, of_intents


def check_sizes(
  service: str,
  lengths: Mapping[str, int],
  slots: Sequence[Any],
  values: Sequence[Sequence[Any]],
  intents: Sequence[Any],
) -> None:
  """Raises SgdxError if a service has more slots, values or intents than features can hold.

  Args:
    service: its name.
    lengths: of the features; one that is missing is not limited.
    slots: of the service.
    values: of each slot.
    intents: of the service.
  """
  sizes = {"slots": len(slots), "values": sum(map(len, values)), "intents": len(intents)}
  for name, size in sizes.items():
    if size > lengths.get(name, size):
      raise SgdxError(
        f"service {service} has {size} {name}",
        expected=f"at most {lengths[name]}: TASK_FEATURE_LENGTHS[{name!r}]",
        fix=f"raise it: `sgdx track --lengths {name}={size}`; in gin for training, together with "
        "the feature that must have the same length",
      )


@functools.lru_cache(maxsize=30_000)
def _order(size: int, draw: int | None) -> tuple[int, ...]:
  """Returns a permutation of `range(size)` with seed `draw`; the identity if that is None."""
  numbers = range(size)
  return tuple(numbers if draw is None else random.Random(draw).sample(numbers, size))
