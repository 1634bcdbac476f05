"""`sgdx stats`: distances of schema variants from the original (SGD-X paper, Table 1).

examples:
  Table 1 of the paper, and the back-translations that ship with this package:
    sgdx stats --corpus sgd.zip

  The output of a command, DIR/vK/... or DIR/LANGUAGE/..., as one set:
    sgdx compose --corpus sgd.zip --paraphrases texts.jsonl --out mine
    sgdx stats --corpus sgd.zip --schemas mine

  Schemas of your own, with names:
    sgdx stats --corpus sgd.zip --schemas mine=folder other=elsewhere

A folder holds {split}/schema.json for one or more splits; its services are
compared with the original ones of the same splits. Self-BLEU is computed over
the variants of a set.
"""

import argparse
import pathlib
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.options import add_command, add_corpus
from sgdx_t5x.cli.paths import add_input, named_path
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.tables import Cell, Number, Table

if TYPE_CHECKING:
  from sgdx_t5x.corpus.corpus import Corpus
  from sgdx_t5x.corpus.schema import Schema

_GIVEN = "given"
_COLUMNS = (  # key, heading, format, format in the paper ("": not in it)
  ("slot_names_in_train", "slots", ".0%", ".0%"),
  ("intent_names_in_train", "intents", ".0%", ".0%"),
  ("indel_distance", "indel", ".3f", ".2f"),
  ("levenshtein_distance", "levensh.", ".3f", ""),
  ("bleu", "BLEU", ".1f", ".1f"),
)
_LEGEND = (
  "slots, intents: % of the names in test's unseen services that occur in train",
  'indel: 1 - ratio of names (the paper\'s "Levenshtein"); levensh.: edits / length',
  "BLEU: descriptions against the original's; self-BLEU: against other variants'",
)
_PAPER_LEGEND = "paper: SGD-X; for back-translations, those by Google Translate in section 5"


def add_parser(subparsers: Any) -> None:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  summary = "distances of schema variants, as in the paper's Table 1"
  parser = add_command(subparsers, "stats", __doc__, help=summary)
  add_corpus(parser)
  text = "folders of further schemas to compare, see below"
  add_input(parser, "--schemas", several=True, metavar="[NAME=]DIR", help=text, path=named_path)
  output.add_format(parser)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Compares and prints. Returns 0. Raises SgdxError for anything wrong in the input."""
  from sgdx_t5x.cli.progress import progress
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.variants import distances
  from sgdx_t5x.variants.variant_schemas import VariantSchemas

  corpus = open_corpus(args.corpus)
  sets: dict[str, Any] = distances.variant_sets(VariantSchemas(corpus))
  set_names = {*sets, _GIVEN}
  for name, variant, schemas in _given(args.schemas, corpus, set_names):
    if variant in sets.setdefault(name, {}):
      raise UsageError(
        f"--schemas: {variant!r} of {name!r} occurs twice",
        expected="unique names",
        fix="give one of the two another name: --schemas NAME=DIR",
      )
    sets[name][variant] = schemas
  with progress("comparisons") as update:
    report = distances.report(corpus, sets, update)
  tables = _layout(report, distinct=args.format == "csv")
  notes = (*_LEGEND, _PAPER_LEGEND) if report["paper_original"] else _LEGEND
  output.show(args.format, tables, report, notes=notes, signatures={"": report["signature"]})
  return 0


# --- schemas in folders --------------------------------------------------------------------


def _given(
  items: list[str], corpus: "Corpus", set_names: Collection[str]
) -> "Iterator[tuple[str, str, Mapping[str, Schema]]]":
  """Yields (set, variant, split -> schema) of `--schemas`; no parent has a name of `set_names`."""
  from sgdx_t5x.corpus.variants import PIVOTS

  for item in items:
    name, _, folder = item.partition("=")
    path = pathlib.Path(item)
    if folder and not path.exists():  # else the = is part of the path
      path = pathlib.Path(folder)
    else:
      name = path.resolve().name
    if schemas := _read(path, corpus):
      yield _GIVEN, name, schemas
      continue
    variants = {x.name: schemas for x in sorted(path.glob("*/")) if (schemas := _read(x, corpus))}
    # A set is named by its folder: NAME= names one wording only.
    if not variants or path != pathlib.Path(item):
      raise SgdxError(
        f"--schemas {item}: no schema in {path}"
        + ("" if path.is_dir() else ", which is not a folder"),
        expected="a folder that contains {split}/schema.json",
        available=f"schemas in {', '.join(variants)}" if variants else "",
        fix="pass that folder, or its parent as DIR, without NAME=, for all schemas in it",
      )
    name = f"./{item}" if item in set_names else item  # a set of its own
    for folder, schemas in variants.items():
      yield name, f"bt_{folder}" if folder in PIVOTS else folder, schemas


def _read(folder: pathlib.Path, corpus: "Corpus") -> "dict[str, Schema]":
  """Returns split -> schema; empty if the folder itself has none."""
  from sgdx_t5x.corpus.schema import load_schema

  schemas = {}
  for split in corpus.splits:
    file = folder / split / "schema.json"
    if file.is_file():
      schemas[split] = load_schema(file.read_bytes(), str(file))
  return schemas


# --- output --------------------------------------------------------------------------------


def _layout(report: Mapping[str, Any], distinct: bool) -> list[Table]:
  """Returns a table per set; the original is in the first. Args: distinct, see below."""
  tables = []
  paper_original = report["paper_original"]
  empty: dict[str, Any] = {"variants": {}, "average": {}, "self_bleu": None}
  for number, part in enumerate(report["sets"] or [{"name": "original", "paper": None, **empty}]):
    paper = part["paper"] or empty
    has_paper = part["paper"] is not None
    rows: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = []  # name, ours, the paper's
    if number == 0:
      has_paper = has_paper or paper_original is not None
      rows.append(("original", report["original"], paper_original or {}))
    for name, statistics in part["variants"].items():
      rows.append((name, statistics, paper["variants"].get(name, {})))
    if len(part["variants"]) > 1:
      rows.append(("average", part["average"], paper["average"]))
      rows.append(("self-BLEU", {"bleu": part["self_bleu"]}, {"bleu": paper["self_bleu"]}))
    title = part["name"]
    # In CSV, the set of v1 to v5 has the same name for all corpora, and columns have unique names.
    if title == "SGD-X" and paper_original is None and not distinct:
      title = "variants of the corpus"  # which is not SGD
    cells = tuple(_row(*row, has_paper) for row in rows)
    tables.append(Table(title, _header(has_paper, distinct), cells))
  return tables


def _header(has_paper: bool, distinct: bool) -> tuple[str, ...]:
  header = ["", "services"]
  for _, heading, _, paper_form in _COLUMNS:
    header.append(heading)
    if has_paper and paper_form:
      header.append(f"{heading}, paper" if distinct else "paper")
  return tuple(header)


def _row(
  name: str, ours: Mapping[str, Any], paper: Mapping[str, Any], has_paper: bool
) -> tuple[Cell, ...]:
  cells: list[Cell] = [name, _number(ours.get("num_services"), "d")]
  for key, _, form, paper_form in _COLUMNS:
    cells.append(_number(ours.get(key), form))
    if has_paper and paper_form:
      cells.append(_number(paper.get(key), paper_form))
  return tuple(cells)


def _number(x: float | None, form: str) -> Number:
  return Number(x, "" if x is None else format(x, form).removesuffix("%"))
