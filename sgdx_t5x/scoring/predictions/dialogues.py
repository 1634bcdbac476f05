"""DSTC8 predictions: dialogues in SGD's format, with the names of the variant or the original.

Of SGD's format (see its README), only speaker, utterance, frames, service, state and the spans in
slots are read.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from sgdx_t5x.corpus.conversion import Renaming, renamings
from sgdx_t5x.corpus.dialogue import USER, Values, frame_id
from sgdx_t5x.corpus.variants import ORIGINAL
from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files.reading import converted_item, decode_list, opened
from sgdx_t5x.metrics.frames import PredictedFrame, utterance_crc
from sgdx_t5x.scoring.predictions.files import (
  FIX_FOR_EXTRA,
  SAME_CORPUS,
  InMemory,
  PredictionFile,
  Predictions,
  Selection,
  similar_names,
  size_of,
)

_EXPECTED = (
  "DSTC8 dialogues: turns with speaker, utterance and frames; user frames with service and "
  "state.slot_values, slot -> list of one or more strings; slots, if any, are spans with slot, "
  "start and exclusive_end: items that mark no text (MultiWOZ 2.2's with copy_from) can be left out"
)
_FIX = "correct the file; rename it to *.jsonl if it holds JSON Lines"


class PredictedState(msgspec.Struct):
  """A predicted state, with the names of the file; None for what the tracker does not predict."""

  slot_values: dict[str, Values]
  active_intent: str | None = None
  requested_slots: tuple[str, ...] | None = None


class PredictedSpan(msgspec.Struct):
  """Where a slot's value is in the utterance."""

  slot: str
  start: int
  exclusive_end: int


class PredictedService(msgspec.Struct):
  """One frame: of the user's turns, all have a state."""

  service: str
  state: PredictedState | None = None
  slots: tuple[PredictedSpan, ...] | None = None


class PredictedTurn(msgspec.Struct):
  """One turn of a DSTC8 dialogue."""

  speaker: str
  utterance: str
  frames: tuple[PredictedService, ...]


class PredictedDialogue(msgspec.Struct):
  """One dialogue of a DSTC8 file; its history is "gold" if `sgdx track --history gold` wrote it."""

  dialogue_id: str
  turns: tuple[PredictedTurn, ...]
  history: Any = None


def _read_dialogues(file: PredictionFile) -> list[PredictedDialogue]:
  """Returns the dialogues of a DSTC8 file. Raises SgdxError if it is truncated or malformed."""
  form = PredictedDialogue, "dialogue_id", str(file), _EXPECTED, _FIX
  if isinstance(file, InMemory):
    return [converted_item(dict(item), *form) for item in file.items]
  with opened(file, _EXPECTED) as stream:
    return decode_list(stream.read(), *form)


class _RawFrame(msgspec.Struct):
  """A predicted user frame, with the names of the file."""

  dialogue_location: str  # file and dialogue
  dialogue_id: str
  turn: int
  utterance: str
  service: str
  state: PredictedState
  spans: tuple[PredictedSpan, ...] | None
  gold_history: bool

  @property
  def location(self) -> str:
    return f"{self.dialogue_location}, turn {self.turn}"

  @property
  def slots(self) -> list[str]:
    """All slots named in the frame."""
    tagged = [span.slot for span in self.spans or ()]
    return [*self.state.slot_values, *(self.state.requested_slots or ()), *tagged]


def dialogue_frames(
  files: Sequence[PredictionFile], variant: str, selection: Selection
) -> Predictions:
  """Returns the predictions in DSTC8 files, in original names.

  Args:
    files: predictions for one variant; a dialogue is in one of them.
    variant: their names are those of its schema, or the original ones.
    selection: which frames are scored; predictions for others are left out.

  Raises:
    SgdxError: an invalid file, a name that is in neither schema or ambiguous, two predictions for a
      frame, or a key that only some states have.
  """
  unknown_dialogues: set[str] = set()  # filled by `_raw_frames`: ids that the corpus lacks
  # All frames before the first is renamed: only together do they show whose names they have.
  raw = list(_raw_frames(files, selection, unknown_dialogues))
  names = _find_names(raw, variant, selection)
  # The gold frames' own strings, so that each id is in memory once, whatever the variants.
  gold_ids = {frame.frame_id: frame.frame_id for frame in selection.gold}
  frames: dict[str, PredictedFrame] = {}
  shared: dict[Values, Values] = {}
  for frame in raw:
    to = names[frame.service]
    key = frame_id(frame.dialogue_id, frame.turn, to.service)
    if key in frames:
      raise SgdxError(
        f"{frame.location}: service {frame.service} occurs twice in this turn",
        expected="one frame per service",
        fix="merge the two frames",
      )
    if key in gold_ids:  # frames of other services are not scored, as in the official scorer
      frames[gold_ids[key]] = _rename(frame, to, shared)
  _check_uniform(raw)
  gold_history = any(frame.gold_history for frame in raw)
  return Predictions(frames, len(unknown_dialogues), gold_history)


def _rename(frame: _RawFrame, to: Renaming, shared: dict[Values, Values]) -> PredictedFrame:
  """Returns a frame in original names; `shared` keeps equal values once, most stay for turns."""
  values: dict[str, Values] = {}
  for slot, texts in frame.state.slot_values.items():
    values[to.slots[slot]] = shared.setdefault(texts, texts)
  intent, requested = frame.state.active_intent, frame.state.requested_slots
  spans: tuple[tuple[str, str], ...] | None = None
  if intent is not None:
    # The service has no "NONE"; and an intent it lacks is simply wrong.
    intent = to.intents.get(intent, intent)
  if requested is not None:
    requested = tuple(to.slots[slot] for slot in requested)
  if frame.spans is not None:
    text = frame.utterance
    spans = tuple((to.slots[s.slot], text[s.start : s.exclusive_end]) for s in frame.spans)
  return PredictedFrame(values, intent, requested, spans)


def _check_uniform(raw: Sequence[_RawFrame]) -> None:
  """Rejects a key that only some states have: its mean would look like one over all frames.

  Frames without "slots" are the exception: the official scorer leaves them out of slot tagging.
  """
  for key in ("active_intent", "requested_slots"):
    without_key = [frame for frame in raw if getattr(frame.state, key) is None]
    if without_key and len(without_key) < len(raw):
      raise SgdxError(
        f"{without_key[0].location}, service {without_key[0].service}: no {key} in the state",
        expected=f"{key} in the state of every user frame, or of none",
        available=f"{len(raw) - len(without_key):,} of {len(raw):,} frames have it",
        fix="write it in every state, or omit it in all, which makes its scores null",
      )


def _raw_frames(
  files: Sequence[PredictionFile], selection: Selection, extra: set[str]
) -> Iterator[_RawFrame]:
  """Yields the predicted user frames, after checking dialogues and utterances against the gold.

  Ids of dialogues that are not in the corpus are added to `extra` if `allow_missing` is set.
  """
  gold_crcs: dict[str, dict[int, int]] = {}  # dialogue -> turn -> checksum of its utterance
  for gold in selection.gold:
    gold_crcs.setdefault(gold.dialogue_id, {})[gold.turn] = gold.utterance_crc
  file_of_dialogue: dict[str, str] = {}
  for file in files:
    selection.on_read(size_of(file))
    for item in _read_dialogues(file):
      location = f"{file}, dialogue {item.dialogue_id}"
      # Checked even in dialogues that are left out: the file is malformed all the same.
      gold_history, states = item.history == "gold", _states(item, location)
      if item.dialogue_id not in gold_crcs and item.dialogue_id not in selection.dialogue_ids:
        if selection.allow_missing:
          extra.add(item.dialogue_id)
          continue
        raise SgdxError(
          f"{location}: no such dialogue",
          expected=f"a dialogue of {selection.split}",
          available=nearest(item.dialogue_id, similar_names(item.dialogue_id, gold_crcs)),
          fix=FIX_FOR_EXTRA,
        )
      if item.dialogue_id in file_of_dialogue:
        raise SgdxError(
          f"{location}: the dialogue already occurs in {file_of_dialogue[item.dialogue_id]}",
          expected="unique dialogues",
          fix="remove one of the two",
        )
      file_of_dialogue[item.dialogue_id] = file.name
      crcs = gold_crcs.get(item.dialogue_id, {})  # none for a dialogue without user frames
      for number, turn in enumerate(item.turns):
        crc = crcs.get(number)
        if crc is None:  # no gold frames: the official scorer ignores predicted ones
          continue
        if turn.speaker != USER or crc != utterance_crc(turn.utterance):
          raise SgdxError(
            f"{location}, turn {number}: differs from the user turn in the corpus",
            expected=f"the speaker and utterance of that turn in {selection.split}",
            available=f"{turn.speaker}: {turn.utterance!r}",
            fix=f"{SAME_CORPUS}; different splits have the same dialogue ids",
          )
        key = location, item.dialogue_id, number, turn.utterance
        for frame, state in zip(turn.frames, states.get(number, ()), strict=True):
          yield _RawFrame(*key, frame.service, state, frame.slots, gold_history)


def _states(item: PredictedDialogue, location: str) -> dict[int, list[PredictedState]]:
  """Returns the states of all user turns' frames. Raises SgdxError for a frame without one."""
  states: dict[int, list[PredictedState]] = {}
  for number, turn in enumerate(item.turns):
    for frame in turn.frames if turn.speaker == USER else ():
      if frame.state is None:
        problem = f"{location}, turn {number}, service {frame.service}: no state"
        raise SgdxError(problem, expected=_EXPECTED, fix=_FIX)
      states.setdefault(number, []).append(frame.state)
  return states


def _find_names(
  raw: Sequence[_RawFrame], variant: str, selection: Selection
) -> Mapping[str, Renaming]:
  """Returns the mapping from the predictions' names, the variant's or the original, to original.

  Raises:
    SgdxError: a name that neither the original nor the variant has, a mixture of both, or names
      that mean different things in the two.
  """
  readings = {}
  for schema_name in dict.fromkeys((variant, ORIGINAL)):
    schema = selection.schemas.get(selection.split, schema_name)
    readings[schema_name] = renamings(schema, selection.schema)
  # A reading must fit every frame so far, so a file that mixes the names of both fits neither.
  for frame in raw:
    fits = {name: renaming for name, renaming in readings.items() if _fits(frame, renaming)}
    if not fits:
      raise _unknown_name(frame, variant, readings, selection)
    readings = fits
  renaming, *alternatives = readings.values()
  for frame, alternative in itertools.product(raw, alternatives):
    if _renamed(frame, renaming) != _renamed(frame, alternative):  # harmless if they mean the same
      raise SgdxError(
        f"{frame.location}: the names of {frame.service} exist both in {variant} and in the "
        "original",
        expected="unambiguous names",
        available=", ".join(frame.slots),
        fix="give the services of variants distinct names, as in SGD-X (Banks_2, Banks_21)",
      )
  return renaming


def _fits(frame: _RawFrame, names: Mapping[str, Renaming]) -> bool:
  to = names.get(frame.service)
  return to is not None and all(slot in to.slots for slot in frame.slots)


def _renamed(frame: _RawFrame, names: Mapping[str, Renaming]) -> list[str]:
  to = names[frame.service]
  renamed = [to.service, *(to.slots[slot] for slot in frame.slots)]
  if intent := frame.state.active_intent:
    renamed.append(to.intents.get(intent, intent))
  return renamed


def _unknown_name(
  frame: _RawFrame,
  variant: str,
  readings: Mapping[str, Mapping[str, Renaming]],
  selection: Selection,
) -> SgdxError:
  services: list[str] = []
  slots: list[str] = []
  for renaming in readings.values():
    services += renaming
    if frame.service in renaming:
      slots += renaming[frame.service].slots
  if frame.service in services:
    # All slots may be in one of the schemas, if the frame mixes the names of the two.
    slot = next((x for x in frame.slots if x not in slots), frame.slots[0])
    kind, problem = "slot", f"unknown slot {slot!r} of service {frame.service!r}"
    available = nearest(slot, slots)
  else:
    owners = []
    for name in selection.corpus.variants:
      if frame.service in selection.corpus.schema(selection.split, name):
        owners.append(name)
    kind, problem = "service", f"unknown service {frame.service!r}"
    available = f"{', '.join(owners)} has it" if owners else nearest(frame.service, services)
  return SgdxError(
    f"{frame.location}: {problem}",
    expected=f"{kind} names of {' or '.join(readings)}, from only one schema throughout",
    available=available,
    fix=f"check that these are predictions for {variant}; use the names of one schema throughout",
  )
