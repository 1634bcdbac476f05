"""DSTC8 predictions: dialogues in SGD's format, with the names of the variant or the original.

Of SGD's format (see its README), only speaker, utterance, frames, service, state and the spans in
slots are read.
"""

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
  EXTRA,
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
  "state.slot_values, slot -> list of one or more strings"
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

  place: str  # file and dialogue
  dialogue_id: str
  turn: int
  utterance: str
  service: str
  state: PredictedState
  spans: tuple[PredictedSpan, ...] | None
  gold_history: bool

  @property
  def where(self) -> str:
    return f"{self.place}, turn {self.turn}"

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
  gold_ids = {frame.frame_id: frame.frame_id for frame in selection.gold}
  frames: dict[str, PredictedFrame] = {}
  shared: dict[tuple[str, ...], tuple[str, ...]] = {}
  for frame in raw:
    to = names[frame.service]
    key = frame_id(frame.dialogue_id, frame.turn, to.service)
    if key in frames:
      raise SgdxError(
        f"{frame.where}: service {frame.service} occurs twice in this turn",
        expected="one frame per service",
        fix="merge the two frames",
      )
    if key in gold_ids:  # frames of other services are not scored, as in the official scorer
      frames[gold_ids[key]] = _rename(frame, to, shared)
  _check_uniform(raw)
  gold_history = any(frame.gold_history for frame in raw)
  return Predictions(frames, len(unknown_dialogues), gold_history)


def _rename(
  frame: _RawFrame, to: Renaming, shared: dict[tuple[str, ...], tuple[str, ...]]
) -> PredictedFrame:
  """Returns a frame in original names; `shared` keeps equal values once, most stay for turns."""
  intent, requested, spans = frame.state.active_intent, frame.state.requested_slots, frame.spans
  values = {to.slots[slot]: tuple(texts) for slot, texts in frame.state.slot_values.items()}
  return PredictedFrame(
    {slot: shared.setdefault(texts, texts) for slot, texts in values.items()},
    None if intent is None else to.intents.get(intent, intent),
    None if requested is None else tuple(to.slots[slot] for slot in requested),
    None
    if spans is None
    else tuple((to.slots[s.slot], frame.utterance[s.start : s.exclusive_end]) for s in spans),
  )


def _check_uniform(raw: Sequence[_RawFrame]) -> None:
  """Rejects a key that only some states have: its mean would look like one over all frames.

  Frames without "slots" are the exception: the official scorer leaves them out of slot tagging.
  """
  for key in ("active_intent", "requested_slots"):
    without_key = [frame for frame in raw if getattr(frame.state, key) is None]
    if without_key and len(without_key) < len(raw):
      raise SgdxError(
        f"{without_key[0].where}, service {without_key[0].service}: no {key} in the state",
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
  turns = {(f.dialogue_id, f.turn): f.utterance_crc for f in selection.gold}
  dialogue_ids = dict.fromkeys(f.dialogue_id for f in selection.gold)
  file_of_dialogue: dict[str, str] = {}
  for file in files:
    selection.on_read(size_of(file))
    for item in _read_dialogues(file):
      where = f"{file}, dialogue {item.dialogue_id}"
      gold_history, states = item.history == "gold", _states(item, where)
      if item.dialogue_id not in dialogue_ids and selection.allow_missing:
        extra.add(item.dialogue_id)
        continue
      if item.dialogue_id not in dialogue_ids:
        raise SgdxError(
          f"{where}: no such dialogue",
          expected=f"a dialogue of {selection.split}",
          available=nearest(item.dialogue_id, similar_names(item.dialogue_id, dialogue_ids)),
          fix=EXTRA,
        )
      if item.dialogue_id in file_of_dialogue:
        raise SgdxError(
          f"{where}: the dialogue already occurs in {file_of_dialogue[item.dialogue_id]}",
          expected="unique dialogues",
          fix="remove one of the two",
        )
      file_of_dialogue[item.dialogue_id] = file.name
      for number, turn in enumerate(item.turns):
        crc = turns.get((item.dialogue_id, number))
        if crc is None:  # no gold frames: the official scorer ignores predicted ones
          continue
        if turn.speaker != USER or crc != utterance_crc(turn.utterance):
          raise SgdxError(
            f"{where}, turn {number}: differs from the user turn in the corpus",
            expected=f"the speaker and utterance of that turn in {selection.split}",
            available=f"{turn.speaker}: {turn.utterance!r}",
            fix=f"{SAME_CORPUS}; different splits have the same dialogue ids",
          )
        key = where, item.dialogue_id, number, turn.utterance
        for frame, state in zip(turn.frames, states.get(number, ()), strict=True):
          yield _RawFrame(*key, frame.service, state, frame.slots, gold_history)


def _states(item: PredictedDialogue, where: str) -> dict[int, list[PredictedState]]:
  """Returns the states of all user turns' frames. Raises SgdxError for a frame without one."""
  states: dict[int, list[PredictedState]] = {}
  for number, turn in enumerate(item.turns):
    for frame in turn.frames if turn.speaker == USER else ():
      if frame.state is None:
        problem = f"{where}, turn {number}, service {frame.service}: no state"
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
  schemas = {
    v: selection.schemas.get(selection.split, v) for v in dict.fromkeys((variant, ORIGINAL))
  }
  readings = {v: renamings(schema, selection.schema) for v, schema in schemas.items()}
  for frame in raw:
    fits = {v: r for v, r in readings.items() if _fits(frame, r)}
    if not fits:
      raise _unknown_name(frame, variant, readings, selection)
    readings = fits
  renaming, *alternatives = readings.values()
  for frame in raw if alternatives else ():
    if any(_renamed(frame, renaming) != _renamed(frame, x) for x in alternatives):
      raise SgdxError(
        f"{frame.where}: the names of {frame.service} exist both in {variant} and in the original",
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
  return [to.service, *(to.slots[slot] for slot in frame.slots)]


def _unknown_name(
  frame: _RawFrame,
  variant: str,
  readings: Mapping[str, Mapping[str, Renaming]],
  selection: Selection,
) -> SgdxError:
  names = " or ".join(readings)
  holders = [r[frame.service] for r in readings.values() if frame.service in r]
  if holders:
    slots = [slot for to in holders for slot in to.slots]
    slot = next((s for s in frame.slots if s not in slots), frame.slots[0])
    return SgdxError(
      f"{frame.where}: unknown slot {slot!r} of service {frame.service!r}",
      expected=f"slot names of {names}, from only one schema throughout",
      available=nearest(slot, slots),
      fix=f"check that these are predictions for {variant}; use the names of one schema throughout",
    )
  owners = [
    v
    for v in selection.corpus.variants
    if frame.service in selection.corpus.schema(selection.split, v)
  ]
  services = [service for r in readings.values() for service in r]
  return SgdxError(
    f"{frame.where}: unknown service {frame.service!r}",
    expected=f"service names of {names}, from only one schema throughout",
    available=f"{', '.join(owners)} has it" if owners else nearest(frame.service, services),
    fix=f"check that these are predictions for {variant}; use the names of one schema throughout",
  )
