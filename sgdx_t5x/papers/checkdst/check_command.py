"""`sgdx checkdst check`: checks a tracker on dialogues with other names, words, disfluency.

examples:
  sgdx checkdst check --corpus sgd.zip \\
    --perturbed ned=perturbed/ned sdi=perturbed/sdi \\
    --predictions original=preds/original ned=preds/ned sdi=preds/sdi \\
    --json check.json --per-frame check.jsonl

  With a schema variant too, compared with predictions under that variant:
    ... --predictions original=DIR ned=DIR v3=DIR ned+v3=DIR

  Output of t5x.eval for the mixture of all sets, whose rows name their set:
    ... --predictions all=eval_checkdst

The frames that a perturbation changed are compared with the same frames of the
original dialogues. A set without perturbation.json must be named after its kind.
docs/papers/metrics/perturbed.md defines all numbers, docs/score-json.md the files.
"""

import argparse
from typing import Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.options import (
  add_command,
  add_outputs,
  add_scoring,
  add_split,
  no_cycles,
  parse_named,
)
from sgdx_t5x.cli.paths import add_input, corpus_path, path_of_name


def add_parser(subparsers: Any) -> None:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  parser = add_command(subparsers, "check", __doc__)
  text = 'the original corpus, before perturbation (zip or folder), or "sample"'
  add_input(parser, "--corpus", required=True, help=text, path=corpus_path)
  add_split(parser)
  names_and_folders: dict[str, Any] = {"nargs": "+", "required": True, "metavar": "NAME=DIR"}
  text = "perturbed corpora, as `sgdx checkdst perturb` writes them: ned=DIR"
  add_input(parser, "--perturbed", help=text, path=path_of_name, **names_and_folders)
  text = "original=DIR, and SET=DIR for each perturbed set; with a schema variant, v3=DIR and "
  text += "SET+v3=DIR; or all=DIR for JSONL whose ids name the set"
  add_input(parser, "--predictions", help=text, path=path_of_name, **names_and_folders)
  text = "also write results per domain and service, to JSON"
  parser.add_argument("--per-service", action="store_true", help=text)
  add_scoring(parser)
  add_outputs(parser, "numbers", "counts to this JSONL file, for `sgdx checkdst diff`")
  output.add_format(parser)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Checks, prints and writes. Returns 0. Raises SgdxError for anything wrong in the input."""
  from sgdx_t5x.cli.options import scoring_settings
  from sgdx_t5x.cli.progress import progress
  from sgdx_t5x.papers.checkdst import checks
  from sgdx_t5x.papers.checkdst.checks import files, tables

  fix = "pass, for example, ned=DIR"
  perturbed = parse_named(args.perturbed, "--perturbed", "NAME=DIR", fix)
  predictions = parse_named(args.predictions, "--predictions", "NAME=DIR", fix)
  with no_cycles(), progress("sets") as update:
    checked = checks.check(
      args.corpus,
      args.split,
      perturbed,
      predictions,
      failures=args.per_frame is not None,
      on_progress=update,
      **scoring_settings(args),
    )
    report = checks.check_report(checked, per_service=args.per_service)
    report = files.save(report, checked, args.json, args.per_frame)
  output.show(
    args.format,
    tables.layout(report),
    report,
    warnings=report["warnings"],
    notes=(*tables.legend(report), *report["notes"]),
    signatures={"": report["signature"]},
  )
  output.say_written(args.json, args.per_frame)
  return 0
