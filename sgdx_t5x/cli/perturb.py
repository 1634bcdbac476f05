"""`sgdx perturb`: dialogues with unseen names, paraphrases, disfluent speech or other values."""

import argparse
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.options import Takes, add_command, add_corpus, add_option, add_split
from sgdx_t5x.errors import UsageError

if TYPE_CHECKING:
  from sgdx_t5x.perturb.manifest import Manifest

_EPILOG = """\
examples:
  sgdx perturb --corpus sgd.zip --kind ned --out perturbed/ned
  sgdx perturb --corpus sgd.zip --kind pi --out perturbed/pi
  sgdx perturb --corpus sgd.zip --kind sdi --out perturbed/sdi
  sgdx data verify --corpus perturbed/ned --against sgd.zip
  sgdx perturb --corpus perturbed/ned --undo --out original

kinds:
  ned  named entities become strings that nobody has seen
       --entities letters (default), characters: those of each string permuted;
       names: invented ones; corpus: others of the split; FILE: {"city": [...]}
       --slots kinds (default: titles, people, cities, stations, addresses), or
       FILE: {"Hotels_4": ["location"]}
  pi   users say the same in other words
       --provider exchange (default): another user's words for the same acts;
       templates: the simulator's; table: --table FILE, lines {"text", "made"};
       hf, google: back-translation, --pivot zh, see sgdx backtranslate
  sdi  users speak with fillers, repeats, restarts and repairs
       --only repairs,fillers,...; --restart often or always; --terms FILE
  vs   values become others of the same slot
       --values in (default: of the split) or out (invented)

DIR becomes a corpus in the official layout, which every command takes, with all
schemas, SPLIT/perturbation.json and SPLIT/changes.jsonl. The same seed gives
the same bytes. docs/checkdst.md describes the files and the rules.
"""
_OPTIONS = (
  "entities", "slots", "provider", "table", "pivot", "model_to", "model_from", "project", "only",
  "restart", "terms", "values",
)  # fmt: skip


def add_parser(subparsers: Any) -> None:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  summary = "perturb what users say: names, paraphrases, disfluency, values"
  parser = add_command(subparsers, "perturb", __doc__, _EPILOG, summary)
  add_corpus(parser)
  add_split(parser)
  what = parser.add_mutually_exclusive_group(required=True)
  add_option(what, Takes.TEXT, "--kind", help="ned, pi, sdi or vs, see below")
  what.add_argument("--undo", action="store_true", help="write what a perturbed corpus was before")
  parser.add_argument("--seed", type=int, default=0, metavar="S", help="random seed (default: 0)")
  add_option(
    parser, Takes.FOLDER, "--out", required=True, metavar="DIR", help="new or empty folder to write"
  )
  texts = parser.add_argument_group("options of a kind, see below")
  add_option(texts, Takes.TEXT, "--entities", metavar="HOW", help="ned: the new strings")
  add_option(texts, Takes.TEXT, "--slots", metavar="HOW", help="ned: whose values are replaced")
  add_option(texts, Takes.TEXT, "--provider", metavar="NAME", help="pi: who finds other words")
  add_option(texts, Takes.INPUT, "--table", metavar="FILE", help="pi: texts and paraphrases")
  add_option(texts, Takes.TEXT, "--pivot", metavar="CODE", help="pi: language of hf and google")
  add_option(texts, Takes.INPUT, "--model-to", metavar="DIR", help="pi: checkpoint of hf")
  add_option(texts, Takes.INPUT, "--model-from", metavar="DIR", help="pi: the way back, if another")
  add_option(texts, Takes.TEXT, "--project", metavar="ID", help="pi: project of google")
  add_option(texts, Takes.TEXT, "--only", metavar="LIST", help="sdi: some kinds of disfluency")
  add_option(texts, Takes.TEXT, "--restart", choices=("often", "always"), help="sdi: how many")
  add_option(texts, Takes.INPUT, "--terms", metavar="FILE", help="sdi: words and rates")
  add_option(texts, Takes.TEXT, "--values", metavar="HOW", help="vs: the new values")
  parser.add_argument(
    "--again", action="store_true", help="allow a corpus that is perturbed already"
  )
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Writes the corpus, says what to do next. Returns 0. Raises SgdxError for bad input."""
  from sgdx_t5x.cli.progress import progress
  from sgdx_t5x.corpora import open_corpus
  from sgdx_t5x.files import check_folder
  from sgdx_t5x.perturb.kinds import open_perturber
  from sgdx_t5x.perturb.split import Split
  from sgdx_t5x.perturb.write import check_again, write_original, write_perturbed

  options = {name: value for name in _OPTIONS if (value := getattr(args, name)) is not None}
  if "only" in options:
    options["only"] = tuple(name.strip() for name in options["only"].split(","))
  corpus = open_corpus(args.corpus)
  split = Split(corpus, args.split)
  corpus.schema(args.split)  # or there is no such split
  check_folder(args.out)
  if args.undo:
    if options:
      raise UsageError(
        f"--undo with --{next(iter(options))}",
        expected="--undo alone: perturbation.json says what was done",
        fix="leave the options out",
      )
    files = write_original(split, args.out)
    print(f"written: {args.out}: {files.total} files, {files.equal} of them as they were")
    return 0
  check_again(corpus, args.split, args.again)
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
    print(f"         kept as they were: {reasons}")
  if not manifest.complete:
    print("PARTIAL: the split lacks dialogues that were published")
  quoted = shlex.quote
  print(f"next: sgdx data verify --corpus {quoted(args.out)} --against {quoted(args.corpus)}")
