"""DSTC8 predictions: dialogues in SGD's format, with the names of the variant or the original.

Of SGD's format (see its README), only speaker, utterance, frames, service, state and the spans in
slots are read.
"""

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.dialogue import USER, frame_id
from sgdx_t5x.corpus.variants import ORIGINAL, Renaming, renamings
from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files.reading import decode_json, opened
from sgdx_t5x.metrics.frames import PredictedFrame, utterance_crc
from sgdx_t5x.scoring.predictions.files import (
  EXTRA,
  SAME_CORPUS,
  Predictions,
  Selection,
  similar_names,
)

_STR = frozenset((str,))  # to compare with the types of a list's items; faster than one by one


@dataclasses.dataclass(frozen=True, slots=True)
class PredictedTurn:
  """One turn of a DSTC8 dialogue; `frames` is (service, prediction), with the file's names."""

  index: int
  speaker: str
  utterance: str
  frames: tuple[tuple[str, PredictedFrame], ...]

  @property
  def utterance_crc(self) -> int:
    """CRC-32, to compare with `GoldFrame.utterance_crc`."""
    return utterance_crc(self.utterance)


@dataclasses.dataclass(frozen=True, slots=True)
class PredictedDialogue:
  """One dialogue of a DSTC8 file; `gold_history`: written by `sgdx track --history gold`."""

  dialogue_id: str
  turns: tuple[PredictedTurn, ...]
  gold_history: bool = False


def read_dialogue_items(file: pathlib.Path) -> Iterator[PredictedDialogue]:
  """Yields the dialogues of a DSTC8 file. Raises SgdxError if it is truncated or malformed."""
  fix = "correct the file; rename it to *.jsonl if it holds JSON Lines"
  expected = "a complete file of dialogues"
  with opened(file, expected) as stream:
    items = decode_json(stream.read(), str(file), expected, fix)
  if not isinstance(items, list):
    raise SgdxError(
      f"{file}: the top-level JSON value has type {type(items).__name__}",
      expected="a list of dialogues, as in SGD's dialogues_001.json",
      fix="pass DSTC8 dialogues, or JSONL in a file named *.jsonl",
    )
  for item in items:
    try:
      name = _text(item["dialogue_id"], "dialogue_id")
      turns = tuple(_parse_turn(i, turn) for i, turn in enumerate(item["turns"]))
      dialogue = PredictedDialogue(name, turns, item.get("history") == "gold")
    except (KeyError, TypeError, AttributeError) as e:
      name = item.get("dialogue_id", "?") if isinstance(item, dict) else "?"
      raise SgdxError(
        f"{file}, dialogue {name}, {_reason(e)}",
        expected="turns with speaker, utterance and frames; user frames with service and "
        "state.slot_values, slot -> list of one or more strings; requested_slots as a list",
        fix="write each slot in the state with a list of values, and omit all other slots",
      ) from None
    yield dialogue


def _parse_turn(index: int, turn: Mapping[str, Any]) -> PredictedTurn:
  where = f"turn {index}"
  try:
    utterance, frames = _text(turn["utterance"], "utterance"), []
    for frame in turn["frames"] if turn["speaker"] == USER else ():
      where = f"turn {index}, service {frame.get('service')}"
      frames.append((_text(frame["service"], "service"), _parse_frame(frame, utterance)))
  except (KeyError, TypeError, AttributeError) as e:
    raise TypeError(f"{where}: {_reason(e)}") from None
  return PredictedTurn(index, turn["speaker"], utterance, tuple(frames))


def _parse_frame(frame: Mapping[str, Any], utterance: str) -> PredictedFrame:
  state = frame["state"]
  for slot, values in state["slot_values"].items():
    if not (isinstance(values, list) and values and _STR.issuperset(map(type, values))):
      raise TypeError(f"slot {slot!r}: {values!r} is not a list of one or more strings")
  intent, requested, spans = (
    state.get("active_intent"),
    state.get("requested_slots"),
    frame.get("slots"),
  )
  if requested is not None:
    if not (isinstance(requested, list) and _STR.issuperset(map(type, requested))):
      raise TypeError(f"requested_slots: {requested!r} is not a list of names")
    requested = tuple(requested)
  if spans is not None:
    if not isinstance(spans, list):
      raise TypeError(f"slots: {spans!r} is not a list of spans")
    spans = tuple(
      (_text(s["slot"], "slot"), utterance[s["start"] : s["exclusive_end"]]) for s in spans
    )
  intent = intent if intent is None else _text(intent, "active_intent")
  return PredictedFrame(state["slot_values"], intent, requested, spans)


def _text(value: Any, what: str) -> str:
  if not isinstance(value, str):
    raise TypeError(f"{what}: {value!r} is not a string")
  return value


def _reason(error: Exception) -> str:
  return f"missing key {error}" if isinstance(error, KeyError) else str(error)


@dataclasses.dataclass(frozen=True, slots=True)
class _RawFrame:
  where: str
  dialogue_id: str
  turn: int
  service: str
  gold_history: bool
  predicted: PredictedFrame  # with the names of the file

  @property
  def slots(self) -> list[str]:
    """All slots named in the frame."""
    predicted = self.predicted
    tagged = [slot for slot, _ in predicted.spans or ()]
    return [*predicted.slot_values, *(predicted.requested_slots or ()), *tagged]


def dialogue_frames(
  files: Sequence[pathlib.Path], variant: str, selection: Selection
) -> Predictions:
  """Returns the frames of DSTC8 files in original names. Raises SgdxError for invalid ones."""
  extra: set[str] = set()
  raw = list(_raw_frames(files, selection, extra))
  names = _find_names(raw, variant, selection)
  gold_ids = {frame.frame_id for frame in selection.gold}
  frames: dict[str, PredictedFrame] = {}
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
      frames[key] = _rename(frame.predicted, to)
  _check_uniform(raw)
  return Predictions(frames, len(extra), any(frame.gold_history for frame in raw))


def _rename(frame: PredictedFrame, to: Renaming) -> PredictedFrame:
  requested, spans = frame.requested_slots, frame.spans
  return PredictedFrame(
    {to.slots[slot]: tuple(values) for slot, values in frame.slot_values.items()},
    to.intents.get(frame.active_intent, frame.active_intent),
    None if requested is None else tuple(to.slots[slot] for slot in requested),
    None if spans is None else tuple((to.slots[slot], text) for slot, text in spans),
  )


def _check_uniform(raw: Sequence[_RawFrame]) -> None:
  """Rejects a key that only some states have: its mean would look like one over all frames.

  Frames without "slots" are the exception: the official scorer leaves them out of slot tagging.
  """
  for key in ("active_intent", "requested_slots"):
    lacking = [frame for frame in raw if getattr(frame.predicted, key) is None]
    if lacking and len(lacking) < len(raw):
      raise SgdxError(
        f"{lacking[0].where}, service {lacking[0].service}: no {key} in the state",
        expected=f"{key} in the state of every user frame, or of none",
        available=f"{len(raw) - len(lacking):,} of {len(raw):,} frames have it",
        fix="write it in every state, or omit it in all, which makes its scores null",
      )


def _raw_frames(
  files: Sequence[pathlib.Path], selection: Selection, extra: set[str]
) -> Iterator[_RawFrame]:
  """Yields the predicted user frames, after checking dialogues and utterances against the gold.

  Ids of dialogues that are not in the corpus are added to `extra` if `allow_missing` is set.
  """
  turns = {(f.dialogue_id, f.turn): f.utterance_crc for f in selection.gold}
  dialogue_ids = dict.fromkeys(f.dialogue_id for f in selection.gold)
  seen: dict[str, str] = {}
  for file in files:
    selection.on_read(file.stat().st_size)
    for item in read_dialogue_items(file):
      where = f"{file}, dialogue {item.dialogue_id}"
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
      if item.dialogue_id in seen:
        raise SgdxError(
          f"{where}: the dialogue already occurs in {seen[item.dialogue_id]}",
          expected="unique dialogues",
          fix="remove one of the two",
        )
      seen[item.dialogue_id] = file.name
      for turn in item.turns:
        here = f"{where}, turn {turn.index}"
        crc = turns.get((item.dialogue_id, turn.index))
        if crc is None:  # no gold frames: the official scorer ignores predicted ones
          continue
        if turn.speaker != USER or crc != turn.utterance_crc:
          raise SgdxError(
            f"{here}: differs from the user turn in the corpus",
            expected=f"the speaker and utterance of that turn in {selection.split}",
            available=f"{turn.speaker}: {turn.utterance!r}",
            fix=f"{SAME_CORPUS}; different splits have the same dialogue ids",
          )
        for service, predicted in turn.frames:
          key = item.dialogue_id, turn.index, service
          yield _RawFrame(here, *key, item.gold_history, predicted)


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
  first, *others = readings.values()
  for frame in raw if others else ():
    if any(_renamed(frame, first) != _renamed(frame, other) for other in others):
      raise SgdxError(
        f"{frame.where}: the names of {frame.service} exist both in {variant} and in the original",
        expected="unambiguous names",
        available=", ".join(frame.slots),
        fix="give the services of variants distinct names, as in SGD-X (Banks_2, Banks_21)",
      )
  return first


def _fits(frame: _RawFrame, names: Mapping[str, Renaming]) -> bool:
  to = names.get(frame.service)
  return to is not None and to.slots.keys() >= set(frame.slots)


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
