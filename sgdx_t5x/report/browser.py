"""Data of the error browser: frames with errors, some embedded in the page, all in JSONL.

As Table 4 of the SGD-X paper (Lee et al. 2022), for every frame: which slots fail under which
variant.
"""

import dataclasses
import difflib
import functools
import itertools
import json
import math
import operator
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.variants import in_order
from sgdx_t5x.metrics import JOINT_GOAL, KINDS
from sgdx_t5x.report.page import script_json
from sgdx_t5x.report.runs import Run
from sgdx_t5x.variants.variant_schemas import VariantSchemas

EXAMPLES = 5  # frames embedded per run, service, slot, variant and kind
Said = Mapping[str, Mapping[int, str]]  # dialogue id -> turn -> utterance that differs
Edits = Mapping[str, Mapping[int, Mapping[str, Any]]]  # dialogue id -> turn -> {"slots", "parts"}
_WORD = re.compile(r"\w+|\W")
BUDGET = 10_000_000  # bytes of embedded frames and dialogues; plots and tables come on top


@dataclasses.dataclass(frozen=True)
class Texts:
  """Texts that are shown with errors: of the corpus, if there is one, and of annexes.

  Attributes:
    services: original name -> variant -> its name and slot -> (name, description).
    dialogues: dialogue id -> dialogue.
    said: set of other dialogues (`runs.OtherDialogues`) -> its utterances, where they differ.
    edits: such a set -> what its users inform instead.
    lacks: what is missing, and how to get it, a line each.
  """

  services: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
  dialogues: Mapping[str, Dialogue] = dataclasses.field(default_factory=dict)
  said: Mapping[str, Said] = dataclasses.field(default_factory=dict)
  edits: Mapping[str, Edits] = dataclasses.field(default_factory=dict)
  lacks: Sequence[str] = ()


def read_texts(
  corpus: Corpus, split: str, runs: Sequence[Run], of_variants: VariantSchemas
) -> Texts:
  """Reads the schemas of all variants scored, and the dialogues with errors."""
  with_errors: set[str] = set()
  variants: dict[str, None] = {}  # a dict for its order
  for run in runs:
    # Of a run without errors, no wording is shown, and a schema of one's own is not needed.
    if run.table and (run.table.failures or _sets(run)):
      variants.update(dict.fromkeys(run.table.scores))
    with_errors.update(row["dialogue"] for row in frame_rows(run))
  services: dict[str, dict[str, Any]] = {}
  for variant in in_order(variants):
    schema = of_variants.get(split, variant)
    for original, reworded in zip(corpus.schema(split), schema, strict=True):
      slots = {}
      for slot, reworded_slot in zip(original.slots, reworded.slots, strict=True):
        slots[slot.name] = [reworded_slot.name, reworded_slot.description]
      services.setdefault(original.name, {})[variant] = {"name": reworded.name, "slots": slots}
  dialogues = {d.dialogue_id: d for d in corpus.dialogues(split) if d.dialogue_id in with_errors}
  return Texts(services, dialogues)


def frame_rows(run: Run, first_run: Run | None = None) -> Iterator[dict[str, Any]]:
  """Yields a run's frames with errors, in the order of the corpus.

  Each is {"id", "dialogue", "turn", "service", "scores": variant -> joint goal accuracy,
  "changes": whether it is right (1) with some variants and wrong with others, "broken": variants
  with which `first_run` is right and this one wrong, "failures"}. A set of other
  dialogues counts as a variant.
  """
  if run.table is None or run.failures is None:
    return
  scores_by_frame, baseline_scores = _scores(run), _scores(first_run)
  for key, dialogue, turn, service, _ in run.table.frames.places():
    if failures := _failures(run, key):
      scores, baseline = scores_by_frame[key], baseline_scores.get(key, {})
      broken = [name for name, score in scores.items() if score < 1 <= baseline.get(name, 0)]
      yield {
        "id": key,
        "dialogue": dialogue,
        "turn": turn,
        "service": service,
        "scores": {name: None if math.isnan(score) else score for name, score in scores.items()},
        # Since there is an error, it is wrong with another variant.
        "changes": any(score >= 1 for score in scores.values()),
        "broken": broken,
        "failures": failures,
      }


def embed(
  runs: Sequence[Run],
  rows_of: Sequence[Sequence[Mapping[str, Any]]],
  texts: Texts,
  jsonl: Sequence[str],
  examples: int = EXAMPLES,
) -> dict[str, Any]:
  """Returns the data of the page's error browser.

  Args:
    runs: the runs; those without per-frame errors have no examples.
    rows_of: for each run, its `frame_rows`.
    texts: texts of the corpus.
    jsonl: paths of the files with all examples, relative to the page.
    examples: how many frames to embed per run, service, slot, variant and kind.

  Returns:
    What page.js reads. Frames are chosen by a hash of their dialogue, those that change between
    variants first, until `BUDGET` is used up.
  """
  totals: dict[tuple[Any, ...], dict[str, int]] = {}
  ranked: list[tuple[int, dict[str, Any]]] = []
  unknown, sets, seen = [], {}, {}
  for number, (run, of_run) in enumerate(zip(runs, rows_of, strict=True)):
    if run.failures is None:
      unknown.append(number)
    for label, version in _sets(run).items():
      sets[label] = version.variant
    seen |= run.seen
    rows = [{"run": number, **row} for row in of_run]
    for row in rows:
      for cell in _cells(row):
        counts = totals.setdefault(cell, {"frames": 0, "changes": 0, "broken": 0})
        counts["frames"] += 1
        counts["changes"] += row["changes"]
        counts["broken"] += cell[3] in row["broken"]
    ranked += _choose(rows, examples)
  # The first example of every cell, then the second of every cell, while there is room.
  ranked.sort(key=lambda item: item[0])
  frames, turns = _fit([row for _, row in ranked], texts)
  services = {}
  for name, is_seen in sorted(seen.items()):
    services[name] = {"seen": is_seen, "variants": texts.services.get(name, {})}
  cell_names = ("run", "service", "slot", "variant", "kind")
  counts_of_cells = []
  for cell, counts in totals.items():
    counts_of_cells.append({**dict(zip(cell_names, cell, strict=True)), **counts})
  return {
    "runs": [run.name for run in runs],
    "unknown": unknown,
    "variants": _columns(runs),
    "sets": sets,
    "kinds": list(KINDS),
    "examples": examples,
    "megabytes": BUDGET // 1_000_000,
    "jsonl": list(jsonl),
    "services": services,
    "dialogues": {name: _turns(texts, name, last) for name, last in turns.items()},
    "frames": frames,
    "totals": counts_of_cells,
  }


def kind_counts(run: Run) -> dict[str, dict[str, int]]:
  """Returns variant -> kind -> number of failed slots over all frames; {} if not known."""
  if run.table is None or run.failures is None:
    return {}
  counts = {variant: dict.fromkeys(KINDS, 0) for variant in run.table.scores}
  for failures in run.failures.values():
    for failure in failures:
      for variant, kind in failure.kinds.items():
        counts[variant][kind] += 1
  return counts


def slot_counts(run: Run) -> dict[tuple[str, str], Counter[tuple[str, str]]]:
  """Returns (service, slot) -> (variant, kind) -> number of failures, for slots with any."""
  counts: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
  if run.table and run.failures:
    for key, _, _, service, _ in run.table.frames.places():
      for failure in run.failures.get(key, ()):
        counts.setdefault((service, failure.slot), Counter()).update(failure.kinds.items())
  return counts


def jsonl_lines(rows: Iterable[Mapping[str, Any]], texts: Texts) -> Iterator[str]:
  """Yields the lines of errors/RUN.jsonl: `frame_rows` with texts of the corpus.

  These are "said", the user's turn and the one before it, and per failure "wording": variant ->
  [name, description] of the slot.
  """
  for row in rows:
    line = dict(row)
    if row["dialogue"] in texts.dialogues:
      line["said"] = _turns(texts, row["dialogue"], row["turn"], max(0, row["turn"] - 1))
    line["failures"] = []
    for failure in row["failures"]:
      wording = {}  # variant -> name and description
      for variant, service in texts.services.get(row["service"], {}).items():
        wording[variant] = service["slots"].get(failure["slot"])
      line["failures"].append({**failure, "wording": wording})
    yield json.dumps(line, ensure_ascii=False)


# --- choosing ------------------------------------------------------------------------------


def _choose(rows: Sequence[dict[str, Any]], examples: int) -> list[tuple[int, dict[str, Any]]]:
  """Returns (rank, row): each row is the rank-th example of a cell that still needs examples."""
  counts: Counter[tuple[Any, ...]] = Counter()
  selected = []

  def order(row: dict[str, Any]) -> tuple[bool, int]:
    # Frames that change come first: there, wording alone made the difference. The hash keeps the
    # frames of a dialogue together, since its text is embedded once.
    return not row["changes"], zlib.crc32(row["dialogue"].encode(errors="surrogatepass"))

  for row in sorted(rows, key=order):
    cells = list(_cells(row))
    rank = min(counts[cell] for cell in cells)  # of the cell with the fewest examples so far
    if rank < examples:
      counts.update(cells)
      selected.append((rank, row))
  return selected


def _cells(row: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
  for failure in row["failures"]:
    for variant, kind in failure["kinds"].items():
      yield row["run"], row["service"], failure["slot"], variant, kind


def _fit(
  rows: Sequence[dict[str, Any]], texts: Texts
) -> tuple[list[dict[str, Any]], dict[str, int]]:
  """Returns the first rows that fit into the budget, and dialogue -> last turn to show."""
  fitting: list[dict[str, Any]] = []
  turns: dict[str, int] = {}
  size = 0
  for row in rows:
    size += len(script_json(row))
    name = row["dialogue"]
    if (last_shown := turns.get(name, -1)) < row["turn"] and name in texts.dialogues:
      for turn in _turns(texts, name, row["turn"], last_shown + 1):
        size += len(script_json(turn))
    if size > BUDGET:
      break  # rather than go on to smaller frames, which would be those of short dialogues
    if name in texts.dialogues:
      turns[name] = max(row["turn"], last_shown)
    fitting.append(row)
  return fitting, turns


# --- texts ---------------------------------------------------------------------------------


def _turns(texts: Texts, name: str, last: int, first: int = 0) -> list[list[Any]]:
  """Returns [speaker, utterance, others, edits] per turn, without empty items at the end.

  `others`: set -> its utterance in (is new, text) parts; `edits`: set -> edit.
  """
  turns: list[list[Any]] = []
  for number, turn in enumerate(texts.dialogues[name].turns[first : last + 1], start=first):
    utterances, edits = {}, {}
    for label, by_dialogue in texts.said.items():
      if number in by_dialogue.get(name, ()):
        utterances[label] = changed_words(turn.utterance, by_dialogue[name][number])
    for label, by_dialogue in texts.edits.items():
      if number in by_dialogue.get(name, ()):
        edits[label] = by_dialogue[name][number]
    extra = [utterances, edits] if edits else [utterances] if utterances else []
    turns.append([turn.speaker, turn.utterance, *extra])
  return turns


@functools.lru_cache(maxsize=10_000)  # the frames of a dialogue share its turns
def changed_words(old_text: str, new_text: str) -> tuple[tuple[bool, str], ...]:
  """Splits `new_text` into parts that it shares with `old_text` (False) and new parts (True)."""
  old, new = _WORD.findall(old_text), _WORD.findall(new_text)
  is_new = [True] * len(new)
  matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
  for _, start, size in matcher.get_matching_blocks():
    is_new[start : start + size] = [False] * size
  # Spaces between two new words are new, too; all others are not marked.
  words = [number for number, word in enumerate(new) if not word.isspace()]
  for before, after in itertools.pairwise((-1, *words, len(new))):
    inside = before >= 0 and after < len(new) and is_new[before] and is_new[after]
    is_new[before + 1 : after] = [inside] * (after - before - 1)
  runs = itertools.groupby(zip(is_new, new, strict=True), key=operator.itemgetter(0))
  return tuple((marked, "".join(word for _, word in run)) for marked, run in runs)


def _columns(runs: Sequence[Run]) -> list[str]:
  """Returns the variants of all runs, then their sets of other dialogues."""
  variants = in_order(dict.fromkeys(itertools.chain.from_iterable(run.variants for run in runs)))
  sets = itertools.chain.from_iterable(map(_sets, runs))
  return list(dict.fromkeys((*variants, *sets)))


def _sets(run: Run) -> Mapping[str, Any]:
  """The sets of other dialogues of a run, if their errors are known."""
  return run.others.sets if run.others else {}


def _failures(run: Run, key: str) -> list[dict[str, Any]]:
  """Returns the slots of a frame that fail under any variant or in any other set."""
  rows: dict[str, dict[str, Any]] = {}
  for failure in (run.failures or {}).get(key, ()):
    rows[failure.slot] = msgspec.to_builtins(failure)
  for label, failure in run.others.failures(key) if run.others else ():
    row = rows.setdefault(
      failure.slot, {"slot": failure.slot, "gold": failure.before, "predicted": {}, "kinds": {}}
    )
    row["predicted"] = {**row["predicted"], label: failure.predicted}
    row["kinds"] = {**row["kinds"], label: failure.kind}
    if failure.gold != failure.before:  # the version has its own gold value
      row.setdefault("gold_there", {})[label] = failure.gold
  return list(rows.values())


def _scores(run: Run | None) -> dict[str, dict[str, float]]:
  """Frame id -> variant or set of other dialogues -> JGA; empty if not known."""
  if run is None or run.table is None:
    return {}
  keys = run.table.frame_ids.tolist()
  scores: dict[str, dict[str, float]] = {key: {} for key in keys}
  for variant, frames in run.table.scores.items():
    for key, score in zip(keys, frames.metrics[JOINT_GOAL].tolist(), strict=True):
      scores[key][variant] = score
  for label, by_frame in (run.others.scores if run.others else {}).items():
    for key, score in by_frame.items():
      if key in scores:
        scores[key][label] = score
  return scores
