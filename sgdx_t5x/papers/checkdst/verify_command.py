"""`sgdx checkdst verify`: tests what a perturbation must not change."""

import argparse
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.options import add_command, add_corpus
from sgdx_t5x.cli.paths import add_input, corpus_path
from sgdx_t5x.cli.progress import Update, progress
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.tables import Table
from sgdx_t5x.tables import count as number

if TYPE_CHECKING:
  from sgdx_t5x.papers.checkdst.invariants import Comparison

_EPILOG = """\
examples:
  sgdx checkdst verify --corpus perturbed/ned --against sgd.zip

`sgdx data verify` tests the annotation of any corpus; this command compares a
perturbed one with its original: see docs/papers/checkdst.md.
"""

_COMPARED = (
  "not said: entity values that no utterance has. "
  "leaks: replaced strings that their dialogue still has."
)


def add_parser(verbs: Any) -> None:
  """Adds the subcommand to those of `sgdx checkdst`."""
  text = "compare a perturbed corpus with its original"
  parser = add_command(verbs, "verify", __doc__, _EPILOG, text)
  add_corpus(parser)
  text = "corpus that --corpus was made from"
  add_input(parser, "--against", metavar="CORPUS", required=True, help=text, path=corpus_path)
  output.add_format(parser)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Compares and prints. Returns 0. Raises SgdxError for what does not hold."""
  corpus = open_corpus(args.corpus)
  compared = _compared(corpus, _originals(corpus, args.against))
  output.show(
    args.format,
    [_compared_table(compared)],
    {"against": {split: _compared_json(found) for split, found in compared.items()}},
    notes=(
      *(
        f"{split}: all invariants of {found.manifest.kind} hold, compared with {args.against}"
        for split, found in compared.items()
      ),
      _COMPARED,
    ),
  )
  return 0


def _originals(corpus: Corpus, against: str) -> "dict[str, Corpus]":
  """Returns split -> original of the splits that were perturbed. Raises SgdxError."""
  from sgdx_t5x.papers.checkdst.invariants import check_original

  original = open_corpus(against)
  splits = [split for split in corpus.splits if corpus.perturbed(split)] or corpus.splits[-1:]
  for split in splits:
    check_original(corpus, original, split)
  return dict.fromkeys(splits, original)


def _compared(corpus: Corpus, originals: Mapping[str, Corpus]) -> "dict[str, Comparison]":
  """Compares perturbed splits with their original. Raises SgdxError for what does not hold."""
  from sgdx_t5x.papers.checkdst.invariants import compare

  found = {}
  with progress("dialogues") as update:
    for split, original in originals.items():
      total = corpus.expected_dialogues(split)
      on_dialogue = functools.partial(_show, update, f"comparing {split}", total)
      found[split] = compare(corpus, original, split, on_dialogue)
  return found


def _show(update: Update, task: str, total: int | None, done: int) -> None:
  if done % 10 == 0:
    update(task, done, total)


def _compared_json(found: "Comparison") -> dict[str, Any]:
  fields = ("dialogues", "files", "values", "leaks")
  return {
    "kind": found.manifest.kind,
    **{name: getattr(found, name) for name in fields},
    "unsaid": {"original": found.unsaid[0], "perturbed": found.unsaid[1]},
  }


def _compared_table(compared: "Mapping[str, Comparison]") -> Table:
  rows = (
    (
      split,
      number(found.dialogues),
      number(found.values),
      number(found.unsaid[1]),
      number(found.leaks),
    )
    for split, found in compared.items()
  )
  columns = ("split", "dialogues", "entity values", "not said", "leaks")
  return Table("compared with the original", columns, tuple(rows))
