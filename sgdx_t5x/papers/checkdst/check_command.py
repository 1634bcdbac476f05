"""`sgdx checkdst check`: checks a tracker on dialogues with other names, words, disfluency."""

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
from sgdx_t5x.cli.progress import progress
from sgdx_t5x.errors import UsageError

# Options that CheckDST's files do not take.
_SETS_ONLY = (
  *("corpus", "split", "perturbed", "predictions", "entity_slots", "like_checkdst", "per_service"),
  *("per_frame", "prompt_style", "fuzzy", "allow_missing", "schemas"),
)
_EPILOG = """\
examples:
  Make perturbed sets, predict all, and check:
    sgdx checkdst perturb ned --corpus sgd.zip --out perturbed/ned
    sgdx checkdst perturb sdi --corpus sgd.zip --out perturbed/sdi
    sgdx checkdst check --corpus sgd.zip \\
      --perturbed ned=perturbed/ned sdi=perturbed/sdi \\
      --predictions original=preds/original ned=preds/ned sdi=preds/sdi \\
      --json check.json --per-frame check.jsonl

  With a schema variant too, compared with predictions under that variant:
    sgdx checkdst check --corpus sgd.zip --perturbed ned=perturbed/ned \\
      --predictions original=preds/original v3=preds/v3 ned=preds/ned \\
      ned+v3=preds/ned_v3

  Output of t5x.eval for the mixture of all sets, whose rows name their set:
    sgdx checkdst check --corpus sgd.zip \\
      --perturbed ned=perturbed/ned pi=perturbed/pi sdi=perturbed/sdi \\
      --predictions all=eval_checkdst

  Two trackers:
    sgdx checkdst diff check_a.json check_b.json

  CheckDST's own prediction files, with its numbers and ours:
    sgdx checkdst check --checkdst-rows orig=orig.jsonl NED=NED.jsonl \\
      --gold gold.json

The frames that a perturbation changed are compared with the same frames of the
original dialogues. A set without perturbation.json must be named after its kind:
ned, vs (frames whose gold state differs), pi or sdi (whose utterance differs);
for vs, --entity-slots then has the slots whose values were replaced.
docs/papers/metrics/perturbed.md defines all numbers, docs/score-json.md the files.
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  summary = "check a tracker on perturbed dialogues, after CheckDST"
  parser = add_command(subparsers, "check", __doc__, _EPILOG, summary)
  add_input(
    parser,
    "--corpus",
    help='the original corpus, before perturbation (zip or folder), or "sample"',
    path=corpus_path,
  )
  add_split(parser)
  add_input(
    parser,
    "--perturbed",
    nargs="+",
    default=[],
    metavar="NAME=DIR",
    help="perturbed corpora, as `sgdx checkdst perturb` writes them",
    path=path_of_name,
  )
  add_input(
    parser,
    "--predictions",
    nargs="+",
    default=[],
    metavar="NAME=DIR",
    help="original=DIR, and SET=DIR for each perturbed set; with a schema variant, v3=DIR and "
    "SET+v3=DIR; or all=DIR for JSONL whose ids name the set",
    path=path_of_name,
  )
  add_input(
    parser,
    "--entity-slots",
    metavar="FILE",
    help='slots that hold names, as JSON {"Hotels_4": ["location"]} (default: titles, people, '
    "cities, stations, addresses)",
  )
  parser.add_argument(
    "--like-checkdst",
    action="store_true",
    help="also score by CheckDST's own definitions, to compare with papers",
  )
  parser.add_argument(
    "--per-service",
    action="store_true",
    help="also write results per domain and service, to JSON and CSV",
  )
  rows = parser.add_argument_group("CheckDST's own files, in place of a corpus")
  add_input(
    rows,
    "--checkdst-rows",
    nargs="+",
    default=[],
    metavar="KIND=FILE",
    help="CheckDST's prediction files (JSONL), the original's first: orig=FILE NED=FILE ...",
    path=path_of_name,
  )
  add_input(rows, "--gold", metavar="FILE", help="CheckDST's gold file, for CorefJGA")
  add_scoring(parser, zero_mean=False)
  add_outputs(parser, "numbers", "counts to this JSONL file, for `sgdx checkdst diff`")
  output.add_format(parser)
  parser.set_defaults(run=run)
  return parser


def run(args: argparse.Namespace) -> int:
  """Checks, prints and writes. Returns 0. Raises SgdxError for anything wrong in the input."""
  _check_options(args)
  if args.checkdst_rows:
    return _run_rows(args)
  with no_cycles():
    return _run_sets(args)


def _check_options(args: argparse.Namespace) -> None:
  given = [name for name in _SETS_ONLY if getattr(args, name) != args.parser.get_default(name)]
  if args.checkdst_rows and given:
    raise UsageError(
      f"--checkdst-rows with --{given[0].replace('_', '-')}",
      expected="either CheckDST's files, or a corpus with perturbed sets and predictions",
      fix="leave out one of the two",
    )
  if args.checkdst_rows:
    return
  for name, example in (
    ("corpus", "sgd.zip"),
    ("perturbed", "ned=perturbed/ned"),
    ("predictions", "original=preds/original ned=preds/ned, or all=DIR"),
  ):
    if not getattr(args, name):
      raise UsageError(
        f"no --{name}",
        expected="--corpus, --perturbed and --predictions, or --checkdst-rows",
        fix=f"add --{name} {example}",
      )
  if args.gold:
    raise UsageError(
      "--gold without --checkdst-rows",
      expected="CheckDST's gold file together with its prediction files",
      fix="leave it out; the corpora contain the gold states",
    )


def _run_sets(args: argparse.Namespace) -> int:
  from sgdx_t5x.cli.options import scoring_settings
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.papers.checkdst import checks
  from sgdx_t5x.papers.checkdst.checks import files, tables
  from sgdx_t5x.papers.checkdst.entities import chosen_slots

  corpus = open_corpus(args.corpus)
  entities = None
  if args.entity_slots:
    entities = chosen_slots(corpus.schema(args.split), args.entity_slots)
  with progress("sets") as update:
    checked = checks.check(
      corpus,
      args.split,
      parse_named(args.perturbed, "perturbed", "NAME=DIR", "pass, for example, ned=perturbed/ned"),
      parse_named(
        args.predictions, "predictions", "NAME=DIR", "pass, for example, all=eval_checkdst"
      ),
      entities=entities,
      failures=args.per_frame is not None,
      on_progress=update,
      **scoring_settings(args),
    )
    report = checks.check_report(
      checked, like_checkdst=args.like_checkdst, per_service=args.per_service
    )
    report = files.save(report, checked, args.json, args.per_frame)
  output.show(
    args.format,
    tables.layout(report),
    report,
    warnings=report["warnings"],
    notes=(*tables.legend(report), *report["notes"]),
    signatures={"": report["signature"]},
    csv=tables.long_csv(report),
  )
  output.say_written(args.json, args.per_frame)
  return 0


def _run_rows(args: argparse.Namespace) -> int:
  from sgdx_t5x.cli.options import scoring_settings
  from sgdx_t5x.files.writing import atomic_write
  from sgdx_t5x.papers.checkdst.checks import checkdst_rows
  from sgdx_t5x.scoring import Settings

  how = Settings(**scoring_settings(args))
  named = parse_named(
    args.checkdst_rows, "checkdst-rows", "KIND=FILE", "pass, for example, orig=FILE"
  )
  rows = {kind: checkdst_rows.read_rows(path) for kind, path in named.items()}
  gold = checkdst_rows.read_gold(args.gold) if args.gold else None
  report = checkdst_rows.rows_report(rows, gold, how.bootstrap_samples, how.seed)
  if args.json:
    with atomic_write(args.json, "--json") as file:
      file.write(output.as_json(report))
  output.show(args.format, checkdst_rows.layout(report), report, notes=checkdst_rows.notes(report))
  output.say_written(args.json)
  return 0
