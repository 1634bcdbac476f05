"""Predictions on disk -> predicted frames, joined to gold frames and in original names.

Two formats are read. DSTC8 dialogues, as the official scorer reads them, with the names of
the variant or of the original; and JSONL, one row per (frame, slot).
Nothing is passed over in silence: what is missing, unknown or there twice is refused.
"""

import dataclasses
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.data.corpus import Corpus
from sgdx_t5x.data.dialogue import USER, frame_id
from sgdx_t5x.data.schema import Schema
from sgdx_t5x.data.variants import ORIGINAL, Renaming, renamings
from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.metrics.frames import GoldFrame, PredictedFrame
from sgdx_t5x.prompts.t5dst import PromptStyle, read_value, slot_indices
from sgdx_t5x.scoring.predictions.files import (
  Answer,
  Place,
  find_files,
  is_rows,
  read_dialogue_items,
  read_rows,
)

_FRAME_ID = re.compile(r"(.+)-\d{3,}-.+")  # dialogue, turn, service
_SAME_CORPUS = "score with the corpus, and the split, that was predicted"
_EXTRA = f"{_SAME_CORPUS}; --allow-missing leaves dialogues out that the corpus lacks (PARTIAL)"


@dataclasses.dataclass(frozen=True)
class Wanted:
  """What predictions are joined to.

  Attributes:
    corpus: for the schemas of variants.
    split: the split predicted.
    gold: its frames.
    style: how the prompts of JSONL predictions were made, to read the text back.
    allow_missing: leave missing frames out instead of refusing, and dialogues that the corpus
      does not have.
  """

  corpus: Corpus
  split: str
  gold: Sequence[GoldFrame]
  style: PromptStyle = dataclasses.field(default_factory=PromptStyle)
  allow_missing: bool = False

  @property
  def schema(self) -> Schema:
    """The original schema of the split."""
    return self.corpus.schema(self.split)


@dataclasses.dataclass(frozen=True)
class Predictions:
  """The predictions for one variant.

  Attributes:
    frames: frame id -> prediction, original names. With `allow_missing`, frames that lack a
      slot or more are left out.
    extra_dialogues: how many dialogues were left out because the corpus does not have them.
  """

  frames: dict[str, PredictedFrame]
  extra_dialogues: int = 0


def read_predictions(path: str | pathlib.Path, variant: str, wanted: Wanted) -> Predictions:
  """Reads the predictions for one variant.

  Args:
    path: a file, or a folder of `dialogues*.json` or `*.jsonl`. JSONL may hold other
      variants too, which are not looked at.
    variant: schema version that the tracker was given, "original" or "v1" to "v5".
    wanted: what to join them to.

  Raises:
    SgdxError: see the module; anything missing, unless allowed.
  """
  wanted.corpus.schema(wanted.split, variant)  # refuses an unknown variant
  files = find_files(path, wanted.split)
  if not is_rows(files[0]):
    return _check_missing(_dialogue_frames(files, variant, wanted), path, variant, wanted)
  answers, extra = _collect_rows(files, wanted, only=variant)
  return _row_frames(answers, extra, path, variant, wanted)


def read_all_variants(place: Place, wanted: Wanted) -> dict[str, Predictions]:
  """Reads JSONL predictions for every variant that their ids name.

  Args: see `read_predictions`; place may also be files that were found already. DSTC8 dialogues do
  not name a variant and are refused.
  """
  files = find_files(place, wanted.split)
  path = place if isinstance(place, str | pathlib.Path) else files[0].parent
  if not is_rows(files[0]):
    raise SgdxError(
      f"{path}: DSTC8 dialogues do not say which variant they were predicted for",
      expected="JSONL, whose ids name it",
      available=", ".join(f.name for f in files[:3]),
      fix="name the variant: --predictions v1=DIR v2=DIR ...",
    )
  answers, extra = _collect_rows(files, wanted)
  found = [v for v in wanted.corpus.variants if v in answers or v in extra]
  if not found:
    raise SgdxError(
      f"{path}: no rows",
      expected="a row per example of t5x.infer or t5x.eval",
      available=", ".join(f.name for f in files[:8]),
      fix="run inference again",
    )
  return {v: _row_frames(answers, extra, path, v, wanted) for v in found}


# --- JSONL: one row per (frame, slot) ------------------------------------------------------

# variant -> frame id -> slot -> value, or None where the slot was asked for and is inactive
_Answers = dict[str, dict[str, dict[str, str | None]]]


def _collect_rows(
  files: Sequence[pathlib.Path], wanted: Wanted, only: str | None = None
) -> tuple[_Answers, Mapping[str, set[str]]]:
  """Returns the answers, and per variant the dialogues that the corpus does not have."""
  frames = {frame.frame_id: wanted.schema[frame.service] for frame in wanted.gold}
  dialogue_ids = {frame.dialogue_id for frame in wanted.gold}
  known = set(wanted.corpus.variants)
  answers: _Answers = {}
  extra: dict[str, set[str]] = {}
  for file in files:
    for answer in read_rows(file):
      named = answer.frame_id not in frames and _FRAME_ID.fullmatch(answer.frame_id)
      is_extra = bool(named and wanted.allow_missing and named[1] not in dialogue_ids)
      _check_row(answer, wanted, frames, known, is_extra)
      if is_extra:
        extra.setdefault(answer.variant, set()).add(named[1])
        continue
      slots = answers.setdefault(answer.variant, {})
      if only not in (None, answer.variant):
        continue
      slots = slots.setdefault(answer.frame_id, {})
      if answer.slot in slots:
        raise SgdxError(
          f"{answer.where}: example {answer.example_id} occurs twice",
          expected="each example once",
          available="read: " + ", ".join(f.name for f in files),
          fix="give the file of one task and one step instead of the folder",
        )
      service = frames[answer.frame_id]
      slot = service.slots[service.slot_index[answer.slot]]
      text = answer.text
      slots[answer.slot] = None if text is None else read_value(text, slot, wanted.style)
  return answers, extra


def _check_row(
  answer: Answer, wanted: Wanted, frames: Mapping[str, Any], known: set[str], is_extra: bool
) -> None:
  found, where = "", answer.where
  if answer.variant not in known:
    found, expected = f"unknown variant {answer.variant!r}", f"a variant of {wanted.corpus.origin}"
    available, fix = nearest(answer.variant, known), "score with the corpus that was predicted"
  elif answer.split != wanted.split:
    found, expected = f"a prediction for split {answer.split!r}", f"split {wanted.split!r}"
    available, fix = "", f"score with --split {answer.split}, or give the files of {wanted.split}"
  elif is_extra:
    return
  elif answer.frame_id not in frames:
    found, expected = f"unknown frame {answer.frame_id!r}", f"a user frame of {wanted.split}"
    available, fix = nearest(answer.frame_id, _like(answer.frame_id, frames)), _EXTRA
  elif answer.slot not in frames[answer.frame_id].slot_index:
    found = f"unknown slot {answer.slot!r} in {answer.frame_id}"
    expected = "a slot of the service, by its original name"
    available = nearest(answer.slot, frames[answer.frame_id].slot_index)
    fix = "make examples with the tasks of sgdx_t5x.tasks"
  if found:
    raise SgdxError(
      f"{where}: {found} (id {answer.example_id!r})",
      expected=expected,
      available=available,
      fix=fix,
    )


def _like(name: str, names: Mapping[str, Any]) -> list[str]:
  """Names that begin alike: a search among tens of thousands would take minutes."""
  return [n for n in names if n[:6] == name[:6]] or list(names)[:3]


def _row_frames(
  answers: _Answers,
  extra: Mapping[str, set[str]],
  path: str | pathlib.Path,
  variant: str,
  wanted: Wanted,
) -> Predictions:
  if variant not in answers:
    raise SgdxError(
      f"{path}: no predictions for {variant}"
      + (f" but of {len(extra[variant])} dialogues unknown" if variant in extra else ""),
      expected=f"rows whose id begins with {variant}/{wanted.split}/",
      available=", ".join(answers) or "no rows at all",
      fix="give the file of that variant's task, or --predictions all=DIR for what is there",
    )
  asked: dict[str, list[str]] = {
    s.name: [s.slots[i].name for i in slot_indices(s, wanted.style)] for s in wanted.schema
  }
  frames: dict[str, PredictedFrame] = {}
  for frame in wanted.gold:
    # A service without slots to ask for has no examples; its state is always empty.
    slots = answers[variant].get(frame.frame_id, {})
    if all(name in slots for name in asked[frame.service]):
      state = {n: (value,) for n, value in slots.items() if value is not None}
      frames[frame.frame_id] = PredictedFrame(state)
  missing_slot = ""
  if len(frames) < len(wanted.gold):
    frame = next(f for f in wanted.gold if f.frame_id not in frames)
    slots = answers[variant].get(frame.frame_id, {})
    missing_slot = next(n for n in asked[frame.service] if n not in slots)
  predictions = Predictions(frames, len(extra.get(variant, ())))
  return _check_missing(predictions, path, variant, wanted, missing_slot)


# --- DSTC8 dialogues -----------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class _RawFrame:
  where: str
  dialogue_id: str
  turn: int
  service: str
  said: PredictedFrame  # with the names of the file

  @property
  def slots(self) -> Iterator[str]:
    """Every slot that it names."""
    yield from self.said.slot_values
    yield from self.said.requested_slots or ()
    yield from (slot for slot, _ in self.said.spans or ())


def _dialogue_frames(files: Sequence[pathlib.Path], variant: str, wanted: Wanted) -> Predictions:
  extra: set[str] = set()
  raw = list(_raw_frames(files, wanted, extra))
  names = _find_names(raw, variant, wanted)
  gold_ids = {frame.frame_id for frame in wanted.gold}
  frames: dict[str, PredictedFrame] = {}
  for frame in raw:
    to = names[frame.service]
    key = frame_id(frame.dialogue_id, frame.turn, to.service)
    if key in frames:
      raise SgdxError(
        f"{frame.where}: service {frame.service} occurs twice in the turn",
        expected="one frame per service",
        fix="merge the two frames",
      )
    if key in gold_ids:  # frames of further services are not scored, as officially
      frames[key] = _rename(frame.said, to)
  _check_uniform(raw)
  return Predictions(frames, len(extra))


def _rename(said: PredictedFrame, to: Renaming) -> PredictedFrame:
  requested, spans = said.requested_slots, said.spans
  return PredictedFrame(
    {to.slots[slot]: tuple(values) for slot, values in said.slot_values.items()},
    to.intents.get(said.active_intent, said.active_intent),
    None if requested is None else tuple(to.slots[slot] for slot in requested),
    None if spans is None else tuple((to.slots[slot], text) for slot, text in spans),
  )


def _check_uniform(raw: Sequence[_RawFrame]) -> None:
  """Refuses states of which some lack a key: a mean over the others would look like one over all.

  Frames without "slots" are the exception: the official scorer leaves them out of slot tagging.
  """
  for key in ("active_intent", "requested_slots"):
    lacking = [frame for frame in raw if getattr(frame.said, key) is None]
    if lacking and len(lacking) < len(raw):
      raise SgdxError(
        f"{lacking[0].where}, service {lacking[0].service}: no {key} in the state",
        expected=f"{key} in the state of every user frame, or of none",
        available=f"{len(raw) - len(lacking):,} of {len(raw):,} frames have it",
        fix="write it everywhere, or leave it out everywhere: its scores are then null",
      )


def _raw_frames(
  files: Sequence[pathlib.Path], wanted: Wanted, extra: set[str]
) -> Iterator[_RawFrame]:
  """Yields user frames as predicted, dialogues and utterances checked against the gold.

  Dialogues that the corpus does not have go to `extra`, where missing ones are allowed.
  """
  turns = {(f.dialogue_id, f.turn): f.utterance_crc for f in wanted.gold}
  dialogue_ids = dict.fromkeys(f.dialogue_id for f in wanted.gold)
  seen: dict[str, str] = {}
  for file in files:
    for item in read_dialogue_items(file):
      where = f"{file}, dialogue {item.dialogue_id}"
      if item.dialogue_id not in dialogue_ids and wanted.allow_missing:
        extra.add(item.dialogue_id)
        continue
      if item.dialogue_id not in dialogue_ids:
        raise SgdxError(
          f"{where}: no such dialogue",
          expected=f"a dialogue of {wanted.split}",
          available=nearest(item.dialogue_id, _like(item.dialogue_id, dialogue_ids)),
          fix=_EXTRA,
        )
      if item.dialogue_id in seen:
        raise SgdxError(
          f"{where}: this dialogue is in {seen[item.dialogue_id]} already",
          expected="each dialogue once",
          fix="remove one of the two",
        )
      seen[item.dialogue_id] = file.name
      for turn in item.turns:
        here = f"{where}, turn {turn.index}"
        crc = turns.get((item.dialogue_id, turn.index))
        if crc is None and (turn.speaker != USER or not turn.frames):
          continue
        if turn.speaker != USER or crc != turn.utterance_crc:
          raise SgdxError(
            f"{here}: not the corpus' user turn",
            expected=f"speaker and utterance of that turn in {wanted.split}",
            available=f"{turn.speaker}: {turn.utterance!r}",
            fix=f"{_SAME_CORPUS}; dialogue ids repeat between splits",
          )
        for service, said in turn.frames:
          yield _RawFrame(here, item.dialogue_id, turn.index, service, said)


def _find_names(raw: Sequence[_RawFrame], variant: str, wanted: Wanted) -> Mapping[str, Renaming]:
  """Returns predicted names -> original names, whichever of the two were used throughout.

  Raises:
    SgdxError: a name that neither the original nor the variant has, names of both mixed, or
      names that both have with different meanings.
  """
  schemas = {v: wanted.corpus.schema(wanted.split, v) for v in dict.fromkeys((variant, ORIGINAL))}
  readings = {v: renamings(schema, wanted.schema) for v, schema in schemas.items()}
  for frame in raw:
    fits = {v: r for v, r in readings.items() if _fits(frame, r)}
    if not fits:
      raise _unknown_name(frame, variant, readings, wanted)
    readings = fits
  first, *others = readings.values()
  for frame in raw if others else ():
    if any(_renamed(frame, first) != _renamed(frame, other) for other in others):
      raise SgdxError(
        f"{frame.where}: the names of {frame.service} are those of {variant} and of the original",
        expected="names of which only one reading makes sense",
        available=", ".join(frame.slots),
        fix="give services of variants names of their own, as SGD-X does (Banks_2, Banks_21)",
      )
  return first


def _fits(frame: _RawFrame, names: Mapping[str, Renaming]) -> bool:
  to = names.get(frame.service)
  return to is not None and all(slot in to.slots for slot in frame.slots)


def _renamed(frame: _RawFrame, names: Mapping[str, Renaming]) -> list[str]:
  to = names[frame.service]
  return [to.service, *(to.slots[slot] for slot in frame.slots)]


def _unknown_name(
  frame: _RawFrame, variant: str, readings: Mapping[str, Mapping[str, Renaming]], wanted: Wanted
) -> SgdxError:
  names = " or ".join(readings)
  holders = [r[frame.service] for r in readings.values() if frame.service in r]
  if holders:
    slots = [slot for to in holders for slot in to.slots]
    slot = next((s for s in frame.slots if s not in slots), next(frame.slots))
    return SgdxError(
      f"{frame.where}: unknown slot {slot!r} of service {frame.service!r}",
      expected=f"slot names of {names}, of one of them throughout",
      available=nearest(slot, slots),
      fix=f"check that these are predictions for {variant}; use one set of names throughout",
    )
  owners = [
    v for v in wanted.corpus.variants if frame.service in wanted.corpus.schema(wanted.split, v)
  ]
  services = [service for r in readings.values() for service in r]
  return SgdxError(
    f"{frame.where}: unknown service {frame.service!r}",
    expected=f"service names of {names}, of one of them throughout",
    available=f"{', '.join(owners)} has it" if owners else nearest(frame.service, services),
    fix=f"check that these are predictions for {variant}; use one set of names throughout",
  )


# --- both ----------------------------------------------------------------------------------


def _check_missing(
  found: Predictions, path: str | pathlib.Path, variant: str, wanted: Wanted, slot: str = ""
) -> Predictions:
  frames = found.frames
  missing = [frame.frame_id for frame in wanted.gold if frame.frame_id not in frames]
  if missing and (not wanted.allow_missing or not frames):
    raise SgdxError(
      f"{path}: {len(missing):,} of {len(wanted.gold):,} frames of {variant} are missing, "
      f"the first is {missing[0]}" + (f" (slot {slot})" if slot else ""),
      expected=f"a prediction for every user frame of {wanted.split}",
      available=f"{len(frames):,} frames",
      fix="complete the predictions; --allow-missing scores the rest and marks it PARTIAL",
    )
  return found
