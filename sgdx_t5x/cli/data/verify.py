"""`sgdx data verify`: reads a whole corpus and reports what is there."""

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.data.corpus_report import corpus_report, splits_table
from sgdx_t5x.corpora import SAMPLE, open_corpus
from sgdx_t5x.data.annotation import ERRORS, WARNINGS, AnnotationWarning, validate_annotation
from sgdx_t5x.data.corpus import Corpus, check_schemas, count
from sgdx_t5x.errors import with_document_paths
from sgdx_t5x.tables import Table
from sgdx_t5x.tables import count as number


def add_verb(verbs: Any, text: Mapping[str, Any]) -> None:
  """Adds `verify` to `sgdx data`. Args: verbs, of `add_subparsers`; text, for its help."""
  parser = verbs.add_parser("verify", help="read everything, report what is there", **text)
  where = parser.add_mutually_exclusive_group(required=True)
  where.add_argument("--archive", metavar="FILE", help="the official archive (zip), or its folder")
  where.add_argument("--sample", action="store_true", help="the embedded sample corpus")
  output.add_format(parser)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Runs the command. Returns 0. Raises SgdxError for anything wrong in the input."""
  corpus = open_corpus(SAMPLE if args.sample else args.archive)
  services = check_schemas(corpus)
  remarks: dict[str, dict[str, AnnotationWarning]] = {split: {} for split in corpus.splits}
  rows = [_split_row(corpus, split, remarks[split]) for split in corpus.splits]
  rules = [rule for rule in WARNINGS if any(rule in found for found in remarks.values())]
  report = corpus_report(corpus.name, corpus.checksum(), services, rows)
  report["remarks"] = {
    rule: {s: dataclasses.asdict(found[rule]) for s, found in remarks.items() if rule in found}
    for rule in rules
  }
  output.show(
    args.format,
    [splits_table(rows, corpus.name), *([_remarks_table(remarks, rules)] if rules else [])],
    report,
    notes=(
      *(f"{rule}: {WARNINGS[rule]}" for rule in rules),
      with_document_paths(f"annotation: {len(ERRORS)} rules kept (docs/dialogue-checks.md)"),
      *(() if rules else (f"remarks: none of {len(WARNINGS)}",)),
      f"schema versions, all aligned by position: {', '.join(services)}",
      f"corpus {corpus.name}, checksum {corpus.checksum()}",
    ),
  )
  return 0


def _split_row(corpus: Corpus, split: str, remarks: dict[str, AnnotationWarning]) -> dict[str, Any]:
  found = count(corpus, split, validate_annotation(corpus.schema(split), remarks))
  return {
    "split": split,
    "dialogues": found.dialogues,
    "user_turns": found.user_turns,
    "frames": found.frames,
    "services": len(corpus.schema(split)),
    "complete": corpus.is_complete(split, found.dialogues),
  }


def _remarks_table(
  remarks: Mapping[str, Mapping[str, AnnotationWarning]], rules: Sequence[str]
) -> Table:
  """How often each split breaks a rule that real SGD breaks too."""
  rows = []
  for rule in rules:
    numbers = (number(found[rule].count if rule in found else None) for found in remarks.values())
    first = next(f"{split} {r[rule].first}" for split, r in remarks.items() if rule in r)
    rows.append((rule, *numbers, first))
  title = "remarks: how often these rules are broken, as in real SGD too"
  return Table(title, ("", *remarks, "first"), tuple(rows))
