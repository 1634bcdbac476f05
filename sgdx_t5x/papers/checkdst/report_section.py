"""Perturbed dialogues in a report: a run's check, its section, and the perturbed utterances.

Besides its numbers, a check (`sgdx checkdst check`) lists which slots of which frames fail in each
perturbed set. The error browser shows a set like a schema variant, with the words that differ.
"""

import argparse
import dataclasses
import functools
import math
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.cli.options import parse_named
from sgdx_t5x.cli.report import paths_of_runs
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import Dialogue, Turn
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.variants import ORIGINAL
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.checkdst.changes import read_changes
from sgdx_t5x.papers.checkdst.checks import files, tables
from sgdx_t5x.papers.checkdst.checks.check import CheckedSet, SetFailure
from sgdx_t5x.papers.checkdst.checks.counterfactual import original_ids
from sgdx_t5x.papers.checkdst.checks.sets import OF_GOALS
from sgdx_t5x.report.browser import Edits, Said
from sgdx_t5x.report.build import OtherTexts
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
      counts = dict(zip(checked_set.counts.names, checked_set.counts.values, strict=True))
      scored, jga = counts["scored"], counts["jga"]
      pairs = zip(original_ids(checked_set).values(), scored.tolist(), jga.tolist(), strict=True)
      by_label[label] = {key: score for key, is_scored, score in pairs if is_scored}
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
  paths = paths_of_runs([run.name for run in runs], args.check, "check")
  return [
    dataclasses.replace(run, others=_read_check(paths[run.name], run)) if run.name in paths else run
    for run in runs
  ]


def read_texts(runs: Sequence[Run], corpus: Corpus | None, args: argparse.Namespace) -> OtherTexts:
  """Returns the utterances of the sets of `--perturbed`, as far as they differ from the original.

  Raises:
    SgdxError: a set that no check has, or a corpus other than the one checked.
  """
  fix = "pass, for example, ned=perturbed/ned"
  perturbed = parse_named(args.perturbed, "perturbed", "SET=DIR", fix)
  checks = [run.others for run in runs if isinstance(run.others, Check)]
  checked: dict[str, list[CheckedSet]] = {}
  for found in (found for check in checks for found in check.sets.values()):
    checked.setdefault(found.name, []).append(found)
  lacks = [name for name in checked if name not in perturbed]
  lines = (
    [f"utterances of {', '.join(lacks)} are not shown: pass --perturbed NAME=DIR"] if lacks else []
  )
  split = runs[0].signature.split
  dialogues = corpus.dialogues(split) if corpus is not None and perturbed else ()
  before = {d.dialogue_id: d for d in dialogues}
  said: dict[str, Said] = {}
  edits: dict[str, Edits] = {}
  for name, place in perturbed.items():
    changed, sets = open_corpus(place), checked.get(name, [])
    if {each.about["checksum"] for each in sets} != {changed.checksum()}:
      raise SgdxError(
        f"--perturbed {name}={place}, with checksum {changed.checksum()}, was not checked",
        expected="the corpus of a set that a check lists, made with --per-frame",
        available=", ".join(f"{x}: {sets[0].about['checksum']}" for x, sets in checked.items()),
        fix="pass the same name and corpus as to `sgdx checkdst check`, or check again",
      )
    if before and sets[0].kind in OF_GOALS:
      edits[name] = _read_edits(before, changed, split)
    elif before:
      pairs = ((before.get(d.dialogue_id), d) for d in changed.dialogues(split))
      said[name] = {new.dialogue_id: _changed(old, new) for old, new in pairs if old}
  return OtherTexts(said, edits, lines)


def sections(scored: Sequence[Run], figures: dict[str, Any]) -> Iterator[Section]:
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
    shown = tuple(
      dataclasses.replace(table, title=f"{name} on perturbed dialogues: {table.title}")
      for table in tables.layout(check.report)
    )
    yield Section(f"perturbed-{number}", f"Perturbed dialogues: {name}", lines, shown, signed=False)


# --- parts ---------------------------------------------------------------------------------


def _read_check(path: str | pathlib.Path, run: Run) -> Check:
  """Reads a check of a run. Raises SgdxError for one of another corpus, split or tracker."""
  report = files.read_report(path)
  _check_same(path, report, run)
  if not report["per_frame"]:
    lacks = f"{path} has no per-frame counts; check again with --per-frame to see the errors"
    return Check(report, {}, (lacks,))
  sets = files.read_check(path).sets
  return Check(report, {label: found for label, found in sets.items() if found.name != ORIGINAL})


def _check_same(path: str | pathlib.Path, report: Mapping[str, Any], run: Run) -> None:
  """Raises SgdxError if a check's scores on the original dialogues differ from the run's."""
  own_fields = Signature.parse(report["signature"])
  words = [
    f"{name}:{one or 'none'}, not {name}:{other or 'none'}"
    for name, (one, other) in differences(own_fields, run.signature).items()
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


def _changed(old: Dialogue, new: Dialogue) -> dict[int, str]:
  pairs = ((a.utterance, b.utterance) for a, b in zip(old.turns, new.turns, strict=False))
  return {turn: b for turn, (a, b) in enumerate(pairs) if a != b}


# --- counterfactual turns: what users inform instead, and where in the utterance --------------

KEPT, CHANGED, ADDED, DROPPED = "kept", "changed", "added", "dropped"
# An edit of a turn: {"slots": [status, slot, old, new], "parts": [status, text]}


def _read_edits(before: Mapping[str, Dialogue], found: Corpus, split: str) -> Edits:
  """Reads the edits of a set of counterfactuals, or of its control.

  Args:
    before: original dialogues, by id.
    found: the set.
    split: its split.

  Returns:
    Original dialogue id -> turn -> edit. "slots" lists the status of each slot of the goal, with
    the values informed before and after (None: not informed). "parts" is the new utterance, split
    at the values it contains, with the status of their slots; "" for other text.

  Raises:
    SgdxError: changes.jsonl is missing or malformed.
  """
  lines = {name: line for name, (line, *_) in read_changes(found, split).items()}
  edits: dict[str, dict[int, Mapping[str, Any]]] = {}
  for dialogue in found.dialogues(split):
    line = lines.get(dialogue.dialogue_id)
    if line and (original := before.get(line["of"])):
      number = line["turn"]
      edit = _edit(line, original.turns[number], dialogue.turns[-1])
      edits.setdefault(line["of"], {})[number] = edit
  return edits


def _edit(line: Mapping[str, Any], before: Turn, after: Turn) -> dict[str, Any]:
  old, new = (_told(turn, line["service"]) for turn in (before, after))
  names = (CHANGED, ADDED, DROPPED, KEPT)
  status = {slot: name for name in names for slot in line[name]}
  slots = [[name, slot, old.get(slot), new.get(slot)] for slot, name in status.items()]
  parts, last = [], 0
  for start, end, slot in sorted(_places(after, line["service"], new)):
    if start >= last and slot in status:
      parts += [["", after.utterance[last:start]], [status[slot], after.utterance[start:end]]]
      last = end
  parts.append(["", after.utterance[last:]])
  return {"slots": slots, "parts": [part for part in parts if part[1]]}


def _told(turn: Turn, service: str) -> dict[str, str]:
  """Returns slot -> value that a user turn informs for a service (INFORM)."""
  frames = (frame for frame in turn.frames if frame.service == service)
  actions = (action for frame in frames for action in frame.actions or ())
  return {x["slot"]: x["values"][0] for x in actions if x["act"] == "INFORM" and x["values"]}


def _places(turn: Turn, service: str, told: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
  """Yields (start, end, slot) of values: spans, and categorical values that occur verbatim."""
  spans = [x for f in turn.frames if f.service == service for x in f.slots or ()]
  for span in spans:
    yield span["start"], span["exclusive_end"], span["slot"]
  for slot in told.keys() - {span["slot"] for span in spans}:
    value = re.escape(told[slot].replace("_", " "))
    if match := re.search(rf"(?<!\w){value}(?!\w)", turn.utterance, re.IGNORECASE):
      yield *match.span(), slot
