"""`sgdx backtranslate`: back-translates names and descriptions of schemas, as training data."""

import argparse
import collections
import pathlib
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.interrupts import ended
from sgdx_t5x.cli.options import add_command, add_corpus, add_split, check_least
from sgdx_t5x.cli.output import folded_command
from sgdx_t5x.cli.paths import add_input, add_output, check_no_inputs
from sgdx_t5x.cli.progress import progress
from sgdx_t5x.corpus.variants import BACK_TRANSLATIONS
from sgdx_t5x.errors import UsageError, with_document_paths

if TYPE_CHECKING:
  from sgdx_t5x.corpus.schema import Schema
  from sgdx_t5x.papers.backtranslation.backtranslate import BackTranslation
  from sgdx_t5x.variants.translations import Plan, Provider

_PIVOT = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_CACHE = ".cache"
_OPTIONS = {  # per provider; options not given keep the provider's defaults
  "table": ("table",),
  "hf": ("model", "model_back", "source", "target", "beams", "batch_size"),
}
_EPILOG = """\
examples:
  The back-translations shipped with this package (SGD train; zh, ja, ko):
    sgdx backtranslate --corpus sgd.zip --provider table --out back_translations

  With a checkpoint for all directions, NLLB; codes as its tokenizer has them:
    sgdx backtranslate --corpus sgd.zip --provider hf --model nllb-200 \\
      --source eng_Latn --target zho_Hans jpn_Jpan kor_Hang --out nllb

  With a checkpoint for each direction, which need no codes:
    sgdx backtranslate --corpus sgd.zip --provider hf --pivots zh \\
      --model opus-mt-en-zh --model-back opus-mt-zh-en --out opus

  From recorded texts that were corrected by hand:
    sgdx backtranslate --corpus sgd.zip --pivots ja --provider table \\
      --table nllb/ja/train/texts.jsonl --out corrected

DIR/PIVOT/SPLIT/ will contain schema.json; texts.jsonl, with each text, its
pivot text, provider and date; and repairs.jsonl if some results could not be
used as returned (untranslated, empty, not a name, or a name that collides).
After an interruption or failure, the same command resumes where it stopped.
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  parser = add_command(subparsers, "backtranslate", __doc__, _EPILOG)
  add_corpus(parser)
  add_split(parser, default="train")
  parser.add_argument(
    "--pivots",
    nargs="+",
    default=["zh", "ja", "ko"],
    metavar="CODE",
    help="pivot languages (default: zh ja ko)",
  )
  parser.add_argument(
    "--provider", required=True, choices=list(_OPTIONS), help="translation provider"
  )
  add_output(parser, "--out", required=True, metavar="DIR", help="folder to write to", folder=True)
  parser.add_argument(
    "--dry-run", action="store_true", help="print how many texts would be translated, then exit"
  )
  parser.add_argument(
    "--overwrite", action="store_true", help="replace earlier results in DIR that differ"
  )
  _add_provider_options(parser)
  parser.set_defaults(run=run)
  return parser


def _add_provider_options(parser: argparse.ArgumentParser) -> None:
  table = parser.add_argument_group("--provider table")
  add_input(
    table,
    "--table",
    nargs="+",
    metavar="FILE",
    help="recorded translations (default: those shipped with this package)",
  )
  hf = parser.add_argument_group("--provider hf")
  add_input(hf, "--model", metavar="DIR", help="checkpoint from English to the pivots")
  add_input(hf, "--model-back", metavar="DIR", help="of the way back (default: --model)")
  hf.add_argument("--source", metavar="CODE", help="English, as the tokenizer calls it: eng_Latn")
  text = "the pivots, in the order of --pivots: zho_Hans jpn_Jpan kor_Hang"
  hf.add_argument("--target", nargs="+", metavar="CODE", help=text)
  hf.add_argument("--beams", type=int, metavar="N", help="width of the beam search (default: 4)")
  hf.add_argument("--batch-size", type=int, metavar="N", help="texts per batch (default: 16)")


def run(args: argparse.Namespace) -> int:
  """Back-translates a split's schema, or prints what would be done. Returns the exit code.

  Raises:
    SgdxError: bad input, a provider that fails, or a folder that cannot be written.
  """
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.papers.backtranslation import backtranslate
  from sgdx_t5x.variants.wording import wording

  pivots = _pivots(args)
  _check_options(args, pivots)
  schema = open_corpus(args.corpus).schema(args.split)
  out = pathlib.Path(args.out)
  provider = _open_provider(args, pivots)
  items = list(wording(schema).items())
  plans = {pivot: provider.plan(items, pivot) for pivot in pivots}
  if args.dry_run:
    _print_plans(plans)
    return 0
  if any(plan.known < plan.texts for plan in plans.values()):  # else the provider is not called
    provider.check(pivots)
  for pivot in pivots:
    try:
      with progress("texts") as update:
        result = backtranslate.back_translate(schema, provider, pivot, update)
    except KeyboardInterrupt as stop:
      return ended(stop, "run the same command again to resume")
    folder = out / pivot / args.split
    if not backtranslate.is_written(result, folder):
      check_no_inputs(args, [folder])
    files = backtranslate.write_back_translation(result, folder, args.overwrite)
    _print_result(result, folder, files)
  _print_next(args, pivots, schema)
  return 0


def _pivots(args: argparse.Namespace) -> list[str]:
  for pivot in args.pivots:
    if not _PIVOT.fullmatch(pivot) or pivot.lower() == "en":
      raise UsageError(
        f"--pivots {pivot}",
        expected="codes of languages other than English",
        fix="pass, for example, --pivots zh ja ko",
      )
  return list(dict.fromkeys(args.pivots))


def _check_options(args: argparse.Namespace, pivots: list[str]) -> None:
  """Refuses options of another provider, and those that do not fit together."""
  for provider, names in _OPTIONS.items():
    for name in names:
      if getattr(args, name) is not None and provider != args.provider:
        raise UsageError(
          f"--{name.replace('_', '-')} with --provider {args.provider}",
          expected=f"--provider {provider}",
          available=" ".join(f"--{n.replace('_', '-')}" for n in _OPTIONS[args.provider]),
          fix="leave it out, or choose the provider it belongs to",
        )
  if args.provider == "hf" and not args.model:
    raise UsageError(
      "--provider hf without --model",
      expected="the folder of a checkpoint that translates",
      fix="pass --model DIR, and --model-back DIR unless it translates both ways",
    )
  if bool(args.source) != bool(args.target) or len(args.target or pivots) != len(pivots):
    raise UsageError(
      f"--source {args.source or 'missing'}, --target {' '.join(args.target or ['missing'])}",
      expected=f"both, with one target for each of {' '.join(pivots)}",
      fix="pass --source CODE --target CODE ..., or neither if the checkpoint has no codes",
    )
  for name in ("beams", "batch-size"):
    check_least(args, name, 1, "leave it out")


def _open_provider(args: argparse.Namespace, pivots: list[str]) -> "Provider":
  if args.provider == "hf":
    from sgdx_t5x.papers.backtranslation import checkpoint, text_provider

    codes = {}
    if args.source:
      codes = {text_provider.SOURCE: args.source, **dict(zip(pivots, args.target, strict=True))}
    options = {n: v for n in ("beams", "batch_size") if (v := getattr(args, n)) is not None}
    translator = checkpoint.CheckpointTranslator(args.model, args.model_back, codes, **options)
    return text_provider.TextProvider(translator, pathlib.Path(args.out) / _CACHE, _say)
  from sgdx_t5x.variants.shipped import shipped_table
  from sgdx_t5x.variants.translations import open_table

  return open_table(args.table) if args.table else shipped_table()


# --- output --------------------------------------------------------------------------------


def _say(line: str) -> None:
  print(with_document_paths(line), file=sys.stderr)


def _print_plans(plans: "Mapping[str, Plan]") -> None:
  """Prints to stdout what is left to do."""
  for pivot, plan in plans.items():
    print(f"{pivot}: {plan.texts:,} distinct texts, {plan.known:,} of them already translated")
  print("nothing was translated or written")


def _print_result(result: "BackTranslation", folder: pathlib.Path, files: list[str]) -> None:
  rules = collections.Counter(repair.rule for repair in result.repairs)
  repairs = ", ".join(f"{count} {rule}" for rule, count in sorted(rules.items())) or "none"
  _say(f"{result.pivot}: {len(result.records):,} texts, {result.unchanged:,} returned unchanged")
  _say(f"    repairs: {repairs}")
  _say(f"    written: {folder}/{{{','.join(files)}}}")


def _print_next(args: argparse.Namespace, pivots: list[str], schema: "Schema") -> None:
  """Prints how to train with the result."""
  from sgdx_t5x.corpus.opening import SAMPLE
  from sgdx_t5x.variants.shipped import SGD_TRAIN, wording_checksum

  is_shipped = args.provider == "table" and not args.table
  if is_shipped and wording_checksum(schema) != SGD_TRAIN:
    _say("note: the texts are those of SGD's train schema, whatever this schema says")
  elif is_shipped and args.split == "train":
    _say("next: train with the built-in tasks for these texts, which need no files:")
    command = "python -m t5x.train --gin_file=gin/t5dst_backtrans.gin --tfds_data_dir=data ..."
    _say(folded_command(command.split(), "  "))
    return
  out, prefix, options = pathlib.Path(args.out).resolve(), "", ", vocabulary=vocabulary"
  if args.corpus == SAMPLE:
    prefix, options = "sample_", ', vocabulary=sample_vocabulary, prefix="sample_", data="sample"'
  names = {pivot: _task_name(f"{out.name}_{pivot}") for pivot in pivots}
  _say("next: register tasks in tasks/mixtures.py or a module of your own (see")
  _say("  tasks/README.md):")
  for pivot, name in names.items():
    _say(f'  register_variant("{name}", "{out / pivot}"{options})')
  tasks = ["sgd", *(f"sgd_{name}" for name in names.values())]
  listed = ", ".join(f'"{prefix}t5dst_{task}"' for task in tasks)
  if args.split == "train":
    _say(f'  register_mixture("{prefix}t5dst_sgd_and_{_task_name(out.name)}", [{listed}])')


def _task_name(text: str) -> str:
  """Returns a name that tasks can have and built-in variants have not."""
  name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")
  return f"my_{name}" if name in BACK_TRANSLATIONS else name
