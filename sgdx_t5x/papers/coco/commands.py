"""`sgdx coco perturb`: dialogues in which users have another goal in one turn."""

import argparse
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.options import add_command, add_group
from sgdx_t5x.cli.paths import add_input, add_output
from sgdx_t5x.errors import UsageError
from sgdx_t5x.papers.checkdst.perturb_command import add_perturbing, open_split, print_next

if TYPE_CHECKING:
  from sgdx_t5x.corpus.manifest import Manifest

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
  text = "slots that may be added to a turn, by how often users combine them (default: freq)"
  parser.add_argument("--slots", choices=("freq", "neutral", "rare"), default="freq", help=text)
  text = "new values: invented, or others of the split (default: out)"
  parser.add_argument("--values", choices=("out", "in"), default="out", help=text)
  names = ("templates", "exchange", "file")
  text = "source of utterances; file: --candidates (default: templates)"
  parser.add_argument("--generator", choices=names, default="templates", help=text)
  add_input(parser, "--candidates", metavar="FILE", help="utterances from a model")
  text = "substitute values where no utterance is found (CoCo+)"
  parser.add_argument("--plus", action="store_true", help=text)
  add_input(parser, "--classifier", metavar="FILE", help="answers of a classifier, to filter")
  add_output(parser, "--goals-out", metavar="OUT", help="write the goals for a model to answer")
  add_output(parser, "--classify-out", metavar="OUT", help="write the utterances to classify")
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Writes goals, utterances to classify and counterfactuals, as requested. Returns 0."""
  from sgdx_t5x.cli.progress import progress
  from sgdx_t5x.files.writing import check_folder
  from sgdx_t5x.papers.coco import coco_write
  from sgdx_t5x.papers.coco.coco import classifier_lines, goal_lines, open_coco

  if not (args.out or args.goals_out or args.classify_out):
    raise UsageError(
      "no --out",
      expected="--out DIR, --goals-out OUT or --classify-out OUT",
      fix="add --out with a new folder",
    )
  if (args.generator == "file") != bool(args.candidates):
    raise UsageError(
      f"--generator {args.generator} {'with' if args.candidates else 'without'} --candidates",
      expected="both --generator file and --candidates FILE, or neither",
      fix="write the goals with --goals-out and have a model answer them, or use templates",
    )
  split = open_split(args)
  if args.out:
    check_folder(args.out)
    check_folder(coco_write.control_folder(args.out))
  coco, quality = open_coco(split, args)
  if quality:
    print(f"classifier: precision {quality.precision:.3f}, recall {quality.recall:.3f} "
          f"on {quality.turns:,} real turns")  # fmt: skip
  for path, option, lines in (
    (args.goals_out, "--goals-out", goal_lines),
    (args.classify_out, "--classify-out", classifier_lines),
  ):
    if path:
      number = coco_write.write_lines(path, option, lines(coco, split))
      print(f"written: {path}: {number:,} lines")
  if args.out:
    total = split.corpus.expected_dialogues(args.split)
    with progress("dialogues") as update:
      on_dialogue = functools.partial(update, "perturbing", total=total)
      manifest = coco_write.write_coco(coco, split, args.out, on_dialogue)
    _print_coco(manifest, args)
  return 0


def _listed(numbers: Mapping[str, int]) -> str:
  return ", ".join(f"{number:,} {name}" for name, number in numbers.items())


def _print_coco(manifest: "Manifest", args: argparse.Namespace) -> None:
  from sgdx_t5x.papers.coco.coco_write import control_folder

  counts = manifest.counts
  generated, eligible = counts["generated"], counts["eligible"]
  print(f"written: {args.out}: {generated:,} counterfactual turns of {args.split}")
  print(f"written: {control_folder(args.out)}: {counts['controls']:,} with their original goal")
  print(f"         {generated / eligible:.1%} of {eligible:,} user turns that inform a slot")
  slots = {edit: counts[f"slots_{edit}"] for edit in ("dropped", "changed", "added")}
  for words, numbers in (("source", counts["source"]), ("left out", counts["kept"])):
    if numbers:
      print(f"         {words}: {_listed(numbers)}")
  print(f"         slots: {_listed(slots)}")
  if number := counts.get("slots_with_few_values"):
    print(f"         {number} slots have too few values unseen in train; other values were used")
  print_next(manifest, args)
