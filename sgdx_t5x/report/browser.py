"""What the error browser shows: frames with errors, some embedded in the page, all in JSONL.

SGD-X paper (Lee et al. 2022), Table 4, for every frame: which slots fail with which variant.
"""

import dataclasses
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sgdx_t5x.data.corpus import Corpus
from sgdx_t5x.data.dialogue import Dialogue
from sgdx_t5x.metrics import JOINT_GOAL, KINDS
from sgdx_t5x.report.page import script_json
from sgdx_t5x.report.runs import Run
from sgdx_t5x.scoring.frame_table import FrameTable
from sgdx_t5x.scoring.score_files import failure_json

EXAMPLES = 5  # frames embedded of each run, service, slot, variant and kind
BUDGET = 10_000_000  # bytes of embedded frames and dialogues; plots and tables come on top


@dataclasses.dataclass(frozen=True)
class Texts:
  """What the corpus adds to errors; empty without a corpus.

  Attributes:
    services: original name -> variant -> name, and slot -> (name, description) there.
    dialogues: dialogue id -> dialogue.
  """

  services: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
  dialogues: Mapping[str, Dialogue] = dataclasses.field(default_factory=dict)


def read_texts(corpus: Corpus, split: str, runs: Sequence[Run]) -> Texts:
  """Reads the schemas of all variants scored, and the dialogues with errors."""
  tables = [run.table for run in runs if run.table and run.table.failures]
  with_errors = {
    dialogue
    for table in tables
    for key, dialogue in zip(
      table.frame_ids.tolist(), table.frames.dialogue_ids.tolist(), strict=True
    )
    if key in table.failures
  }
  variants = dict.fromkeys(variant for table in tables for variant in table.scores)
  schemas = {variant: corpus.schema(split, variant) for variant in variants}
  services: dict[str, dict[str, Any]] = {}
  for variant, schema in schemas.items():
    for original, other in zip(corpus.schema(split), schema, strict=True):
      services.setdefault(original.name, {})[variant] = _descriptions(original, other)
  dialogues = {d.dialogue_id: d for d in corpus.dialogues(split) if d.dialogue_id in with_errors}
  return Texts(services, dialogues)


def frame_rows(run: Run, first_run: Run | None = None) -> Iterator[dict[str, Any]]:
  """Yields a run's frames with errors, in the order of the corpus.

  Each is {"id", "dialogue", "turn", "service", "scores": variant -> joint goal accuracy,
  "changes": whether it is right (1) with some variants and wrong with others, "broken": variants
  with which `first_run` is right and this one wrong, "failures"}.
  """
  table = run.table
  if not table or not table.failures:
    return
  frames, jga = table.frames, _jga(table)
  columns = [frames.frame_ids, frames.dialogue_ids, frames.turns, frames.services]
  changes = jga.max(axis=1) >= 1  # there is an error, so some variant is wrong
  right = _right(first_run)
  for key, dialogue, turn, service, scores, changed in zip(
    *(column.tolist() for column in columns), jga.tolist(), changes.tolist(), strict=True
  ):
    if key in table.failures:
      yield {
        "id": key,
        "dialogue": dialogue,
        "turn": turn,
        "service": service,
        "scores": {
          variant: None if math.isnan(x) else x
          for variant, x in zip(table.scores, scores, strict=True)
        },
        "changes": changed,
        "broken": [
          variant
          for variant, x in zip(table.scores, scores, strict=True)
          if x < 1 and variant in right.get(key, ())
        ],
        "failures": [failure_json(failure) for failure in table.failures[key]],
      }


def embed(
  runs: Sequence[Run], texts: Texts, jsonl: Sequence[str], examples: int = EXAMPLES
) -> dict[str, Any]:
  """Returns the data of the page's error browser.

  Args:
    runs: those without errors per frame have no examples.
    texts: of the corpus.
    jsonl: where all examples are, relative to the page.
    examples: how many frames to embed of each run, service, slot, variant and kind.

  Returns:
    What page.js reads. Frames are chosen by a hash of their dialogue, those that change between
    variants first, until `BUDGET` is used up.
  """
  totals: dict[tuple[Any, ...], list[int]] = {}
  ranked: list[tuple[int, dict[str, Any]]] = []
  for number, run in enumerate(runs):
    rows = [{"run": number, **row} for row in frame_rows(run, runs[0] if number else None)]
    for row in rows:
      for cell in _cells(row):
        counts = totals.setdefault(cell, [0, 0, 0])
        for i, counted in enumerate((True, row["changes"], cell[3] in row["broken"])):
          counts[i] += counted
    ranked += _choose(rows, examples)
  frames, turns = _fit([row for _, row in sorted(ranked, key=lambda x: x[0])], texts)
  return {
    "runs": [run.name for run in runs],
    "unknown": [i for i, run in enumerate(runs) if not run.table or run.table.failures is None],
    "variants": list(dict.fromkeys(v for run in runs for v in run.variants)),
    "kinds": list(KINDS),
    "examples": examples,
    "megabytes": BUDGET // 1_000_000,
    "jsonl": list(jsonl),
    "services": {
      name: {"seen": seen, "variants": texts.services.get(name, {})}
      for name, seen in _seen(runs).items()
    },
    "dialogues": {name: _turns(texts.dialogues[name], last) for name, last in turns.items()},
    "frames": frames,
    "totals": [
      {
        **dict(zip(("run", "service", "slot", "variant", "kind"), cell, strict=True)),
        **dict(zip(("frames", "changes", "broken"), counts, strict=True)),
      }
      for cell, counts in totals.items()
    ],
  }


def kind_counts(run: Run) -> dict[str, dict[str, int]]:
  """Returns variant -> kind -> how many slots of frames fail so; {} if that is not known."""
  if not run.table or run.table.failures is None:
    return {}
  counts = {variant: dict.fromkeys(KINDS, 0) for variant in run.table.scores}
  for failures in run.table.failures.values():
    for failure in failures:
      for variant, kind in failure.kinds.items():
        counts[variant][kind] += 1
  return counts


def slot_counts(run: Run) -> dict[tuple[str, str], Counter[str]]:
  """Returns (service, slot) -> variant or kind -> how many frames fail so; slots that do."""
  counts: dict[tuple[str, str], Counter[str]] = {}
  table = run.table
  if table and table.failures:
    frames = table.frames
    for key, service in zip(frames.frame_ids.tolist(), frames.services.tolist(), strict=True):
      for failure in table.failures.get(key, ()):
        by_name = counts.setdefault((service, failure.slot), Counter())
        by_name.update((*failure.kinds.keys(), *failure.kinds.values()))
  return counts


def jsonl_lines(run: Run, texts: Texts, first_run: Run | None = None) -> Iterator[str]:
  """Yields the lines of errors/RUN.jsonl: `frame_rows`, with what the corpus says of each.

  Added are "said", the user's turn and the one before it, and per failure "wording": variant ->
  [name, description] of the slot.
  """
  for row in frame_rows(run, first_run):
    dialogue = texts.dialogues.get(row["dialogue"])
    if dialogue:
      row["said"] = _turns(dialogue, row["turn"])[-2:]
    variants = texts.services.get(row["service"], {}).items()
    for failure in row["failures"]:
      slot = failure["slot"]
      failure["wording"] = {variant: service["slots"].get(slot) for variant, service in variants}
    yield json.dumps(row, ensure_ascii=False)


# --- choosing ------------------------------------------------------------------------------


def _choose(rows: Sequence[dict[str, Any]], examples: int) -> list[tuple[int, dict[str, Any]]]:
  """Returns (rank, row): a row is taken as the rank-th of a cell that has not enough yet."""
  counts: Counter[tuple[Any, ...]] = Counter()
  chosen = []
  # A dialogue's frames come one after the other: its text is embedded once.
  for row in sorted(
    rows, key=lambda row: (not row["changes"], zlib.crc32(row["dialogue"].encode()))
  ):
    cells = list(_cells(row))
    rank = min(counts[cell] for cell in cells)
    if rank < examples:
      counts.update(cells)
      chosen.append((rank, row))
  return chosen


def _cells(row: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
  for failure in row["failures"]:
    for variant, kind in failure["kinds"].items():
      yield row["run"], row["service"], failure["slot"], variant, kind


def _fit(
  rows: Sequence[dict[str, Any]], texts: Texts
) -> tuple[list[dict[str, Any]], dict[str, int]]:
  """Returns the first rows that fit into the budget, and dialogue -> last turn to be shown."""
  kept: list[dict[str, Any]] = []
  turns: dict[str, int] = {}
  size = 0
  for row in rows:
    size += len(script_json(row))
    dialogue = texts.dialogues.get(row["dialogue"])
    if dialogue and turns.get(dialogue.dialogue_id, -1) < row["turn"]:
      start = turns.get(dialogue.dialogue_id, -1) + 1
      size += sum(len(script_json(turn)) for turn in _turns(dialogue, row["turn"])[start:])
    if size > BUDGET:
      break
    if dialogue:
      turns[dialogue.dialogue_id] = max(row["turn"], turns.get(dialogue.dialogue_id, -1))
    kept.append(row)
  return kept, turns


# --- texts ---------------------------------------------------------------------------------


def _descriptions(service: Any, other: Any) -> dict[str, Any]:
  """Name and slots of a service in a variant. Args: service is the original one."""
  pairs = zip(service.slots, other.slots, strict=True)
  return {
    "name": other.name,
    "slots": {slot.name: [named.name, named.description] for slot, named in pairs},
  }


def _turns(dialogue: Dialogue, last: int) -> list[list[str]]:
  return [[turn.speaker, turn.utterance] for turn in dialogue.turns[: last + 1]]


def _seen(runs: Sequence[Run]) -> dict[str, bool]:
  seen: dict[str, bool] = {}
  for run in runs:
    if run.table:
      frames = run.table.frames
      seen.update(zip(frames.services.tolist(), frames.seen.tolist(), strict=True))
  return dict(sorted(seen.items()))


def _right(run: Run | None) -> dict[str, tuple[str, ...]]:
  """Frame id -> variants with which a run is right; empty if that is not known."""
  if run is None or run.table is None:
    return {}
  variants = np.array(list(run.table.scores))
  pairs = zip(run.table.frame_ids.tolist(), _jga(run.table) >= 1, strict=True)
  return {key: tuple(variants[right].tolist()) for key, right in pairs}


def _jga(table: FrameTable) -> np.ndarray:
  """[F, K] float, of each frame and variant."""
  return np.stack([scores.metrics[JOINT_GOAL] for scores in table.scores.values()], axis=1)
