"""JSONL predictions: one row per example, its id naming variant, split, frame and slot.

What `t5x.infer` writes, {"inputs": {...}, "prediction"}; what SeqIO's JSONLogger writes after an
evaluation, {"input": {...}, "output", "prediction"}; and answers to `sgdx prompts` by any model,
{"id", "prediction"}.
"""

import dataclasses
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files import decode_json
from sgdx_t5x.metrics.frames import PredictedFrame
from sgdx_t5x.prompts.t5dst import read_value, slot_indices
from sgdx_t5x.scoring.predictions.files import (
  EXTRA,
  Predictions,
  Selection,
  check_missing,
  similar_names,
)

ID_KEY = "example_id_pretokenized"


@dataclasses.dataclass(frozen=True, slots=True)
class PredictionRow:
  """One row of JSONL. `text` is None where the reader already found "not in the state"."""

  where: str
  example_id: str
  variant: str
  split: str
  frame_id: str
  slot: str
  text: str | None


def read_rows(file: pathlib.Path) -> Iterator[PredictionRow]:
  """Yields the rows of a JSONL file. Raises SgdxError, with the line, if one is broken."""
  with file.open("rb") as lines:
    for number, line in enumerate(lines, start=1):
      where = f"{file}, line {number}"
      if not line.strip():
        continue
      expected = "one JSON object per line"
      if line.startswith(b"["):
        raise SgdxError(
          f"{where}: a list",
          expected=expected,
          fix="DSTC8 dialogues belong into a file called *.json",
        )
      yield _parse_row(decode_json(line, where, expected, "write one row per line"), where)


def _parse_row(row: Any, where: str) -> PredictionRow:
  inputs = row.get("inputs", row.get("input")) if isinstance(row, dict) else None
  example_id = None
  if isinstance(inputs, dict):
    example_id = inputs.get(ID_KEY)
  elif isinstance(row, dict):
    example_id = row.get("id")
  if not isinstance(example_id, str):
    raise SgdxError(
      f"{where}: no id of an example",
      expected=f'{ID_KEY} in the inputs of a row of t5x.infer or SeqIO, or {{"id", "prediction"}}',
      available=", ".join(inputs or row)[:80] if isinstance(row, dict) else type(row).__name__,
      fix="run inference with a task of sgdx_t5x.tasks, or answer the prompts of sgdx prompts",
    )
  variant, _, rest = example_id.partition("/")
  split, _, rest = rest.partition("/")
  frame, _, slot = rest.rpartition("/")
  if not (variant and split and frame and slot):
    raise SgdxError(
      f"{where}: example id {example_id!r}",
      expected="variant/split/frame/slot, as in v3/dev/1_00000-002-Banks_2/account_type",
      fix="run inference with a task of sgdx_t5x.tasks",
    )
  return PredictionRow(where, example_id, variant, split, frame, slot, _row_text(row, where))


def _row_text(row: Mapping[str, Any], where: str) -> str | None:
  # SeqIO's "prediction" has been through the postprocessor: a value, or null for "not in the
  # state". Its "output" is the generated text, which can tell the value "None" from "none".
  if "input" in row and isinstance(row.get("output"), str):
    return row["output"]
  if "prediction" in row:
    text = row["prediction"]
    if isinstance(text, str) or (text is None and "input" in row):
      return text
  raise SgdxError(
    f"{where}: prediction {row.get('prediction', 'is absent')!r}"[:200],
    expected="a text, one per example",
    available=", ".join(row),
    fix="one text per prompt; t5x.infer writes it with mode=predict and one decode",
  )


_FRAME_ID = re.compile(r"(.+)-\d{3,}-.+")  # dialogue, turn, service


# variant -> frame id -> slot -> value, or None where the slot was asked for and is inactive
RowValues = dict[str, dict[str, dict[str, str | None]]]


def collect_rows(
  files: Sequence[pathlib.Path], selection: Selection, only: str | None = None
) -> tuple[RowValues, Mapping[str, set[str]]]:
  """Returns the answers, and per variant the dialogues that the corpus does not have."""
  frames = {frame.frame_id: selection.schema[frame.service] for frame in selection.gold}
  dialogue_ids = {frame.dialogue_id for frame in selection.gold}
  known = set(selection.corpus.variants)
  answers: RowValues = {}
  extra: dict[str, set[str]] = {}
  for file in files:
    for answer in read_rows(file):
      named = answer.frame_id not in frames and _FRAME_ID.fullmatch(answer.frame_id)
      is_extra = bool(named and selection.allow_missing and named[1] not in dialogue_ids)
      _check_row(answer, selection, frames, known, is_extra)
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
      slots[answer.slot] = None if text is None else read_value(text, slot, selection.style)
  return answers, extra


def _check_row(
  answer: PredictionRow,
  selection: Selection,
  frames: Mapping[str, Any],
  known: set[str],
  is_extra: bool,
) -> None:
  found, where = "", answer.where
  if answer.variant not in known:
    found, expected = (
      f"unknown variant {answer.variant!r}",
      f"a variant of {selection.corpus.origin}",
    )
    available, fix = nearest(answer.variant, known), "score with the corpus that was predicted"
  elif answer.split != selection.split:
    found, expected = f"a prediction for split {answer.split!r}", f"split {selection.split!r}"
    available, fix = (
      "",
      f"score with --split {answer.split}, or give the files of {selection.split}",
    )
  elif is_extra:
    return
  elif answer.frame_id not in frames:
    found, expected = f"unknown frame {answer.frame_id!r}", f"a user frame of {selection.split}"
    available, fix = nearest(answer.frame_id, similar_names(answer.frame_id, frames)), EXTRA
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


def row_frames(
  answers: RowValues,
  extra: Mapping[str, set[str]],
  path: str | pathlib.Path,
  variant: str,
  selection: Selection,
) -> Predictions:
  """Returns the frames of a variant, each with all of its slots. Raises SgdxError."""
  if variant not in answers:
    raise SgdxError(
      f"{path}: no predictions for {variant}"
      + (f" but of {len(extra[variant])} dialogues unknown" if variant in extra else ""),
      expected=f"rows whose id begins with {variant}/{selection.split}/",
      available=", ".join(answers) or "no rows at all",
      fix="give the file of that variant's task, or --predictions all=DIR for what is there",
    )
  asked: dict[str, list[str]] = {
    s.name: [s.slots[i].name for i in slot_indices(s, selection.style)] for s in selection.schema
  }
  frames: dict[str, PredictedFrame] = {}
  for frame in selection.gold:
    # A service without slots to ask for has no examples; its state is always empty.
    slots = answers[variant].get(frame.frame_id, {})
    if all(name in slots for name in asked[frame.service]):
      state = {n: (value,) for n, value in slots.items() if value is not None}
      frames[frame.frame_id] = PredictedFrame(state)
  missing_slot = ""
  if len(frames) < len(selection.gold):
    frame = next(f for f in selection.gold if f.frame_id not in frames)
    slots = answers[variant].get(frame.frame_id, {})
    missing_slot = next(n for n in asked[frame.service] if n not in slots)
  predictions = Predictions(frames, len(extra.get(variant, ())))
  return check_missing(predictions, path, variant, selection, missing_slot)
