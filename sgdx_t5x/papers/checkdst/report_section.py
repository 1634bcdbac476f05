"""Perturbed dialogues in a report: a run's check, its section, and the perturbed utterances.

Besides its numbers, a check (`sgdx checkdst check`) lists which slots of which frames fail in each
perturbed set. The error browser shows a set like a schema variant, with the words that differ.
"""

import argparse
import dataclasses
import functools
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
from sgdx_t5x.papers.checkdst import report_plots
from sgdx_t5x.papers.checkdst.changes import read_changes
from sgdx_t5x.papers.checkdst.checks import files, tables
from sgdx_t5x.papers.checkdst.checks.check import CheckedSet, SetFailure
from sgdx_t5x.papers.checkdst.checks.counterfactual import original_ids
from sgdx_t5x.papers.checkdst.checks.sets import is_of_goals
from sgdx_t5x.report.browser import Edits, Said
from sgdx_t5x.report.build import OtherTexts
from sgdx_t5x.report.page import Section
from sgdx_t5x.report.runs import Run
from sgdx_t5x.report.sections import place_plots
from sgdx_t5x.scoring.rows import Rows
from sgdx_t5x.signature import Signature, differences
from sgdx_t5x.tables import Table

_OF_ONE = ("zero_mean", "names")  # signature fields that only scores, or only checks, have
_SAME = 1e-9


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
  def rows(self) -> dict[str, Rows]:
    """Label -> numbers of a set."""
    return tables.sets_of(self.report)

  @property
  def compared(self) -> tuple[str, ...]:
    """Labels of the sets that are compared with the original."""
    return tuple(label for label, found in self.report["sets"].items() if found["compared_with"])

  @functools.cached_property
  def scores(self) -> dict[str, dict[str, float]]:
    """Label -> id of the original frame -> JGA, for the perturbed sets."""
    found = {}
    for label, each in self.sets.items():
      scored, jga = (each.counts.values[each.counts.names.index(x)] for x in ("scored", "jga"))
      pairs = zip(original_ids(each).values(), scored.tolist(), jga.tolist(), strict=True)
      found[label] = {key: score for key, is_scored, score in pairs if is_scored}
    return found

  @functools.cached_property
  def _failures(self) -> dict[str, dict[str, tuple[SetFailure, ...]]]:
    """Label -> id of the original frame -> slots that fail."""
    return {
      label: {ids[key]: failed for key, failed in (each.failures or {}).items()}
      for label, each in self.sets.items()
      for ids in (original_ids(each),)
    }

  @property
  def warnings(self) -> Sequence[str]:
    """What makes the check PARTIAL."""
    return self.report["warnings"]

  def failures(self, frame_id: str) -> Iterator[tuple[str, SetFailure]]:
    """Yields (label, failed slot) for a frame of the original dialogues."""
    for label, by_frame in self._failures.items():
      for failure in by_frame.get(frame_id, ()):
        yield label, failure


# --- options of `sgdx report`, which report_options.py adds ---------------------------------


def read(runs: Sequence[Run], args: argparse.Namespace) -> list[Run]:
  """Returns the runs with the checks of `--check`."""
  paths = paths_of_runs([run.name for run in runs], args.check, "check", "file")
  return [
    dataclasses.replace(run, others=read_check(paths[run.name], run.name, run.signature, run.rows))
    if run.name in paths
    else run
    for run in runs
  ]


def read_texts(runs: Sequence[Run], corpus: Corpus | None, args: argparse.Namespace) -> OtherTexts:
  """Returns the utterances of the sets of `--perturbed`."""
  fix = "pass, for example, ned=perturbed/ned"
  perturbed = parse_named(args.perturbed, "perturbed", "SET=DIR", fix)
  checks = [run.others for run in runs if isinstance(run.others, Check)]
  return OtherTexts(*read_said(corpus, runs[0].signature.split, checks, perturbed))


# --- reading ------------------------------------------------------------------------------------


def read_check(path: str | pathlib.Path, name: str, signature: Signature, scores: Rows) -> Check:
  """Reads a check of a run.

  Args:
    path: what `sgdx checkdst check --json` wrote.
    name: name of the run.
    signature: signature of the run's scores.
    scores: the run's scores, which the check must reproduce for the original dialogues.

  Raises:
    SgdxError: no such file, or a check of another corpus, split or tracker.
  """
  report = files.read_report(path)
  _check_same(path, report, name, signature, scores)
  if not report["per_frame"]:
    lacks = f"{path} has no per-frame counts; check again with --per-frame to see the errors"
    return Check(report, {}, (lacks,))
  read = files.read_check(path)
  perturbed = {label: found for label, found in read.sets.items() if found.name != ORIGINAL}
  if any(found.failures is None for found in perturbed.values()):
    return Check(report, {}, (f"{path} has an older format that lists no errors; check again",))
  return Check(report, perturbed)


def read_said(
  corpus: Corpus | None, split: str, checks: Sequence[Check], perturbed: Mapping[str, str]
) -> tuple[dict[str, Said], dict[str, Edits], list[str]]:
  """Reads the utterances of perturbed sets that differ from the original.

  Args:
    corpus: the original corpus, if available.
    split: the split of the corpora.
    checks: the checks that the report shows.
    perturbed: set -> its corpus, as given to `sgdx checkdst check`.

  Returns:
    Set -> utterances; set of counterfactuals -> its edits; and what is missing, a line each.

  Raises:
    SgdxError: a set that no check has, or a corpus other than the one checked.
  """
  named = {found.name: found for check in checks for found in check.sets.values()}
  if unknown := [name for name in perturbed if name not in named]:
    raise SgdxError(
      f"--perturbed {unknown[0]}=...: no check lists errors for a set named {unknown[0]}",
      expected="a set from the checks",
      available=", ".join(named),
      fix="use the name given to `sgdx checkdst check`, and run that command with --per-frame",
    )
  lacks = [name for name in named if name not in perturbed]
  lines = (
    [f"utterances of {', '.join(lacks)} are not shown: pass --perturbed NAME=DIR"] if lacks else []
  )
  dialogues = corpus.dialogues(split) if corpus is not None and perturbed else ()
  before = {d.dialogue_id: d for d in dialogues}
  said: dict[str, Said] = {}
  edits: dict[str, Edits] = {}
  for name, place in perturbed.items():
    found = open_corpus(place)
    if any(found.checksum() != each.about["checksum"] for each in _of(name, checks)):
      raise SgdxError(
        f"--perturbed {name}={place} is not the corpus that was checked",
        expected=f"checksum {named[name].about['checksum']}, as recorded in the check",
        available=f"checksum {found.checksum()}",
        fix="pass the same corpus as to `sgdx checkdst check`, or check again",
      )
    if before and is_of_goals(named[name].kinds):
      edits[name] = read_edits(before, found, split)
    elif before:
      pairs = ((before.get(d.dialogue_id), d) for d in found.dialogues(split))
      said[name] = {new.dialogue_id: _changed(old, new) for old, new in pairs if old}
  return said, edits, lines


def sections(scored: Sequence[Run], figures: dict[str, Any]) -> Iterator[Section]:
  """The effect of perturbed dialogues on runs that were checked, see `sgdx checkdst check`."""
  checks = {run.name: run.others for run in scored if isinstance(run.others, Check)}
  for number, (name, check) in enumerate(checks.items(), start=1):
    stem = f"perturbed-{number}"
    compared = {label: check.rows[label] for label in check.compared}
    title = f"Frames that a perturbation changed, before and after: {name}"
    changed = {f"{stem}-changed": (title, report_plots.before_and_after(compared))}
    title = f"All frames of each set: {name}"
    every = {f"{stem}-all": (title, report_plots.alone(check.rows))}
    plots_of = (
      *place_plots(changed, report_plots.caption(compared, "num_changed"), figures),
      *place_plots(every, report_plots.caption(check.rows), figures),
    )
    shown = tuple(section_tables(name, check))
    title = f"Perturbed dialogues: {name}"
    yield Section(stem, title, section_lines(check), shown, plots_of, signed=False)


def section_tables(name: str, check: Check) -> list[Table]:
  """Returns the tables of a check; `name` is the name of the run."""
  return [
    dataclasses.replace(table, title=f"{name} on perturbed dialogues: {table.title}")
    for table in tables.layout(check.report)
  ]


def section_lines(check: Check) -> tuple[str, ...]:
  """Returns the lines above the tables of a check."""
  report = check.report
  return (
    "ned: unseen names; pi: paraphrased utterances; sdi: disfluent speech; vs: other values; coco: "
    "another user goal. Each set is compared with the original dialogues over the frames that the "
    "perturbation changed.",
    *tables.legend(report),
    *report["notes"],
    f"Signature of the check: {report['signature']}",
  )


# --- parts ---------------------------------------------------------------------------------


def _check_same(
  path: str | pathlib.Path,
  report: Mapping[str, Any],
  run: str,
  signature: Signature,
  scores: Rows,
) -> None:
  """Raises SgdxError if a check's scores on the original dialogues differ from the run's."""
  own_fields = Signature.parse(report["signature"])
  words = [
    f"{name}:{one or 'none'}, not {name}:{other or 'none'}"
    for name, (one, other) in differences(own_fields, signature).items()
    if name not in _OF_ONE
  ]
  same_frames = own_fields.fields.get("frames") == signature.fields.get("frames")
  rows = tables.sets_of(report)
  found = rows[ORIGINAL].groups["all"].values.get("jga") if ORIGINAL in rows else None
  own = scores.groups["all"].values.get("jga_orig")
  known = same_frames and found is not None and own is not None
  if not words and known and abs(found - own) > _SAME:
    words = [f"JGA {100 * found:.2f} on the original dialogues, not {100 * own:.2f}"]
  if words:
    raise SgdxError(
      f"--check {path} is not a check of {run}: {'; '.join(words)}",
      expected="a check of the same predictions for the original dialogues, with the same settings",
      fix="run `sgdx checkdst check` on the scored predictions, or name the run: NAME=FILE",
    )


def _of(name: str, checks: Sequence[Check]) -> Iterator[CheckedSet]:
  return (found for check in checks for found in check.sets.values() if found.name == name)


def _changed(old: Dialogue, new: Dialogue) -> dict[int, str]:
  pairs = ((a.utterance, b.utterance) for a, b in zip(old.turns, new.turns, strict=False))
  return {turn: b for turn, (a, b) in enumerate(pairs) if a != b}


# --- counterfactual turns: what users inform instead, and where in the utterance --------------

KEPT, CHANGED, ADDED, DROPPED = "kept", "changed", "added", "dropped"
# An edit of a turn: {"slots": [status, slot, old, new], "parts": [status, text]}


def read_edits(before: Mapping[str, Dialogue], found: Corpus, split: str) -> Edits:
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
  status = dict.fromkeys(line["kept"], KEPT)
  status |= dict.fromkeys(line["changed"], CHANGED) | dict.fromkeys(line["added"], ADDED)
  status |= dict.fromkeys(line["dropped"], DROPPED)
  order = (CHANGED, ADDED, DROPPED, KEPT)
  slots = [
    [what, slot, old.get(slot), new.get(slot)]
    for slot, what in sorted(status.items(), key=lambda item: order.index(item[1]))
  ]
  places = sorted(_places(after, line["service"], new))
  parts, last = [], 0
  for start, end, slot in places:
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
