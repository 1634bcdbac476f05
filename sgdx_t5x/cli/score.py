"""`sgdx score`: official metrics and schema sensitivity of any tracker's predictions.

examples:
  Predictions for the original schemas and the five variants of SGD-X:
    sgdx score --corpus sgd.zip --split test \\
      --predictions original=preds/original v1=preds/v1 v2=preds/v2 \\
      v3=preds/v3 v4=preds/v4 v5=preds/v5 --json scores.json

  Output of t5x.eval for several tasks, whose rows name their variant:
    sgdx score --corpus sample --predictions all=eval/inference_eval

  Answers of any model to `sgdx prompts --limit`, a sample of dialogues:
    sgdx score --corpus sgd.zip --predictions all=answers.jsonl --allow-missing

DIR contains dialogues*.json in DSTC8 format, with names of the variant or of
the original schema, or *.jsonl with rows of t5x.infer or t5x.eval or with
{"id", "prediction"}; a single file also works. Numbers are percent in tables,
fractions in CSV and JSON. JGA_v1-5, Diff_rel, SS_JGA and robustness need v1
to v5; --all prints more tables. docs/metrics/ defines all metrics,
docs/score-json.md the JSON.
"""

import argparse
import os
import pathlib
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli import options, output
from sgdx_t5x.cli.paths import add_input, named_path
from sgdx_t5x.errors import UsageError

if TYPE_CHECKING:
  from sgdx_t5x.corpus.corpus import Corpus
  from sgdx_t5x.prompts.protocol import PromptFormat
  from sgdx_t5x.scoring.predictions.files import Paths


def add_parser(subparsers: Any) -> None:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  summary = "score predictions: JGA per variant and schema sensitivity"
  parser = options.add_command(subparsers, "score", __doc__, help=summary)
  add_options(parser)
  parser.set_defaults(run=run)


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of the command."""
  options.add_corpus(parser)
  options.add_split(parser)
  add_input(
    parser,
    "--predictions",
    required=True,
    nargs="+",
    metavar="VARIANT=DIR",
    help="original=DIR, v1=DIR ... v5=DIR; all=DIR for JSONL whose ids name the variant; or DIR, "
    "for what is in DIR/original, DIR/v1 ...",
    path=named_path,
  )
  text = "further official metrics to report like JGA: by variant, Diff_rel, SS, robustness"
  parser.add_argument("--metric", nargs="+", default=[], metavar="KEY", help=text)
  text = "multiply joint metrics over a turn's frames, as the official scorer does for MultiWOZ"
  parser.add_argument("--joint-acc-across-turn", action="store_true", help=text)
  text = (
    "also score by where values come from: informed by the user, accepted from the system, "
    "carried over from another service"
  )
  parser.add_argument("--provenance", action="store_true", help=text)
  text = "print all tables: official metrics, robustness, all intervals, predicting nothing"
  parser.add_argument("--all", action="store_true", dest="all_tables", help=text)
  options.add_scoring(parser)
  options.add_outputs(parser, "scores", "scores to this JSONL file")
  output.add_format(parser)


def parse_sources(args: argparse.Namespace, corpus: "Corpus") -> "dict[str, Paths]":
  """Returns variant -> paths of `--predictions`. Args: corpus, which says what a variant is."""
  from sgdx_t5x.scoring.predictions.files import find_variants
  from sgdx_t5x.variants.variant_schemas import VariantSchemas

  schemas = VariantSchemas(corpus, options.parse_schemas(args))
  found: dict[str, Paths] = {}  # variant -> its paths, of those in folders of variants
  items: list[str] = []  # of `--predictions`, with a folder of variants replaced by what it has
  fix = "pass original=DIR for predictions with the original schemas, or v1 to v5, or all"
  for item in args.predictions:
    if "=" not in item and not os.path.exists(item):
      raise UsageError(
        f"--predictions {item}: no such folder",
        expected="VARIANT=DIR, or a folder with a folder for each variant",
        fix=fix,
      )
    paths = find_variants(pathlib.Path(item), args.split, schemas)
    items += [f"{variant}={path}" for variant, path in paths.items()] or [item]
    found |= paths
  return {**options.parse_named(items, "--predictions", "VARIANT=DIR", fix), **found}


@options.no_cycles()
def run(args: argparse.Namespace, prompt_format: "PromptFormat | None" = None) -> int:
  """Scores, prints and writes. Returns 0.

  Raises SgdxError for anything wrong in the input, and if the scores mean nothing.

  Args:
    args: what `add_options` parsed.
    prompt_format: of the predictions, if not what `--prompt-style` names.
  """
  from sgdx_t5x import scoring
  from sgdx_t5x.cli.progress import progress
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.scoring import score_files, score_tables

  corpus = open_corpus(args.corpus)
  sources = parse_sources(args, corpus)
  settings = options.scoring_settings(args)
  if prompt_format is not None:
    settings["prompt_format"] = prompt_format
  with progress("rows") as update:
    scored = scoring.score_predictions(
      corpus,
      args.split,
      sources,
      on_progress=update,
      across_turn=args.joint_acc_across_turn,
      metrics=tuple(dict.fromkeys(args.metric)),
      provenance=args.provenance,
      **settings,
    )
    report = scoring.score_report(scored, on_progress=update)
    table = scored.table(args.per_frame) if args.per_frame else None
    report = score_files.save(report, table, args.json, args.per_frame)
  # A screen for a person; files and programs get everything.
  is_short = args.format == "text" and not args.all_tables
  tables = score_tables.summary(report) if is_short else score_tables.layout(report)
  notes = [*score_tables.absent(report), *report["notes"]]
  if is_short:
    notes.append("--all prints all tables")
  about = {"warnings": report["warnings"], "signatures": {"": report["signature"]}}
  output.show(args.format, tables, report, notes=notes, **about)
  output.say_written(args.json, args.per_frame)
  score_tables.check_annexes(report)  # last: what is wrong with the scores shows in the tables
  return 0
