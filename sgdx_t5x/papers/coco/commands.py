"""`sgdx coco perturb`: dialogues in which users have another goal in one turn."""

import argparse
import os
import pathlib
import shlex
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.options import add_command, add_group
from sgdx_t5x.cli.paths import add_input, add_output
from sgdx_t5x.errors import UsageError
from sgdx_t5x.papers.checkdst.perturb_command import add_perturbing, given

if TYPE_CHECKING:
  from sgdx_t5x.papers.checkdst.manifest import Manifest

_EPILOG = """\
examples:
  sgdx coco perturb --corpus sgd.zip --slots rare --out perturbed/coco_rare

  An utterance for each goal from a model of yours:
    sgdx coco perturb --corpus sgd.zip --goals-out goals.jsonl
    sgdx coco perturb --corpus sgd.zip --generator file \\
      --candidates answers.jsonl --out perturbed/coco

In one turn, a slot is dropped, others are changed or added; each turn becomes a
dialogue that ends with it. DIR_ori is the control: the same generator with the
original goal. `sgdx checkdst check` compares a tracker on both. The same seed
gives the same bytes. docs/papers/coco.md describes the files and the rules.
"""


def add_parser(subparsers: Any) -> None:
  """Adds `sgdx coco` and its subcommand."""
  verbs = add_group(subparsers, "coco", "`sgdx coco`: counterfactual goals, after CoCo.", _EPILOG)
  parser = add_command(verbs, "perturb", __doc__, _EPILOG)
  add_perturbing(parser)
  add_output(parser, "--out", metavar="DIR", help="new or empty folder to write", folder=True)
  text = "slots that may be added to a turn: freq (default), neutral, rare"
  parser.add_argument("--slots", metavar="HOW", help=text)
  text = "source of new values: out (default): out-test, or out-train for train; in; or FILE"
  parser.add_argument("--values", metavar="HOW", help=text)
  _add_options(parser)
  parser.set_defaults(run=run)


def _add_options(group: argparse.ArgumentParser) -> None:
  text = "source of utterances: templates (default), exchange, or file with --candidates"
  group.add_argument("--generator", metavar="NAME", help=text)
  add_input(group, "--candidates", metavar="FILE", help="utterances from a model")
  add_input(group, "--combinations", metavar="FILE", help="an edited combinations.json")
  group.add_argument(
    "--plus",
    action="store_true",
    default=None,
    help="substitute values where no utterance is found (CoCo+)",
  )
  for name, what in (("drop", "a slot is dropped"), ("add", "slots are added")):
    group.add_argument(f"--p-{name}", type=float, metavar="P", help=f"probability that {what}")
  group.add_argument("--p-change", type=float, metavar="P", help="probability that a value changes")
  group.add_argument(
    "--max-add", type=int, metavar="N", help="maximum number of slots to add (default: 2)"
  )
  group.add_argument(
    "--max-slots",
    type=int,
    metavar="N",
    help="maximum number of slots per turn after adding (default: 3)",
  )
  group.add_argument("--flow", metavar="HOW", help="loose: also drop slots the system asked for")
  group.add_argument(
    "--order",
    metavar="HOW",
    help="dictionary: add the first that fit, in schema order, as CoCo does",
  )
  add_input(group, "--classifier", metavar="FILE", help="answers of a classifier, to filter")
  group.add_argument(
    "--strict",
    action="store_true",
    default=None,
    help="the classifier must find all slots of the goal",
  )
  group.add_argument(
    "--force",
    action="store_true",
    default=None,
    help="allow a classifier with precision or recall below 0.8",
  )
  add_output(group, "--goals-out", metavar="OUT", help="write the goals for a model to answer")
  add_output(group, "--classify-out", metavar="OUT", help="write the utterances to classify")
  group.add_argument(
    "--sheet", type=int, metavar="N", help="write a blind annotation sheet for N turns"
  )
  add_output(
    group, "--sheet-out", metavar="OUT", help="file for the sheet of --sheet (default: DIR.csv)"
  )


def run(args: argparse.Namespace) -> int:
  """Writes goals, utterances to classify and counterfactuals, as requested. Returns 0."""
  from sgdx_t5x.cli.options import check_least
  from sgdx_t5x.cli.progress import progress
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.files.writing import check_folder
  from sgdx_t5x.papers.checkdst.split import Split
  from sgdx_t5x.papers.checkdst.write import check_unperturbed
  from sgdx_t5x.papers.coco import coco_open, coco_write

  _check_outputs(args)
  options = given(args, coco_open.OPTIONS)
  corpus = open_corpus(args.corpus)
  split = Split(corpus, args.split)
  corpus.schema(args.split)  # raises if there is no such split
  if args.out:
    check_folder(args.out)
    check_folder(coco_write.control_folder(args.out))
  check_unperturbed(corpus, args.split)
  sheet = args.sheet_out or f"{pathlib.Path(args.out or '').resolve()}.csv"
  if args.sheet is not None:
    check_least(args, "sheet", 1, "omit --sheet to write none")
    for path in filter(os.path.lexists, (sheet, coco_write.key_of(sheet))):
      raise UsageError(
        f"--sheet: {path} already exists, and annotations may be in it",
        expected="a new file",
        fix="move it away, or name another file with --sheet-out",
      )
  options["generator_name"] = options.pop("generator", "templates")
  coco, quality = coco_open.open_coco(split, args.seed, **options)
  if quality:
    print(f"classifier: precision {quality.precision:.3f}, recall {quality.recall:.3f} "
          f"on {quality.turns:,} real turns")  # fmt: skip
  for path, option, lines in (
    (args.goals_out, "--goals-out", coco_open.goal_lines),
    (args.classify_out, "--classify-out", coco_open.classifier_lines),
  ):
    if path:
      number = coco_write.write_lines(path, option, lines(coco, split))
      print(f"written: {path}: {number:,} lines")
  if not args.out:
    return 0
  total = split.corpus.expected_dialogues(args.split)
  with progress("dialogues") as update:
    manifest, made = coco_write.write_coco(
      coco,
      split,
      args.out,
      lambda done: update("perturbing", done, total) if done % 10 == 0 else None,
      args.sheet or 0,
    )
  _print_coco(manifest, args)
  if args.sheet is not None:
    key = coco_write.write_sheet(sheet, made, args.sheet, args.seed)
    print(f"written: {sheet}: {3 * args.sheet} rows; answer key: {key}")
  return 0


def _check_outputs(args: argparse.Namespace) -> None:
  """Refuses a command that writes nothing, and a sheet without counterfactuals."""
  if not args.out and not (args.goals_out or args.classify_out):
    raise UsageError(
      "no --out",
      expected="--out DIR, --goals-out OUT or --classify-out OUT",
      fix="add --out with a new folder",
    )
  if (args.sheet_out and args.sheet is None) or (args.sheet is not None and not args.out):
    raise UsageError(
      "--sheet-out without --sheet" if args.sheet_out else "--sheet without --out",
      expected="--out DIR --sheet N, and optionally --sheet-out OUT for another location",
      fix="use both options",
    )


def _print_coco(manifest: "Manifest", args: argparse.Namespace) -> None:
  from sgdx_t5x.papers.coco.coco_write import control_folder

  counts = manifest.counts
  generated, eligible = counts["generated"], counts["eligible"]
  print(f"written: {args.out}: {generated:,} counterfactual turns of {args.split}")
  print(f"written: {control_folder(args.out)}: {counts['controls']:,} with their original goal")
  print(f"         {generated / eligible:.1%} of {eligible:,} user turns that inform a slot")
  for what, words in (("source", "source"), ("kept", "left out")):
    if counts[what]:
      print(f"         {words}: " + ", ".join(f"{n:,} {name}" for name, n in counts[what].items()))
  print("         slots: " + ", ".join(
    f"{counts[f'slots_{what}']:,} {what}" for what in ("dropped", "changed", "added")))  # fmt: skip
  if number := counts.get("slots_with_few_values"):
    print(f"         {number} slots have too few values unseen in train; other values were used")
  if not manifest.complete:
    print("PARTIAL: the split does not contain all published dialogues")
  quoted = shlex.quote
  print(f"next: sgdx checkdst verify --corpus {quoted(args.out)} --against {quoted(args.corpus)}")
