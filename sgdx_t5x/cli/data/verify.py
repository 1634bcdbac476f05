"""`sgdx data verify`: reads a whole corpus, checks it, and reports what it holds.

example:
  sgdx data verify --corpus sgd.zip

Schemas must align by position, and dialogues must follow the annotation rules
that SGD follows: see docs/dialogue-checks.md.
"""

import argparse
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.options import add_command, add_corpus
from sgdx_t5x.errors import with_document_paths

if TYPE_CHECKING:
  from sgdx_t5x.corpus.annotation import AnnotationWarning
  from sgdx_t5x.corpus.corpus import Corpus
  from sgdx_t5x.tables import Table


def add_verb(verbs: Any) -> None:
  """Adds `verify` to the verbs of `sgdx data`."""
  summary = "read a whole corpus, check it, report what it holds"
  parser = add_command(verbs, "verify", __doc__, help=summary)
  add_corpus(parser)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Runs the command. Returns 0. Raises SgdxError for anything wrong in the input."""
  from sgdx_t5x.cli import output
  from sgdx_t5x.corpus.annotation_rules import WARNINGS
  from sgdx_t5x.corpus.corpus import check_schemas
  from sgdx_t5x.corpus.opening import open_corpus

  corpus = open_corpus(args.corpus)
  services = check_schemas(corpus)
  warnings: dict[str, dict[str, AnnotationWarning]] = {split: {} for split in corpus.splits}
  rows = [_split_row(corpus, split, warnings[split]) for split in corpus.splits]
  violated: set[str] = set().union(*warnings.values())
  rules = [rule for rule in WARNINGS if rule in violated]  # in the order of the documentation
  tables = [splits_table(rows, corpus.name)]
  if rules:
    tables.append(_warnings_table(warnings, rules))
  notes = (
    *_notes(corpus, rules),
    f"schema variants, all aligned by position: {', '.join(services)}",
    f"corpus {corpus.name}, checksum {corpus.checksum()}",
  )
  output.show("text", tables, {}, notes=notes)
  return 0


def _notes(corpus: "Corpus", rules: Sequence[str]) -> Iterator[str]:
  from sgdx_t5x.corpus.annotation_rules import ERRORS, WARNINGS
  from sgdx_t5x.corpus.corpus import SIMULATION

  for rule in rules:
    yield f"rule {rule}: {WARNINGS[rule]}"
  simulated = [split for split in corpus.splits if corpus.has(SIMULATION.format(split=split))]
  if simulated and rules:
    yield (
      f"{', '.join(simulated)}: simulated like SGD, so these warnings are expected; errors would "
      "not be."
    )
  yield with_document_paths(
    f"annotation errors: none ({len(ERRORS)} rules, see docs/dialogue-checks.md)"
  )
  if not rules:
    yield f"annotation warnings: none ({len(WARNINGS)} rules)"


def _split_row(
  corpus: "Corpus", split: str, warnings: "dict[str, AnnotationWarning]"
) -> dict[str, Any]:
  from sgdx_t5x.cli.progress import track
  from sgdx_t5x.corpus.annotation import validate_annotation
  from sgdx_t5x.corpus.corpus import count

  dialogues = corpus.dialogues(split, validate_annotation(corpus.schema(split), warnings))
  total = corpus.expected_dialogues(split)
  sizes = count(track(dialogues, f"checking {split}", "dialogues", total))
  return {
    "split": split,
    **dataclasses.asdict(sizes),
    "services": len(corpus.schema(split)),
    "complete": corpus.is_complete(split, sizes.dialogues),
  }


def splits_table(rows: Sequence[Mapping[str, Any]], corpus: str) -> "Table":
  """Returns a table of splits, with their state if any is PARTIAL; `sgdx data prepare` has it too.

  Args:
    rows: per split {"split", "dialogues", "user_turns", "frames", "services", "complete"};
      complete: see `Corpus.is_complete`.
    corpus: its name; of "sgd" it is known how many dialogues were published.
  """
  from sgdx_t5x.corpus.corpus import PUBLISHED_DIALOGUES
  from sgdx_t5x.tables import Table, count

  header = ("split", "dialogues", "user turns", "frames", "services")
  is_partial = not all(row["complete"] for row in rows)
  lines = []
  for row in rows:
    state = "complete" if row["complete"] else "PARTIAL"
    if not row["complete"] and corpus == "sgd":
      state += f": {PUBLISHED_DIALOGUES[row['split']]:,} published"
    numbers = [count(row[heading.replace(" ", "_")]) for heading in header[1:]]
    lines.append((row["split"], *numbers, *([state] * is_partial)))
  return Table("splits", header + ("state",) * is_partial, tuple(lines))


def _warnings_table(
  warnings: "Mapping[str, Mapping[str, AnnotationWarning]]", rules: Sequence[str]
) -> "Table":
  """Returns violations per split of rules that real SGD violates as well."""
  from sgdx_t5x.tables import Table, count

  rows = []
  for rule in rules:
    numbers, places = [], []
    for split, of_split in warnings.items():
      warning = of_split.get(rule)
      numbers.append(count(None if warning is None else warning.count))
      if warning is not None:
        places.append(f"{split} {warning.first}")
    rows.append((rule, *numbers, places[0]))
  title = "annotation warnings: violations of rules that real SGD violates as well"
  return Table(title, ("", *warnings, "first"), tuple(rows))
