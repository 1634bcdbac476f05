"""`sgdx checkdst`: perturbed dialogues, and what a tracker does on them (Cho et al., 2022).

examples:
  sgdx checkdst perturb ned --corpus sgd.zip --out perturbed/ned
  sgdx checkdst verify --corpus perturbed/ned --against sgd.zip
  sgdx checkdst check --corpus sgd.zip --perturbed ned=perturbed/ned \\
    --predictions original=preds/original ned=preds/ned --json check.json
  sgdx checkdst diff check_base.json check_ours.json
  sgdx checkdst rows orig=orig.jsonl NED=NED.jsonl --gold gold.json

docs/papers/checkdst.md
"""

import argparse
from typing import Any

from sgdx_t5x.cli import diff, output
from sgdx_t5x.cli.options import add_command, add_corpus, add_group, parse_named
from sgdx_t5x.cli.paths import add_input, corpus_path, named_path, path_of_name
from sgdx_t5x.papers.checkdst import check_command, perturb_command


def add_parser(subparsers: Any) -> None:
  """Adds `sgdx checkdst` and its subcommands."""
  verbs = add_group(subparsers, "checkdst", __doc__)
  perturb_command.add_parser(verbs)

  text = "`sgdx checkdst verify`: tests what a perturbation must not change."
  verify = add_command(verbs, "verify", text)
  add_corpus(verify)
  text = "corpus that --corpus was made from"
  add_input(verify, "--against", metavar="CORPUS", required=True, help=text, path=corpus_path)
  verify.set_defaults(run=run_verify)

  check_command.add_parser(verbs)

  text = "`sgdx checkdst diff`: do two trackers differ on perturbed dialogues by more than chance? "
  text += "The interval and p are for B-A, from a paired bootstrap over dialogues, which does not "
  text += "cover randomness in training."
  compare = add_command(verbs, "diff", text)
  text = "JSON of `sgdx checkdst check --json --per-frame`"
  add_input(compare, "a", metavar="A", help=text)
  add_input(compare, "b", metavar="B", help="the same for the other tracker")
  diff.add_sampling(compare)
  compare.set_defaults(run=run_diff)

  text = "`sgdx checkdst rows`: CheckDST's numbers for its own prediction files."
  rows = add_command(verbs, "rows", text)
  text = "CheckDST's prediction files (JSONL), the original's first: orig=FILE NED=FILE ..."
  add_input(rows, "files", nargs="+", metavar="KIND=FILE", help=text, path=path_of_name)
  add_input(rows, "--gold", metavar="FILE", help="CheckDST's gold file, for CorefJGA")
  rows.set_defaults(run=run_rows)


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `sgdx report` that name checks and their corpora."""
  group = parser.add_argument_group("perturbed dialogues")
  many: dict[str, Any] = {"action": "append", "default": [], "metavar": "[NAME=]FILE"}
  text = "output of `sgdx checkdst check --json` for a run; once per run"
  add_input(group, "--check", help=text, path=named_path, **many)
  many = {"nargs": "+", "default": [], "metavar": "SET=DIR"}
  text = "perturbed corpora of the checks, to show their utterances"
  add_input(group, "--perturbed", help=text, path=path_of_name, **many)


def run_verify(args: argparse.Namespace) -> int:
  """Compares and prints. Returns 0. Raises SgdxError for what does not hold."""
  from sgdx_t5x.cli.progress import progress
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.papers.checkdst.invariants import compare

  corpus, original = open_corpus(args.corpus), open_corpus(args.against)
  split = next((name for name in corpus.splits if corpus.perturbed(name)), corpus.splits[-1])
  with progress("dialogues") as update:
    manifest, counts = compare(
      corpus, original, split, lambda number: update(f"comparing {split}", number, None)
    )
  print(f"{split}: all invariants of {manifest.kind} hold, compared with {args.against}")
  numbers = f"{counts['dialogues']:,} dialogues, {counts['values']:,} entity values in states"
  print(f"{numbers}, of which {counts['unsaid']:,} are not said")
  return 0


def run_diff(args: argparse.Namespace) -> int:
  """Compares, prints and writes. Returns 0. Raises SgdxError for anything wrong in the input."""
  from sgdx_t5x.papers.checkdst.checks import compare, files
  from sgdx_t5x.scoring.comparison_tables import method_note

  a, b = (files.read_check(path) for path in (args.a, args.b))
  report = compare.compare(a, b, args.bootstrap_samples, allow_missing=args.allow_missing)
  less = "For broken, reverted, from_train and repair_taken, lower is better."
  return diff.finish(args, report, compare.layout, method_note(report), less)


def run_rows(args: argparse.Namespace) -> int:
  """Prints the numbers. Returns 0. Raises SgdxError for anything wrong in the input."""
  from sgdx_t5x.papers.checkdst import metrics_checkdst
  from sgdx_t5x.papers.checkdst.checks import checkdst_rows

  files = parse_named(args.files, "KIND=FILE", "KIND=FILE", "pass, for example, orig=FILE NED=FILE")
  rows = {kind: checkdst_rows.read_rows(path) for kind, path in files.items()}
  gold = None
  if args.gold:
    gold = checkdst_rows.read_gold(args.gold)
    checkdst_rows.check_gold(args.gold, gold, next(iter(rows.values())))
  results = metrics_checkdst.results(rows, gold)
  output.show("text", [checkdst_rows.layout(results, list(rows))], {})
  return 0
