"""JSONL predictions: one row per example of a prompt format.

The id of a row contains variant, split and frame, and the slot if the format asks for one slot at
a time, else "*" (`corpus.example_id`). Four kinds of rows are read: output of `t5x.infer`,
{"inputs": {...}, "prediction"}; output of SeqIO's JSONLogger after an evaluation, {"input":
{...}, "output", "prediction"}; any model's answers to `sgdx prompts`, {"id", "prediction"}; and
samples of lm-evaluation-harness, {"doc": {"id", ...}, "filtered_resps": [text]}.
"""

import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x import annexes
from sgdx_t5x.corpus.example_id import FORMS, FRAME, SLOT, ExampleId, Unit
from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.corpus.variants import ORIGINAL, tagged, untagged
from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files.reading import decode_json, opened
from sgdx_t5x.metrics.frames import PredictedFrame
from sgdx_t5x.prompts import formats_of
from sgdx_t5x.prompts.protocol import ServicePair
from sgdx_t5x.scoring.predictions.files import (
  FIX_FOR_EXTRA,
  SAME_CORPUS,
  InMemory,
  PredictionFile,
  Predictions,
  PredictionSource,
  Selection,
  check_missing,
  similar_names,
)

ID_KEY = "example_id_pretokenized"
_OWN_ROW = '{"id": "...", "prediction": "text"}'
_BYTES_BETWEEN_CALLS = 1_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class PredictionRow:
  """One row of JSONL.

  Attributes:
    location: file and line.
    example: the example that it answers.
    text: the answer; None if it was already parsed as "not in the state".
    read: returns the predicted frame, if `text` is not to be parsed by the prompt format.
  """

  location: str
  example: ExampleId
  text: str | None
  read: Callable[[ServicePair], PredictedFrame] | None = None


def read_rows(
  file: PredictionFile, unit: Unit, on_read: Callable[[int], None] = lambda size: None
) -> Iterator[PredictionRow]:
  """Yields the rows of a JSONL file. Raises SgdxError, with the line, if one is malformed.

  Args:
    file: the file.
    unit: what an example of the prompt format asks for.
    on_read: called from time to time with the number of further bytes read.
  """
  for location, line in numbered_lines(file, on_read):
    expected = "one JSON object per line"
    if line.startswith(b"["):
      raise SgdxError(
        f"{location}: a JSON list",
        expected=expected,
        fix="rename the file to *.json if it holds DSTC8 dialogues",
      )
    row = decode_json(line, location, expected, "write one row per line")
    if isinstance(row, dict) and "prediction" not in row:
      _check_kind(row, location)
    example = ExampleId.parse(row_id(row, location), location)
    if example.unit != unit:
      raise _other_format(example, unit, location)
    yield PredictionRow(location, example, row_text(row, location, unit))


def numbered_lines(
  file: PredictionFile, on_read: Callable[[int], None] = lambda size: None
) -> Iterator[tuple[str, bytes]]:
  """Yields (file and line number, bytes) of each non-empty line. Args: see `read_rows`."""
  if isinstance(file, InMemory):
    yield from _lines_of(file)
    return
  size = 0
  with opened(file, "predictions as JSON Lines") as lines:
    for number, line in enumerate(lines, start=1):
      size += len(line)
      if size >= _BYTES_BETWEEN_CALLS:
        on_read(size)
        size = 0
      if line.strip():
        yield f"{file}, line {number}", line
  on_read(size)


def _lines_of(predictions: InMemory) -> Iterator[tuple[str, bytes]]:
  """Yields rows in memory as lines of JSON, so that they are read and checked like a file's."""
  for number, row in enumerate(predictions.items, start=1):
    location = f"{predictions}, row {number}"
    try:
      line = json.dumps(dict(row)).encode()
    except (TypeError, ValueError, RecursionError) as e:
      raise SgdxError(
        f"{location}: {e}", expected="a row of strings, as JSON has them", fix=f"write {_OWN_ROW}"
      ) from None
    yield location, line


def _check_kind(row: Mapping[str, Any], location: str) -> None:
  """Refuses dialogues and rows of annexes: mistakes which "no example id" would not explain."""
  if "turns" in row:
    raise SgdxError(
      f"{location}: a DSTC8 dialogue",
      expected=f"rows {_OWN_ROW}; dialogues in a JSON list",
      available=", ".join(row)[:80],
      fix="write all dialogues as one list [...] into dialogues_001.json",
    )
  for key, (what, fix) in annexes.table("OTHER_ROWS").items():
    if key in row:
      raise SgdxError(
        f"{location}: {what}",
        expected=f"rows {_OWN_ROW}, or rows written by t5x.infer or SeqIO",
        available=", ".join(row)[:80],
        fix=fix,
      )


def _other_format(example: ExampleId, unit: Unit, location: str) -> SgdxError:
  """Returns the error for an answer to a prompt of another format."""
  names = [f"format={name}" for name in formats_of(example.unit)]
  return SgdxError(
    f"{location}: an answer for a {example.unit} (id {str(example)!r})",
    expected=f"one answer per {unit}, according to the given prompt style: {FORMS[unit]}",
    available=", ".join(names),
    fix=f"specify the prompt format and its fields: --prompt-style {' or '.join(names)}",
  )


def row_id(row: Any, location: str) -> str:
  """Returns the example id of a row. Raises SgdxError if it has none."""
  keys = row if isinstance(row, dict) else {}
  # t5x.infer writes "inputs", SeqIO's logger "input", lm-evaluation-harness "doc".
  inputs, doc = keys.get("inputs", keys.get("input")), keys.get("doc")
  if isinstance(inputs, dict):
    example_id, keys = inputs.get(ID_KEY), inputs or keys
  else:
    example_id = (doc if isinstance(doc, dict) else keys).get("id")
  if not isinstance(example_id, str):
    raise SgdxError(
      f"{location}: no example id",
      expected=f'{ID_KEY} in the inputs of a row of t5x.infer or SeqIO, or {{"id", "prediction"}}',
      available=", ".join(keys)[:80] or type(row).__name__,
      fix="run inference with a task of sgdx_t5x.tasks, or answer the prompts of `sgdx prompts`",
    )
  return example_id


def row_text(row: Mapping[str, Any], location: str, unit: Unit) -> str | None:
  """Returns the answer of a row; None for "not in the state". Raises SgdxError if it has none."""
  # SeqIO's "prediction" has been through the postprocessor: a value, or null for "not in the
  # state". Its "output" is the generated text, which can tell the value "None" from "none".
  is_of_seqio = isinstance(row.get("input"), dict)  # others' "input" may be the prompt's text
  if is_of_seqio and isinstance(row.get("output"), str):
    return row["output"]
  if "prediction" in row:
    text = row["prediction"]
    if isinstance(text, str) or (text is None and is_of_seqio and unit == SLOT):
      return text
  sampled = row.get("filtered_resps") if "doc" in row else None
  if isinstance(sampled, list) and len(sampled) == 1 and isinstance(sampled[0], str):
    return sampled[0].strip()  # a continuation begins with a space
  problem = repr(row["prediction"]) if "prediction" in row else "is absent"
  fix = "run t5x.infer with mode=predict and a single decode, which writes one string per prompt"
  if "inputs" not in row and not is_of_seqio:
    fix = f"write rows {_OWN_ROW} with the ids of `sgdx prompts`; write numbers as strings, too"
  raise SgdxError(
    f"{location}: prediction {problem}"[:200],
    expected="one string per example",
    available=", ".join(row),
    fix=fix,
  )


# variant -> frame id -> slot -> value, or None if the slot was asked for and is inactive. For
# examples that ask for the whole frame, the slot is None and the value is a PredictedFrame.
Readings = dict[str, dict[str, dict[str | None, str | PredictedFrame | None]]]


def collect_rows(
  files: Sequence[PredictionFile], selection: Selection, only: str | None = None
) -> tuple[Readings, Mapping[str, set[str]]]:
  """Returns the answers, and variant -> dialogues that are not in the corpus.

  Args:
    files: files of answers.
    selection: what to join them to.
    only: the variant to keep; None for all.
  """
  frames = {frame.frame_id: selection.schema[frame.service] for frame in selection.gold}
  dialogue_ids = {frame.dialogue_id for frame in selection.gold}
  prompt_format, unit = selection.prompt_format, selection.prompt_format.unit
  read_own_rows = getattr(prompt_format, "read_rows", None)  # of an annex's format
  answers: Readings = {}
  extra: dict[str, set[str]] = {}
  row_of_other_set: PredictionRow | None = None
  for file in files:
    rows = read_rows(file, unit, selection.on_read)
    for row in read_own_rows(file, selection=selection) if read_own_rows else rows:
      kinds, variant = untagged(row.example.variant)
      if kinds != selection.corpus.perturbed(selection.split):
        # Files may mix several sets; each is scored with its own corpus.
        row_of_other_set = row_of_other_set or row
        continue
      if kinds:  # "ned+v3": from here on, v3
        row = dataclasses.replace(row, example=dataclasses.replace(row.example, variant=variant))
      example = row.example
      is_unknown = example.frame_id not in frames
      is_extra = is_unknown and selection.allow_missing and example.dialogue_id not in dialogue_ids
      _check_row(row, selection, frames, is_extra)
      if is_extra:
        extra.setdefault(example.variant, set()).add(example.dialogue_id)
        continue
      # Other variants stay, empty: an error about a missing one can then say which there are.
      of_variant = answers.setdefault(example.variant, {})
      if only not in (None, example.variant):
        continue
      of_frame = of_variant.setdefault(example.frame_id, {})
      if example.slot in of_frame:
        raise _repeated(row, files)
      if row.text is None:
        of_frame[example.slot] = None
      else:
        pair = selection.services(example.variant)[frames[example.frame_id].name]
        of_frame[example.slot] = (
          row.read(pair) if row.read else prompt_format.read(row.text, example, pair)
        )
  if row_of_other_set is not None and not answers:
    raise _other_set(row_of_other_set, selection)
  return answers, extra


def _repeated(row: PredictionRow, files: Sequence[PredictionFile]) -> SgdxError:
  """Returns the error for a second row with the same id."""
  return SgdxError(
    f"{row.location}: example {row.example} occurs twice",
    expected="unique examples",
    available="files read: " + ", ".join(file.name for file in files),
    fix="pass the file of a single task and step instead of the folder"
    if files[1:]
    else "keep one row per id in the file",
  )


def _other_set(row: PredictionRow, selection: Selection) -> SgdxError:
  """Returns the error for predictions of another perturbation, or of an unperturbed corpus."""
  corpus, (kinds, _) = selection.corpus, untagged(row.example.variant)
  label = tagged(corpus.perturbed(selection.split), ORIGINAL)
  return SgdxError(
    f"{row.location}: a prediction for {' and '.join(kinds) or 'an unperturbed corpus'} "
    f"(id {str(row.example)!r})",
    expected=f"ids from {corpus.origin}, starting with {label}/{selection.split}/",
    available=f"{corpus.origin} is {label if label != ORIGINAL else 'not perturbed'}",
    fix="pass the corpus that was predicted as --corpus, or pass predictions for this corpus",
  )


def _check_row(
  row: PredictionRow, selection: Selection, frames: Mapping[str, Service], is_extra: bool
) -> None:
  """Raises SgdxError if a row is of another corpus or split, or of an unknown frame or slot.

  Args: is_extra, whether its dialogue is not in the corpus and is skipped (`--allow-missing`).
  """
  example, available = row.example, ""
  if not selection.schemas.has(selection.split, example.variant):
    problem = f"unknown variant {example.variant!r}"
    expected = f"a variant of {selection.corpus.origin}"
    available = nearest(example.variant, selection.schemas.names(selection.split))
    fix = "score against the corpus that was predicted"
  elif example.split != selection.split:
    problem = f"a prediction for split {example.split!r}"
    expected = f"split {selection.split!r}"
    fix = f"score with --split {example.split}, or pass the files for {selection.split}"
  elif is_extra:
    return
  elif example.frame_id not in frames:
    problem, expected = f"unknown frame {example.frame_id!r}", f"a user frame of {selection.split}"
    available = nearest(example.frame_id, similar_names(example.frame_id, frames))
    fix = FIX_FOR_EXTRA
  elif example.slot is not None and example.slot not in frames[example.frame_id].slot_index:
    problem = f"unknown slot {example.slot!r} in {example.frame_id}"
    expected = "a slot of the service, under its original name"
    available = nearest(example.slot, frames[example.frame_id].slot_index)
    fix = "use the ids of `sgdx prompts` or of the tasks in sgdx_t5x.tasks unchanged"
  else:
    return
  raise SgdxError(
    f"{row.location}: {problem} (id {str(example)!r})",
    expected=expected,
    available=available,
    fix=fix,
  )


def row_frames(
  answers: Readings,
  extra: Mapping[str, set[str]],
  path: PredictionSource,
  variant: str,
  selection: Selection,
) -> Predictions:
  """Returns a variant's frames, joining their examples. Raises SgdxError if any are missing."""
  if variant not in answers:
    kinds = selection.corpus.perturbed(selection.split)
    raise SgdxError(
      f"{path}: no predictions for {variant}"
      + (f" except for {len(extra[variant])} unknown dialogues" if variant in extra else ""),
      expected=f"rows whose id starts with {tagged(kinds, variant)}/{selection.split}/",
      available=", ".join(answers) or "no rows for dialogues of the corpus",
      fix=SAME_CORPUS
      if variant in extra
      else "pass the file of that variant's task, or --predictions all=DIR to score what exists",
    )
  slots_asked = {x.name: selection.prompt_format.asked(x) for x in selection.schema}
  frames: dict[str, PredictedFrame] = {}
  missing: list[str | None] = []  # slots missing in the first incomplete frame
  for frame in selection.gold:
    # A service without slots to ask for has no examples; its state is always empty.
    by_slot = answers[variant].get(frame.frame_id, {})
    missing_slots = [slot for slot in slots_asked[frame.service] if slot not in by_slot]
    missing = missing or missing_slots
    if not missing_slots:
      frames[frame.frame_id] = _joined(by_slot, selection.prompt_format.unit)
  # The slot is None if a prompt asks for the whole frame.
  predictions = Predictions(frames, len(extra.get(variant, ())))
  return check_missing(predictions, path, variant, selection, missing[0] or "" if missing else "")


def _joined(by_slot: Mapping[str | None, Any], unit: Unit) -> PredictedFrame:
  """Returns the frame that its examples predict together."""
  if unit == FRAME:
    return by_slot[None]
  state: dict[str, tuple[str]] = {}
  for slot, value in by_slot.items():
    if slot is not None and value is not None:
      state[slot] = (value,)
  return PredictedFrame(state)
