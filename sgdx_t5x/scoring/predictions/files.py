"""The files predictions come in, decoded and checked for form; `predictions` joins them.

DSTC8: the format of SGD (its README), of which speaker, utterance, frames, service, state and the
spans in slots are read. JSONL: what `t5x.infer` writes, {"inputs": {...}, "prediction"}; what
SeqIO's JSONLogger writes after an evaluation, {"input": {...}, "output", "prediction"}; and
answers to `sgdx prompts` by any model, {"id", "prediction"}.
"""

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.data.dialogue import USER
from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files import decode_json
from sgdx_t5x.metrics.frames import PredictedFrame, utterance_crc

# Where predictions are: a file, a folder to look through, or files that were found already.
Place = str | pathlib.Path | Sequence[pathlib.Path]
ID_KEY = "example_id_pretokenized"


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
  """One row of JSONL. `text` is None where the reader already found "not in the state"."""

  where: str
  example_id: str
  variant: str
  split: str
  frame_id: str
  slot: str
  text: str | None


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
  """One dialogue of a DSTC8 file."""

  dialogue_id: str
  turns: tuple[PredictedTurn, ...]


def find_files(path: Place, split: str) -> list[pathlib.Path]:
  """Returns the prediction files at a path, all of one format, sorted.

  A folder is looked through for `dialogues*.json` and `*.jsonl`, itself, then the
  `inference_eval/` that T5X makes in it, then its folder of the split.

  Raises:
    SgdxError: nothing there, or both formats.
  """
  if not isinstance(path, str | pathlib.Path):
    return list(path)
  path = pathlib.Path(path)
  if path.is_file():
    return [path]
  if not path.is_dir():
    beside = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
    raise SgdxError(
      f"no file or folder at {path}",
      expected="predictions",
      available=nearest(path.name, beside),
      fix="check the path",
    )
  for folder in (path, path / "inference_eval", path / split):
    files = sorted(p for p in folder.glob("*") if p.is_file() and _holds_predictions(p.name))
    formats = {is_rows(p) for p in files}
    if len(formats) > 1:
      raise SgdxError(
        f"{folder}: DSTC8 dialogues and JSONL side by side",
        expected="predictions of one format",
        available=", ".join(p.name for p in files[:8]),
        fix="give the file, or move one of the two away",
      )
    if files:
      return files
  raise SgdxError(
    f"{path}: no predictions in this folder",
    expected="dialogues*.json (DSTC8 format) or *.jsonl (T5X, SeqIO)",
    available=nearest("dialogues_001.json", sorted(p.name for p in path.iterdir())),
    fix="give the folder that holds them: OUT of t5x.infer, inference_eval of t5x.eval",
  )


def is_rows(file: pathlib.Path) -> bool:
  """Whether a file is JSONL; T5X names shards `x.jsonl-00000-of-00001`."""
  return ".jsonl" in file.name


def read_rows(file: pathlib.Path) -> Iterator[Answer]:
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


def read_dialogue_items(file: pathlib.Path) -> Iterator[PredictedDialogue]:
  """Yields the dialogues of a DSTC8 file. Raises SgdxError if it is cut or malformed."""
  fix = "correct it there; rows of JSON lines belong into a file called *.jsonl"
  items = decode_json(file.read_bytes(), str(file), "a complete file of dialogues", fix)
  if not isinstance(items, list):
    raise SgdxError(
      f"{file}: a JSON {type(items).__name__} at the top",
      expected="a list of dialogues, as in SGD's dialogues_001.json",
      fix="give DSTC8 dialogues, or JSONL in a file called *.jsonl",
    )
  for item in items:
    try:
      name = _text(item["dialogue_id"], "dialogue_id")
      turns = tuple(_parse_turn(i, turn) for i, turn in enumerate(item["turns"]))
      dialogue = PredictedDialogue(name, turns)
    except (KeyError, TypeError, AttributeError) as e:
      name = item.get("dialogue_id", "?") if isinstance(item, dict) else "?"
      raise SgdxError(
        f"{file}, dialogue {name}, {_said(e)}",
        expected="turns with speaker, utterance, frames; in user frames service and "
        "state.slot_values, slot -> list of one or more texts; requested_slots a list",
        fix="write every slot of the state with its value in a list, and no other slot",
      ) from None
    yield dialogue


def _holds_predictions(name: str) -> bool:
  if ".jsonl" in name:
    # T5X marks what it finished and what it is still writing; SeqIO logs metrics beside.
    return not name.endswith(("-metrics.jsonl", ".COMPLETED", ".tmp"))
  # The official scorer leaves its scores beside the predictions.
  official = name == "dialogues_and_metrics.json"
  return name.startswith("dialogues") and name.endswith(".json") and not official


def _parse_row(row: Any, where: str) -> Answer:
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
  return Answer(where, example_id, variant, split, frame, slot, _row_text(row, where))


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


def _parse_turn(index: int, turn: Mapping[str, Any]) -> PredictedTurn:
  where = f"turn {index}"
  try:
    said, frames = _text(turn["utterance"], "utterance"), []
    for frame in turn["frames"] if turn["speaker"] == USER else ():
      where = f"turn {index}, service {frame.get('service')}"
      frames.append((_text(frame["service"], "service"), _parse_frame(frame, said)))
  except (KeyError, TypeError, AttributeError) as e:
    raise TypeError(f"{where}: {_said(e)}") from None
  return PredictedTurn(index, turn["speaker"], said, tuple(frames))


def _parse_frame(frame: Mapping[str, Any], said: str) -> PredictedFrame:
  state = frame["state"]
  for slot, values in state["slot_values"].items():
    if not (isinstance(values, list) and values and all(isinstance(v, str) for v in values)):
      raise TypeError(f"slot {slot!r}: {values!r} is not a list of one or more texts")
  intent, requested, spans = (
    state.get("active_intent"),
    state.get("requested_slots"),
    frame.get("slots"),
  )
  if requested is not None:
    if not (isinstance(requested, list) and all(isinstance(name, str) for name in requested)):
      raise TypeError(f"requested_slots: {requested!r} is not a list of names")
    requested = tuple(requested)
  if spans is not None:
    if not isinstance(spans, list):
      raise TypeError(f"slots: {spans!r} is not a list of spans")
    spans = tuple((_text(s["slot"], "slot"), said[s["start"] : s["exclusive_end"]]) for s in spans)
  intent = intent if intent is None else _text(intent, "active_intent")
  return PredictedFrame(state["slot_values"], intent, requested, spans)


def _text(value: Any, what: str) -> str:
  if not isinstance(value, str):
    raise TypeError(f"{what}: {value!r} is not a text")
  return value


def _said(error: Exception) -> str:
  return f"no {error}" if isinstance(error, KeyError) else str(error)
