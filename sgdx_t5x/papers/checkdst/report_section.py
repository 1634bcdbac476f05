"""Perturbed dialogues in a report: a run's check, its section, and the perturbed utterances.

Besides its numbers, a check (`sgdx checkdst check`) lists which slots of which frames fail in each
perturbed set. The error browser shows a set like a schema variant, with the words that differ.
"""

import argparse
import dataclasses
import functools
import math
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.cli.options import parse_named
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import Dialogue, Turn
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.variants import ORIGINAL
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.papers.checkdst.changes import read_changes
from sgdx_t5x.papers.checkdst.checks import files, tables
from sgdx_t5x.papers.checkdst.checks.check import CheckedSet, SetFailure
from sgdx_t5x.papers.checkdst.checks.counterfactual import jga_by_frame, original_ids
from sgdx_t5x.papers.checkdst.checks.sets import OF_GOALS
from sgdx_t5x.papers.checkdst.texts import pattern_of
from sgdx_t5x.report.browser import Edits, Said, Texts
from sgdx_t5x.report.page import Section
from sgdx_t5x.report.runs import Run
from sgdx_t5x.signature import Signature, differences

_OF_ONE = ("zero_mean",)  # signature fields that only scores have
_SAME = 1e-7  # percent


@dataclasses.dataclass(frozen=True)
class Check:
  """A check of a run.

  Attributes:
    report: what `sgdx checkdst check --json` wrote.
    sets: label -> a perturbed set, with per-frame counts and failures; empty if not known.
    lacks: what is missing to show its errors, and how to get it, a line each.
  """

  report: Mapping[str, Any]
  sets: Mapping[str, CheckedSet]
  lacks: tuple[str, ...] = ()

  @functools.cached_property
  def scores(self) -> dict[str, dict[str, float]]:
    """Label -> id of the original frame -> JGA, for the perturbed sets."""
    by_label = {}
    for label, checked_set in self.sets.items():
      ids = original_ids(checked_set)
      by_label[label] = {ids[key]: score for key, score in jga_by_frame(checked_set).items()}
    return by_label

  @functools.cached_property
  def _failures(self) -> dict[str, list[tuple[str, SetFailure]]]:
    """Id of the original frame -> (label, failed slot)."""
    by_frame: dict[str, list[tuple[str, SetFailure]]] = {}
    for label, checked_set in self.sets.items():
      ids = original_ids(checked_set)
      for key, failed in (checked_set.failures or {}).items():
        by_frame.setdefault(ids[key], []).extend((label, failure) for failure in failed)
    return by_frame

  @property
  def warnings(self) -> Sequence[str]:
    """What makes the check PARTIAL."""
    return self.report["warnings"]

  def failures(self, frame_id: str) -> Iterator[tuple[str, SetFailure]]:
    """Yields (label, failed slot) for a frame of the original dialogues."""
    yield from self._failures.get(frame_id, ())


# --- options of `sgdx report`, which report_options.py adds ---------------------------------


def read(runs: Sequence[Run], args: argparse.Namespace) -> list[Run]:
  """Returns the runs with the checks of `--check`."""
  paths = _paths_of_checks([run.name for run in runs], args.check)
  return [
    dataclasses.replace(run, others=_read_check(paths[run.name], run)) if run.name in paths else run
    for run in runs
  ]


def read_texts(runs: Sequence[Run], corpus: Corpus | None, args: argparse.Namespace) -> Texts:
  """Returns the utterances of the sets of `--perturbed`, as far as they differ from the original.

  Raises:
    SgdxError: a set that no check has, or a corpus other than the one checked.
  """
  fix = "pass, for example, ned=perturbed/ned"
  perturbed = parse_named(args.perturbed, "--perturbed", "SET=DIR", fix)
  checked: dict[str, list[CheckedSet]] = {}
  for run in runs:
    for checked_set in run.others.sets.values() if isinstance(run.others, Check) else ():
      checked.setdefault(checked_set.name, []).append(checked_set)
  lines = []
  if lacks := ", ".join(name for name in checked if name not in perturbed):
    lines.append(f"utterances of {lacks} are not shown: pass --perturbed NAME=DIR")
  split = runs[0].signature.split
  dialogues = corpus.dialogues(split) if corpus is not None and perturbed else ()
  originals = {d.dialogue_id: d for d in dialogues}
  utterances: dict[str, Said] = {}
  edits: dict[str, Edits] = {}
  for name, place in perturbed.items():
    changed, sets = open_corpus(place), checked.get(name, [])
    if {checked_set.source["checksum"] for checked_set in sets} != {changed.checksum()}:
      raise SgdxError(
        f"--perturbed {name}={place}, with checksum {changed.checksum()}, was not checked",
        expected="the corpus of a set that a check lists, made with --per-frame",
        available=", ".join(f"{x}: {sets[0].source['checksum']}" for x, sets in checked.items()),
        fix="pass the same name and corpus as to `sgdx checkdst check`, or check again",
      )
    # Counterfactuals are shown slot by slot, the others by the utterances that differ.
    if originals and sets[0].kind in OF_GOALS:
      edits[name] = _read_edits(originals, changed, split)
    elif originals:
      by_dialogue = utterances[name] = {}
      for dialogue in changed.dialogues(split):
        if original := originals.get(dialogue.dialogue_id):
          pairs = enumerate(zip(original.turns, dialogue.turns, strict=False))
          changed_turns = {i: b.utterance for i, (a, b) in pairs if a.utterance != b.utterance}
          by_dialogue[dialogue.dialogue_id] = changed_turns
  return Texts(said=utterances, edits=edits, lacks=lines)


def sections(scored: Sequence[Run]) -> Iterator[Section]:
  """The effect of perturbed dialogues on runs that were checked, see `sgdx checkdst check`."""
  checks = {run.name: run.others for run in scored if isinstance(run.others, Check)}
  for number, (name, check) in enumerate(checks.items(), start=1):
    lines = (
      "ned: unseen names; pi: paraphrased utterances; sdi: disfluent speech; vs: other values; "
      "coco: another user goal. Each set is compared with the original dialogues over the frames "
      "that the perturbation changed.",
      *tables.legend(check.report),
      *check.report["notes"],
      f"Signature of the check: {check.report['signature']}",
    )
    titled = []
    for table in tables.layout(check.report):
      title = f"{name} on perturbed dialogues: {table.title}"
      titled.append(dataclasses.replace(table, title=title))
    title = f"Perturbed dialogues: {name}"
    yield Section(f"perturbed-{number}", title, lines, tuple(titled), signed=False)


# --- parts ---------------------------------------------------------------------------------


def _paths_of_checks(names: list[str], items: list[str]) -> dict[str, pathlib.Path]:
  """Reads [NAME=]FILE ... of `--check`, once per run. Returns name of the run -> path.

  Args:
    names: of the runs; a single one need not be named.
    items: the option's values.
  """
  paths: dict[str, pathlib.Path] = {}
  for item in items:
    name, _, path = item.partition("=")
    if len(names) == 1 and pathlib.Path(item).is_file():
      name, path = names[0], item
    if name not in names or name in paths or not pathlib.Path(path).is_file():
      raise UsageError(
        f"--check {item}",
        expected="NAME=FILE with the name of a run, once per run, and an existing file",
        available="runs: " + ", ".join(names),
        fix="check the path, and name the run: --check NAME=FILE",
      )
    paths[name] = pathlib.Path(path)
  return paths


def _read_check(path: str | pathlib.Path, run: Run) -> Check:
  """Reads a check of a run. Raises SgdxError for one of another corpus, split or tracker."""
  report = files.read_report(path)
  _check_same(path, report, run)
  if not report["per_frame"]:
    lacks = f"{path} has no per-frame counts; check again with --per-frame to see the errors"
    return Check(report, {}, (lacks,))
  sets = files.read_check(path).sets
  return Check(report, {label: x for label, x in sets.items() if x.name != ORIGINAL})


def _check_same(path: str | pathlib.Path, report: Mapping[str, Any], run: Run) -> None:
  """Raises SgdxError if a check's scores on the original dialogues differ from the run's."""
  own_fields = Signature.parse(report["signature"])
  words = [
    f"{name}:{checked or 'none'}, not {name}:{scored or 'none'}"
    for name, (checked, scored) in differences(own_fields, run.signature).items()
    if name not in _OF_ONE
  ]
  same_frames = own_fields.fields.get("frames") == run.signature.fields.get("frames")
  rows = tables.sets_of(report)
  checked_jga = rows[ORIGINAL].groups["all"].percent("jga") if ORIGINAL in rows else math.nan
  own_jga = run.rows.groups["all"].percent("jga_orig")
  # Neither is larger than the other if one is nan: not known.
  if not words and same_frames and abs(checked_jga - own_jga) > _SAME:
    words = [f"JGA {checked_jga:.2f} on the original dialogues, not {own_jga:.2f}"]
  if words:
    raise SgdxError(
      f"--check {path} is not a check of {run.name}: {'; '.join(words)}",
      expected="a check of the same predictions for the original dialogues, with the same settings",
      fix="run `sgdx checkdst check` on the scored predictions, or name the run: NAME=FILE",
    )


# --- counterfactual turns: what users inform instead, and where in the utterance --------------

KEPT, CHANGED, ADDED, DROPPED = "kept", "changed", "added", "dropped"
# An edit of a turn: {"slots": [status, slot, old, new], "parts": [status, text]}


def _read_edits(originals: Mapping[str, Dialogue], edited_set: Corpus, split: str) -> Edits:
  """Reads the edits of a set of counterfactuals, or of its control.

  Args:
    originals: original dialogues, by id.
    edited_set: the set.
    split: its split.

  Returns:
    Original dialogue id -> turn -> edit. "slots" lists the status of each slot of the goal, with
    the values informed before and after (None: not informed). "parts" is the new utterance, split
    at the values it contains, with the status of their slots; "" for other text.

  Raises:
    SgdxError: changes.jsonl is missing or malformed.
  """
  lines = {name: line for name, (line, *_) in read_changes(edited_set, split).items()}
  edits: dict[str, dict[int, Mapping[str, Any]]] = {}
  for dialogue in edited_set.dialogues(split):
    line = lines.get(dialogue.dialogue_id)
    if line and (original := originals.get(line["of"])):
      number = line["turn"]
      edit = _edit(line, original.turns[number], dialogue.turns[-1])
      edits.setdefault(line["of"], {})[number] = edit
  return edits


def _edit(line: Mapping[str, Any], original: Turn, edited: Turn) -> dict[str, Any]:
  service = line["service"]
  values_before, values_after = _informed(original, service), _informed(edited, service)
  status: dict[str, str] = {}
  slots = []
  for name in (CHANGED, ADDED, DROPPED, KEPT):
    for slot in line[name]:
      status[slot] = name
      slots.append([name, slot, values_before.get(slot), values_after.get(slot)])
  pieces, last = [], 0
  for start, end, slot in sorted(_places(edited, service, values_after)):
    if start >= last and slot in status:
      pieces += [["", edited.utterance[last:start]], [status[slot], edited.utterance[start:end]]]
      last = end
  pieces.append(["", edited.utterance[last:]])
  return {"slots": slots, "parts": [piece for piece in pieces if piece[1]]}


def _informed(turn: Turn, service: str) -> dict[str, str]:
  """Returns slot -> value that a user turn informs for a service (INFORM)."""
  informed: dict[str, str] = {}
  for frame in turn.frames:
    for action in frame.actions or () if frame.service == service else ():
      if action["act"] == "INFORM" and action["values"]:
        informed[action["slot"]] = action["values"][0]
  return informed


def _places(turn: Turn, service: str, values: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
  """Yields (start, end, slot) of values: spans, and categorical values that occur verbatim."""
  unspanned = set(values)
  for frame in turn.frames:
    for span in frame.slots or () if frame.service == service else ():
      unspanned.discard(span["slot"])
      yield span["start"], span["exclusive_end"], span["slot"]
  for slot in unspanned:
    if match := pattern_of(values[slot]).search(turn.utterance):
      yield *match.span(), slot
