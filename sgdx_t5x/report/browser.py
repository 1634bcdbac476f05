"""What the error browser shows: frames with failures, some embedded in the page, all in JSONL.

SGD-X paper (Lee et al. 2022), Table 4, for every frame: which slots fail with which wording.
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
from sgdx_t5x.metrics.failures import Failure
from sgdx_t5x.report.page import script_json
from sgdx_t5x.report.runs import Run
from sgdx_t5x.scoring.score_files import FrameTable, failure_json

EXAMPLES = 5  # frames embedded of each run, service, slot, version and kind
BUDGET = 10_000_000  # bytes of embedded frames and dialogues; plots and tables come on top


@dataclasses.dataclass(frozen=True)
class Texts:
  """What the corpus adds to failures; empty without a corpus.

  Attributes:
    services: original name -> version -> name, and slot -> (name, description) there.
    dialogues: dialogue id -> dialogue.
  """

  services: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
  dialogues: Mapping[str, Dialogue] = dataclasses.field(default_factory=dict)


def read_texts(corpus: Corpus, split: str, runs: Sequence[Run]) -> Texts:
  """Reads the wordings of all versions scored, and the dialogues with failures."""
  tables = [run.table for run in runs if run.table and run.table.failures]
  wanted = {
    dialogue
    for table in tables
    for key, dialogue in zip(
      table.frame_ids.tolist(), table.frames.dialogue_ids.tolist(), strict=True
    )
    if key in table.failures
  }
  versions = dict.fromkeys(version for table in tables for version in table.scores)
  schemas = {version: corpus.schema(split, version) for version in versions}
  services: dict[str, dict[str, Any]] = {}
  for version, schema in schemas.items():
    for original, other in zip(corpus.schema(split), schema, strict=True):
      services.setdefault(original.name, {})[version] = _wording(original, other)
  dialogues = {d.dialogue_id: d for d in corpus.dialogues(split) if d.dialogue_id in wanted}
  return Texts(services, dialogues)


def frame_rows(run: Run, first_run: Run | None = None) -> Iterator[dict[str, Any]]:
  """Yields a run's frames with failures, in the order of the corpus.

  Each is {"id", "dialogue", "turn", "service", "scores": version -> joint goal accuracy,
  "changes": whether it is right (1) with some versions and wrong with others, "broken": versions
  with which `first_run` is right and this one wrong, "failures"}.
  """
  table = run.table
  if not table or not table.failures:
    return
  frames, jga = table.frames, _jga(table)
  columns = [frames.frame_ids, frames.dialogue_ids, frames.turns, frames.services]
  changes = jga.max(axis=1) >= 1  # there is a failure, so some version is wrong
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
          version: None if math.isnan(x) else x
          for version, x in zip(table.scores, scores, strict=True)
        },
        "changes": changed,
        "broken": [
          version
          for version, x in zip(table.scores, scores, strict=True)
          if x < 1 and version in right.get(key, ())
        ],
        "failures": [failure_json(failure) for failure in table.failures[key]],
      }


def embed(
  runs: Sequence[Run], texts: Texts, jsonl: Sequence[str], examples: int = EXAMPLES
) -> dict[str, Any]:
  """Returns the data of the page's error browser.

  Args:
    runs: those without failures per frame have no examples.
    texts: of the corpus.
    jsonl: where all examples are, relative to the page.
    examples: how many frames to embed of each run, service, slot, version and kind.

  Returns:
    See docs/report.md. Frames are chosen by a hash of their dialogue, those that change between
    versions first, until `BUDGET` is used up.
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
    "versions": list(dict.fromkeys(v for run in runs for v in run.versions)),
    "kinds": list(KINDS),
    "examples": examples,
    "megabytes": BUDGET // 1_000_000,
    "jsonl": list(jsonl),
    "services": {
      name: {"seen": seen, "versions": texts.services.get(name, {})}
      for name, seen in _seen(runs).items()
    },
    "dialogues": {name: _said(texts.dialogues[name], last) for name, last in turns.items()},
    "frames": frames,
    "totals": [
      {
        **dict(zip(("run", "service", "slot", "version", "kind"), cell, strict=True)),
        **dict(zip(("frames", "changes", "broken"), counts, strict=True)),
      }
      for cell, counts in totals.items()
    ],
  }


def kind_counts(run: Run) -> dict[str, dict[str, int]]:
  """Returns version -> kind -> how many slots of frames fail so; {} if that is not known."""
  if not run.table or run.table.failures is None:
    return {}
  counts = {version: dict.fromkeys(KINDS, 0) for version in run.table.scores}
  for failures in run.table.failures.values():
    for failure in failures:
      for version, kind in failure.kinds.items():
        counts[version][kind] += 1
  return counts


def slot_counts(run: Run) -> dict[tuple[str, str], Counter[str]]:
  """Returns (service, slot) -> version or kind -> how many frames fail so; slots that do."""
  counts: dict[tuple[str, str], Counter[str]] = {}
  for service, failures in service_failures(run.table):
    for failure in failures:
      found = counts.setdefault((service, failure.slot), Counter())
      found.update(failure.kinds.keys())
      found.update(failure.kinds.values())
  return counts


def service_failures(table: FrameTable | None) -> Iterator[tuple[str, tuple[Failure, ...]]]:
  """Yields (service, failures) of the frames that have any."""
  if table and table.failures:
    frames = table.frames
    for key, service in zip(frames.frame_ids.tolist(), frames.services.tolist(), strict=True):
      if key in table.failures:
        yield service, table.failures[key]


def jsonl_lines(run: Run, texts: Texts, first_run: Run | None = None) -> Iterator[str]:
  """Yields the lines of errors/RUN.jsonl: `frame_rows`, with what the corpus says of each.

  Added are "said", the user's turn and the one before it, and per failure "wording": version ->
  [name, description] of the slot.
  """
  for row in frame_rows(run, first_run):
    dialogue = texts.dialogues.get(row["dialogue"])
    if dialogue:
      row["said"] = _said(dialogue, row["turn"])[-2:]
    for failure in row["failures"]:
      wording = texts.services.get(row["service"], {}).items()
      slot = failure["slot"]
      failure["wording"] = {version: found["slots"].get(slot) for version, found in wording}
    yield json.dumps(row, ensure_ascii=False)


# --- choosing ------------------------------------------------------------------------------


def _choose(rows: Sequence[dict[str, Any]], examples: int) -> list[tuple[int, dict[str, Any]]]:
  """Returns (rank, row): a row is taken as the rank-th of a cell that has not enough yet."""
  taken: Counter[tuple[Any, ...]] = Counter()
  chosen = []
  # A dialogue's frames come one after the other: its text is embedded once.
  for row in sorted(
    rows, key=lambda row: (not row["changes"], zlib.crc32(row["dialogue"].encode()))
  ):
    cells = list(_cells(row))
    rank = min(taken[cell] for cell in cells)
    if rank < examples:
      taken.update(cells)
      chosen.append((rank, row))
  return chosen


def _cells(row: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
  for failure in row["failures"]:
    for version, kind in failure["kinds"].items():
      yield row["run"], row["service"], failure["slot"], version, kind


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
      size += sum(len(script_json(turn)) for turn in _said(dialogue, row["turn"])[start:])
    if size > BUDGET:
      break
    if dialogue:
      turns[dialogue.dialogue_id] = max(row["turn"], turns.get(dialogue.dialogue_id, -1))
    kept.append(row)
  return kept, turns


# --- texts ---------------------------------------------------------------------------------


def _wording(service: Any, other: Any) -> dict[str, Any]:
  pairs = zip(service.slots, other.slots, strict=True)
  return {
    "name": other.name,
    "slots": {slot.name: [named.name, named.description] for slot, named in pairs},
  }


def _said(dialogue: Dialogue, last: int) -> list[list[str]]:
  return [[turn.speaker, turn.utterance] for turn in dialogue.turns[: last + 1]]


def _seen(runs: Sequence[Run]) -> dict[str, bool]:
  seen: dict[str, bool] = {}
  for run in runs:
    if run.table:
      frames = run.table.frames
      seen.update(zip(frames.services.tolist(), frames.seen.tolist(), strict=True))
  return dict(sorted(seen.items()))


def _right(run: Run | None) -> dict[str, tuple[str, ...]]:
  """Frame id -> versions with which a run is right; empty if that is not known."""
  if run is None or run.table is None:
    return {}
  versions = np.array(list(run.table.scores))
  pairs = zip(run.table.frame_ids.tolist(), _jga(run.table) >= 1, strict=True)
  return {key: tuple(versions[right].tolist()) for key, right in pairs}


def _jga(table: FrameTable) -> np.ndarray:
  """[F, K] float, of each frame and version."""
  return np.stack([scores.metrics[JOINT_GOAL] for scores in table.scores.values()], axis=1)
