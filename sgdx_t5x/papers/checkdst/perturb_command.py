"""`sgdx checkdst perturb`: dialogues with new names, paraphrases, disfluency or values.

kinds:
  ned  named entities are replaced by unseen strings
  pi   users say the same in other words
  sdi  users speak with fillers, repeats, restarts and repairs
  vs   values become others of the same slot

example:
  sgdx checkdst perturb ned --corpus sgd.zip --out perturbed/ned

DIR becomes a corpus in the official layout, which every command reads, with all
schemas, SPLIT/perturbation.json and SPLIT/changes.jsonl. The same seed gives
the same bytes. docs/papers/checkdst.md describes the files and the rules.
"""

import argparse
import functools
import shlex
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.options import add_command, add_corpus, add_split
from sgdx_t5x.cli.paths import add_output
from sgdx_t5x.errors import UsageError
from sgdx_t5x.papers.checkdst.register import PERTURBATIONS

if TYPE_CHECKING:
  from sgdx_t5x.corpus.manifest import Manifest
  from sgdx_t5x.papers.checkdst.split import Split

_OPTIONS = {"entities": "ned", "provider": "pi"}  # option -> its kind


def add_parser(subparsers: Any) -> None:
  """Adds `perturb`."""
  parser = add_command(subparsers, "perturb", __doc__)
  kinds = tuple(PERTURBATIONS)
  parser.add_argument("kind", choices=kinds, metavar="KIND", help=", ".join(kinds))
  add_perturbing(parser)
  add_output(
    parser, "--out", required=True, metavar="DIR", help="new or empty folder to write", folder=True
  )
  text = "of ned: letters (default) or characters, permuted within each string; names, invented"
  parser.add_argument("--entities", choices=("letters", "characters", "names"), help=text)
  text = "of pi: exchange (default), another user's words for the same acts; templates"
  parser.add_argument("--provider", choices=("exchange", "templates"), help=text)
  parser.set_defaults(run=run)


def add_perturbing(parser: argparse.ArgumentParser) -> None:
  """Adds what every kind of perturbation takes."""
  add_corpus(parser)
  add_split(parser)
  parser.add_argument("--seed", type=int, default=0, metavar="S", help="random seed (default: 0)")


def open_split(args: argparse.Namespace) -> "Split":
  """Opens what is perturbed. Raises SgdxError: no such split, or one that is perturbed already."""
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.papers.checkdst.split import Split

  split = Split(open_corpus(args.corpus), args.split)
  split.schema  # noqa: B018  # raises if there is no such split
  if kinds := split.corpus.perturbed(args.split):
    raise UsageError(
      f"{split.corpus.origin}: {args.split} is already perturbed ({', '.join(kinds)})",
      expected="the original corpus",
      fix="pass the original",
    )
  return split


def run(args: argparse.Namespace) -> int:
  """Writes the corpus and prints what to do next. Returns 0. Raises SgdxError for bad input."""
  from sgdx_t5x.cli.progress import progress
  from sgdx_t5x.files.writing import check_folder
  from sgdx_t5x.papers.checkdst.kinds import KINDS
  from sgdx_t5x.papers.checkdst.write import write_perturbed

  options = {name: getattr(args, name) for name in _OPTIONS if getattr(args, name) is not None}
  for name in options:
    if _OPTIONS[name] != args.kind:
      raise UsageError(
        f"{args.kind} has no option --{name}",
        expected=f"--{name} with {_OPTIONS[name]}",
        fix="leave it out",
      )
  split = open_split(args)
  check_folder(args.out)
  perturber = KINDS[args.kind](split, args.seed, **options)
  total = split.corpus.expected_dialogues(args.split)
  with progress("dialogues") as update:
    on_dialogue = functools.partial(update, "perturbing", total=total)
    manifest = write_perturbed(perturber, split, args.seed, args.out, on_dialogue)
  _print_result(manifest, args)
  return 0


def _print_result(manifest: "Manifest", args: argparse.Namespace) -> None:
  counts = dict(manifest.counts)
  unchanged = counts.pop("kept")
  frames, total = counts.pop("frames_changed"), counts.pop("frames")
  turns, of_turns = counts.pop("turns_changed"), counts.pop("user_turns")
  print(f"written: {args.out}: {counts.pop('dialogues'):,} dialogues of {args.split}")
  print(f"         {frames:,} of {total:,} frames changed, {turns:,} of {of_turns:,} user turns")
  for name, number in counts.items():
    text = f"{number:,}" if isinstance(number, int) else f"{number:.3f}"
    print(f"         {name.replace('_', ' ')}: {text}")
  if unchanged:
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in unchanged.items())
    print(f"         unchanged: {reasons}")
  print_next(manifest, args)


def print_next(manifest: "Manifest", args: argparse.Namespace) -> None:
  """Prints whether the set is partial, and what to do next."""
  if not manifest.complete:
    print("PARTIAL: the split does not contain all published dialogues")
  quoted = shlex.quote
  print(f"next: sgdx checkdst verify --corpus {quoted(args.out)} --against {quoted(args.corpus)}")
