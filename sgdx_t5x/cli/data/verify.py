"""`sgdx data verify`: reads a whole corpus, checks it, and reports what it holds."""

import argparse
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.data.corpus_report import corpus_report, splits_table
from sgdx_t5x.cli.options import add_command, add_corpus
from sgdx_t5x.cli.progress import Update, progress
from sgdx_t5x.corpus.annotation import AnnotationWarning, validate_annotation
from sgdx_t5x.corpus.annotation_rules import ERRORS, WARNINGS
from sgdx_t5x.corpus.corpus import SIMULATION, Corpus, check_schemas, count
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.errors import with_document_paths
from sgdx_t5x.tables import Table
from sgdx_t5x.tables import count as number

_EPILOG = """\
examples:
  sgdx data verify --corpus sgd.zip
  sgdx data verify --corpus my_corpus --format json

Schemas must align by position, and dialogues must follow the annotation rules
that SGD follows: see docs/dialogue-checks.md.
"""


def add_verb(verbs: Any) -> None:
  """Adds `verify` to the verbs of `sgdx data`."""
  summary = "read a whole corpus, check it, report what it holds"
  parser = add_command(verbs, "verify", __doc__, _EPILOG, summary)
  add_corpus(parser)
  output.add_format(parser)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Runs the command. Returns 0. Raises SgdxError for anything wrong in the input."""
  corpus = open_corpus(args.corpus)
  services = check_schemas(corpus)
  warnings: dict[str, dict[str, AnnotationWarning]] = {split: {} for split in corpus.splits}
  with progress("dialogues") as update:
    rows = [_split_row(corpus, split, warnings[split], update) for split in corpus.splits]
  rules = [rule for rule in WARNINGS if any(rule in found for found in warnings.values())]
  report = corpus_report(corpus.name, corpus.checksum(), services, rows)
  report["remarks"] = {
    rule: {s: dataclasses.asdict(found[rule]) for s, found in warnings.items() if rule in found}
    for rule in rules
  }
  tables = [splits_table(rows, corpus.name)]
  if rules:
    tables.append(_warnings_table(warnings, rules))
  output.show(
    args.format,
    tables,
    report,
    notes=(
      *(f"rule {rule}: {WARNINGS[rule]}" for rule in rules),
      *_simulated(corpus, rules),
      with_document_paths(
        f"annotation errors: none ({len(ERRORS)} rules, see docs/dialogue-checks.md)"
      ),
      *(() if rules else (f"annotation warnings: none ({len(WARNINGS)} rules)",)),
      f"schema variants, all aligned by position: {', '.join(services)}",
      f"corpus {corpus.name}, checksum {corpus.checksum()}",
    ),
  )
  return 0


def _simulated(corpus: Corpus, rules: Sequence[str]) -> list[str]:
  """Explains why a corpus of `sgdx simulate` has warnings, which are not mistakes."""
  names = corpus.source.names()
  splits = [split for split in corpus.splits if SIMULATION.format(split=split) in names]
  if not (splits and rules):
    return []
  return [
    f"{', '.join(splits)}: simulated. The simulator imitates SGD here, so these warnings are "
    "expected; errors would not be."
  ]


def _split_row(
  corpus: Corpus, split: str, warnings: dict[str, AnnotationWarning], update: Update
) -> dict[str, Any]:
  validate, checked = validate_annotation(corpus.schema(split), warnings), itertools.count(1)
  total = corpus.expected_dialogues(split)

  def check(dialogue: Dialogue, schema: Schema, origin: str) -> None:
    validate(dialogue, schema, origin)
    if (done := next(checked)) % 10 == 0:
      update(f"checking {split}", done, total)

  found = count(corpus, split, check)
  return {
    "split": split,
    "dialogues": found.dialogues,
    "user_turns": found.user_turns,
    "frames": found.frames,
    "services": len(corpus.schema(split)),
    "complete": corpus.is_complete(split, found.dialogues),
  }


def _warnings_table(
  warnings: Mapping[str, Mapping[str, AnnotationWarning]], rules: Sequence[str]
) -> Table:
  """Returns violations per split of rules that real SGD violates as well."""
  rows = []
  for rule in rules:
    numbers = (number(found[rule].count if rule in found else None) for found in warnings.values())
    first = next(f"{split} {r[rule].first}" for split, r in warnings.items() if rule in r)
    rows.append((rule, *numbers, first))
  title = "annotation warnings: violations of rules that real SGD violates as well"
  return Table(title, ("", *warnings, "first"), tuple(rows))
