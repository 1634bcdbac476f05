"""`sgdx perturb`: dialogues with new names, paraphrases, disfluent speech, new values or goals."""

import argparse
import os
import pathlib
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.options import add_command, add_corpus, add_split
from sgdx_t5x.cli.paths import add_input, add_output
from sgdx_t5x.errors import UsageError

if TYPE_CHECKING:
  from sgdx_t5x.papers.checkdst.manifest import Manifest
  from sgdx_t5x.papers.checkdst.split import Split

_EPILOG = """\
examples:
  sgdx perturb --corpus sgd.zip --kind ned --out perturbed/ned
  sgdx perturb --corpus sgd.zip --kind pi --out perturbed/pi
  sgdx perturb --corpus sgd.zip --kind sdi --out perturbed/sdi
  sgdx perturb --corpus sgd.zip --kind coco --slots rare --out perturbed/coco
  sgdx data verify --corpus perturbed/ned --against sgd.zip

kinds:
  ned  named entities are replaced by unseen strings
       --entities letters (default) or characters: permuted within each string;
       names: invented; corpus: others from the split; FILE: {"city": [...]}
       --slots kinds (default: titles, people, cities, stations, addresses), or
       FILE: {"Hotels_4": ["location"]}
  pi   users say the same in other words
       --provider exchange (default): another user's words for the same acts;
       templates: the simulator's; table: --table FILE, lines {"text", "made"};
       hf, google: back-translation, --pivot (default: zh), see sgdx
       backtranslate
  sdi  users speak with fillers, repeats, restarts and repairs
       --only repairs,fillers,...; --restart often (default) or always;
       --terms FILE
  vs   values become others of the same slot
       --values in (default): from the split; out: invented
  coco the user says something else in one turn: a slot is dropped, others are
       changed or added; each turn becomes a dialogue that ends with it, and
       DIR_ori is the control: the same generator with the original goal
       --slots freq (default), neutral, rare: slots that may be added to a turn
       --values out (default): out-test, or out-train for train; in; or FILE
       --generator templates (default), exchange, or file: --candidates FILE,
       answers to --goals-out; --classifier FILE, answers to --classify-out
       --plus substitutes values where no utterance is found

DIR becomes a corpus in the official layout, which every command reads, with all
schemas, SPLIT/perturbation.json and SPLIT/changes.jsonl. The same seed gives
the same bytes. docs/papers/checkdst.md describes the files and the rules, docs/papers/coco.md
those of coco.
"""
_COCO_OUTPUTS = ("goals_out", "classify_out", "sheet", "sheet_out")


def add_parser(subparsers: Any) -> None:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  summary = "perturb what users say: names, paraphrases, disfluency, values"
  parser = add_command(subparsers, "perturb", __doc__, _EPILOG, summary)
  add_corpus(parser)
  add_split(parser)
  parser.add_argument("--kind", required=True, help="ned, pi, sdi, vs or coco, see below")
  parser.add_argument("--seed", type=int, default=0, metavar="S", help="random seed (default: 0)")
  add_output(parser, "--out", metavar="DIR", help="new or empty folder to write", folder=True)
  texts = parser.add_argument_group("options of a kind, see below")
  texts.add_argument("--entities", metavar="HOW", help="ned: source of new strings")
  texts.add_argument(
    "--slots",
    metavar="HOW",
    help="ned: slots to perturb; coco: slots to add",
  )
  texts.add_argument("--provider", metavar="NAME", help="pi: source of paraphrases")
  add_input(texts, "--table", metavar="FILE", help="pi: texts and paraphrases")
  texts.add_argument("--pivot", metavar="CODE", help="pi: pivot language of hf and google")
  add_input(texts, "--model-to", metavar="DIR", help="pi: checkpoint of hf")
  add_input(
    texts,
    "--model-from",
    metavar="DIR",
    help="pi: checkpoint for the way back, if different",
  )
  texts.add_argument("--project", metavar="ID", help="pi: Google Cloud project to bill")
  texts.add_argument("--only", metavar="LIST", help="sdi: kinds of disfluency to use")
  texts.add_argument("--restart", choices=("often", "always"), help="sdi: how often users restart")
  add_input(texts, "--terms", metavar="FILE", help="sdi: words and rates")
  texts.add_argument("--values", metavar="HOW", help="vs, coco: source of new values")
  _add_coco(parser)
  parser.add_argument(
    "--again", action="store_true", help="allow a corpus that is already perturbed"
  )
  parser.set_defaults(run=run)


def _add_coco(parser: argparse.ArgumentParser) -> None:
  group = parser.add_argument_group("options of coco, see below")
  group.add_argument("--generator", metavar="NAME", help="source of utterances for a goal")
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
    group,
    "--sheet-out",
    metavar="OUT",
    help="file for the sheet of --sheet (default: DIR.csv)",
  )


def run(args: argparse.Namespace) -> int:
  """Writes the corpus and prints what to do next. Returns 0. Raises SgdxError for bad input."""
  from sgdx_t5x.cli.progress import progress
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.files import check_folder
  from sgdx_t5x.papers.checkdst.kinds import OPTIONS, check_options, open_perturber
  from sgdx_t5x.papers.checkdst.split import Split
  from sgdx_t5x.papers.checkdst.write import check_again, write_perturbed

  names = dict.fromkeys(name for names in OPTIONS.values() for name in names)
  options = {name: value for name in names if (value := getattr(args, name)) is not None}
  if "only" in options:
    options["only"] = tuple(name.strip() for name in options["only"].split(","))
  _check_outputs(args)
  corpus = open_corpus(args.corpus)
  split = Split(corpus, args.split)
  corpus.schema(args.split)  # raises if there is no such split
  if args.out:
    check_folder(args.out)
  check_again(corpus, args.split, args.again, whole=args.kind != "coco")
  check_options(args.kind, options)
  if args.kind == "coco":
    return _run_coco(args, split, options)
  perturber = open_perturber(args.kind, split, args.seed, options)
  total = corpus.expected_dialogues(args.split)
  with progress("dialogues") as update:
    manifest = write_perturbed(
      perturber,
      split,
      args.seed,
      args.out,
      lambda done: update("perturbing", done, total) if done % 10 == 0 else None,
    )
  _print_result(manifest, args)
  return 0


def _check_outputs(args: argparse.Namespace) -> None:
  """Refuses outputs of coco for other kinds, and a command that writes nothing."""
  given = [name for name in _COCO_OUTPUTS if getattr(args, name) is not None]
  if given and args.kind != "coco":
    raise UsageError(
      f"--{given[0].replace('_', '-')} without --kind coco",
      expected="--kind coco, which generates goals",
      fix="leave it out",
    )
  if not args.out and not (args.goals_out or args.classify_out):
    raise UsageError(
      "no --out",
      expected="--out DIR, or, with --kind coco, --goals-out OUT or --classify-out OUT",
      fix="add --out with a new folder",
    )
  if (args.sheet_out and args.sheet is None) or (args.sheet is not None and not args.out):
    raise UsageError(
      "--sheet-out without --sheet" if args.sheet_out else "--sheet without --out",
      expected="--out DIR --sheet N, and optionally --sheet-out OUT for another location",
      fix="use both options",
    )


def _run_coco(args: argparse.Namespace, split: "Split", options: dict[str, Any]) -> int:
  """Writes goals, utterances to classify and counterfactuals, as requested. Returns 0."""
  from sgdx_t5x.cli.options import check_least
  from sgdx_t5x.cli.progress import progress
  from sgdx_t5x.files import check_folder
  from sgdx_t5x.papers.coco import coco_open, coco_write

  if args.out:
    check_folder(coco_write.control_folder(args.out))
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
  print(f"next: sgdx data verify --corpus {quoted(args.out)} --against {quoted(args.corpus)}")


def _print_result(manifest: "Manifest", args: argparse.Namespace) -> None:
  counts = dict(manifest.counts)
  kept: Mapping[str, int] = counts.pop("kept")
  frames, of = counts.pop("frames_changed"), counts.pop("frames")
  turns, of_turns = counts.pop("turns_changed"), counts.pop("user_turns")
  print(f"written: {args.out}: {counts.pop('dialogues'):,} dialogues of {args.split}")
  print(f"         {frames:,} of {of:,} frames changed, {turns:,} of {of_turns:,} user turns")
  for name, number in counts.items():
    shown = f"{number:,}" if isinstance(number, int) else f"{number:.3f}"
    print(f"         {name.replace('_', ' ')}: {shown}")
  if kept:
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in kept.items())
    print(f"         unchanged: {reasons}")
  if not manifest.complete:
    print("PARTIAL: the split does not contain all published dialogues")
  quoted = shlex.quote
  print(f"next: sgdx data verify --corpus {quoted(args.out)} --against {quoted(args.corpus)}")
