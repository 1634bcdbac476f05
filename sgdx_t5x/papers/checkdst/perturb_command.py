"""`sgdx checkdst perturb`: dialogues with new names, paraphrases, disfluency or values."""

import argparse
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.options import add_command, add_corpus, add_group, add_split
from sgdx_t5x.cli.paths import add_input, add_output

if TYPE_CHECKING:
  from sgdx_t5x.papers.checkdst.manifest import Manifest

_FILES = """\
DIR becomes a corpus in the official layout, which every command reads, with all
schemas, SPLIT/perturbation.json and SPLIT/changes.jsonl. The same seed gives
the same bytes. docs/papers/checkdst.md describes the files and the rules.
"""
_EPILOG = f"""\
examples:
  sgdx checkdst perturb ned --corpus sgd.zip --out perturbed/ned
  sgdx checkdst perturb pi --corpus sgd.zip --out perturbed/pi
  sgdx checkdst perturb sdi --corpus sgd.zip --out perturbed/sdi
  sgdx checkdst verify --corpus perturbed/ned --against sgd.zip

{_FILES}"""


def add_parser(subparsers: Any) -> None:
  """Adds `perturb` with a subcommand for each kind of perturbation."""
  kinds = add_group(subparsers, "perturb", __doc__, _EPILOG, "perturb what users say")
  ned = _add_kind(kinds, "ned", "named entities are replaced by unseen strings")
  text = "letters (default) or characters: permuted within each string; names: invented; corpus: "
  text += 'others from the split; FILE: {"city": [...]}'
  ned.add_argument("--entities", metavar="HOW", help=text)
  text = "kinds (default: titles, people, cities, stations, addresses), or FILE: "
  text += '{"Hotels_4": ["location"]}'
  ned.add_argument("--slots", metavar="HOW", help=text)

  pi = _add_kind(kinds, "pi", "users say the same in other words")
  text = "exchange (default): another user's words for the same acts; templates: the simulator's; "
  text += "table: --table; hf: back-translation"
  pi.add_argument("--provider", metavar="NAME", help=text)
  add_input(pi, "--table", metavar="FILE", help='lines {"text", "made"}')
  pi.add_argument("--pivot", metavar="CODE", help="pivot language of hf (default: zh)")
  add_input(pi, "--model", metavar="DIR", help="checkpoint of hf, see `sgdx backtranslate`")
  add_input(pi, "--model-back", metavar="DIR", help="checkpoint for the way back, if different")
  pi.add_argument("--source", metavar="CODE", help="English, as its tokenizer calls it: eng_Latn")
  pi.add_argument("--target", metavar="CODE", help="the pivot: zho_Hans")

  sdi = _add_kind(kinds, "sdi", "users speak with fillers, repeats, restarts and repairs")
  sdi.add_argument("--only", metavar="LIST", help="kinds to use: repairs,fillers,...")
  sdi.add_argument("--restart", choices=("often", "always"), help="how often (default: often)")
  add_input(sdi, "--terms", metavar="FILE", help="words and rates")

  vs = _add_kind(kinds, "vs", "values become others of the same slot")
  text = "in (default): from the split; out: invented"
  vs.add_argument("--values", metavar="HOW", help=text)


def _add_kind(kinds: Any, kind: str, text: str) -> argparse.ArgumentParser:
  """Adds the subcommand of a kind, with the options that all have. Returns its parser."""
  parser = add_command(kinds, kind, f"`sgdx checkdst perturb {kind}`: {text}.", _FILES, text)
  add_perturbing(parser)
  add_output(
    parser, "--out", required=True, metavar="DIR", help="new or empty folder to write", folder=True
  )
  parser.set_defaults(run=run, kind=kind)
  return parser


def add_perturbing(parser: argparse.ArgumentParser) -> None:
  """Adds what every kind of perturbation takes."""
  add_corpus(parser)
  add_split(parser)
  parser.add_argument("--seed", type=int, default=0, metavar="S", help="random seed (default: 0)")
  parser.add_argument(
    "--again", action="store_true", help="allow a corpus that is already perturbed"
  )


def given(args: argparse.Namespace, names: tuple[str, ...]) -> dict[str, Any]:
  """Returns those of the options that were given."""
  return {name: value for name in names if (value := getattr(args, name)) is not None}


def run(args: argparse.Namespace) -> int:
  """Writes the corpus and prints what to do next. Returns 0. Raises SgdxError for bad input."""
  from sgdx_t5x.cli.progress import progress
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.files.writing import check_folder
  from sgdx_t5x.papers.checkdst.kinds import KINDS, open_perturber
  from sgdx_t5x.papers.checkdst.split import Split
  from sgdx_t5x.papers.checkdst.write import check_again, write_perturbed

  _, option_names = KINDS[args.kind]
  options = given(args, option_names)
  if "only" in options:
    options["only"] = tuple(name.strip() for name in options["only"].split(","))
  corpus = open_corpus(args.corpus)
  split = Split(corpus, args.split)
  corpus.schema(args.split)  # raises if there is no such split
  check_folder(args.out)
  check_again(corpus, args.split, args.again, whole=True)
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
    print(f"         unchanged: {reasons}")
  if not manifest.complete:
    print("PARTIAL: the split does not contain all published dialogues")
  quoted = shlex.quote
  print(f"next: sgdx checkdst verify --corpus {quoted(args.out)} --against {quoted(args.corpus)}")
