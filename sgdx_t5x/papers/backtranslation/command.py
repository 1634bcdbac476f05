"""`sgdx backtranslate`: back-translates names and descriptions of schemas, as training data.

examples:
  The back-translations shipped with this package (SGD train; zh, ja, ko):
    sgdx backtranslate --corpus sgd.zip --provider table --out back_translations

  With a checkpoint, NLLB; codes as its tokenizer has them:
    sgdx backtranslate --corpus sgd.zip --provider hf --model nllb-200 \\
      --source eng_Latn --target zho_Hans jpn_Jpan kor_Hang --out nllb

DIR/PIVOT/SPLIT/ will contain schema.json, texts.jsonl and, if some results could
not be used as returned, repairs.jsonl: docs/papers/backtranslation.md. After an
interruption or failure, the same command resumes where it stopped.
"""

import argparse
import collections
import pathlib
import re
import sys
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.interrupts import ended
from sgdx_t5x.cli.options import add_command, add_corpus, add_split
from sgdx_t5x.cli.paths import add_input, add_output
from sgdx_t5x.cli.progress import progress
from sgdx_t5x.corpus.variants import BACK_TRANSLATIONS
from sgdx_t5x.errors import UsageError, with_document_paths

if TYPE_CHECKING:
  from sgdx_t5x.papers.backtranslation.backtranslate import BackTranslation
  from sgdx_t5x.papers.backtranslation.translations import Provider

_PIVOT = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_CACHE = ".cache"


def add_parser(subparsers: Any) -> None:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  parser = add_command(subparsers, "backtranslate", __doc__)
  add_corpus(parser)
  add_split(parser, default="train")
  parser.add_argument(
    "--pivots",
    nargs="+",
    default=["zh", "ja", "ko"],
    metavar="CODE",
    help="pivot languages (default: zh ja ko)",
  )
  text = "recorded translations, or a checkpoint"
  parser.add_argument("--provider", required=True, choices=("table", "hf"), help=text)
  add_output(parser, "--out", required=True, metavar="DIR", help="folder to write to", folder=True)
  text = "recorded translations (default: those shipped with this package)"
  add_input(parser, "--table", nargs="+", metavar="FILE", help=text)
  add_input(parser, "--model", metavar="DIR", help="checkpoint from English to the pivots")
  add_input(parser, "--model-back", metavar="DIR", help="of the way back (default: --model)")
  text = "English, as the tokenizer calls it: eng_Latn"
  parser.add_argument("--source", metavar="CODE", help=text)
  text = "the pivots, in the order of --pivots: zho_Hans jpn_Jpan kor_Hang"
  parser.add_argument("--target", nargs="+", metavar="CODE", help=text)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Back-translates a split's schema. Returns the exit code.

  Raises:
    SgdxError: bad input, a provider that fails, or a folder that cannot be written.
  """
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.papers.backtranslation import backtranslate
  from sgdx_t5x.variants.shipped import SGD_TRAIN, wording_checksum

  _check(args)
  schema = open_corpus(args.corpus).schema(args.split)
  out, provider = pathlib.Path(args.out), _open_provider(args)
  provider.check(args.pivots)
  for pivot in args.pivots:
    try:
      with progress("texts") as update:
        result = backtranslate.back_translate(schema, provider, pivot, update)
    except KeyboardInterrupt as stop:
      return ended(stop, "run the same command again to resume")
    folder = out / pivot / args.split
    _print_result(result, folder, backtranslate.write_back_translation(result, folder))
  if args.provider == "table" and not args.table and wording_checksum(schema) != SGD_TRAIN:
    _say("note: the texts are those of SGD's train schema, whatever this schema says")
  _say("next: register tasks for these texts, as tasks/README.md shows:")
  for pivot in args.pivots:
    name = _task_name(f"{out.resolve().name}_{pivot}")
    _say(f'  register_variant("{name}", "{out.resolve() / pivot}", ...)')
  return 0


def _check(args: argparse.Namespace) -> None:
  """Refuses pivots that are no languages, and options that do not fit together."""
  for pivot in args.pivots:
    if not _PIVOT.fullmatch(pivot) or pivot.lower() == "en":
      raise UsageError(
        f"--pivots {pivot}",
        expected="codes of languages other than English",
        fix="pass, for example, --pivots zh ja ko",
      )
  if len(distinct := dict.fromkeys(args.pivots)) < len(args.pivots):
    raise UsageError(
      f"--pivots {' '.join(args.pivots)}",
      expected="each language once: its texts are written to DIR/PIVOT",
      fix=f"pass --pivots {' '.join(distinct)}, and with --target as many codes",
    )
  # Each provider has options of its own.
  of_hf = (args.model, args.model_back, args.source, args.target)
  of_other = args.table if args.provider == "hf" else any(of_hf)
  if of_other:
    raise UsageError(
      f"options of another provider with --provider {args.provider}",
      expected="--table with table; --model, --model-back, --source, --target with hf",
      fix="leave them out, or choose the provider they belong to",
    )
  if args.provider == "hf" and not args.model:
    raise UsageError(
      "--provider hf without --model",
      expected="the folder of a checkpoint that translates",
      fix="pass --model DIR, and --model-back DIR unless it translates both ways",
    )
  if bool(args.source) != bool(args.target) or len(args.target or args.pivots) != len(args.pivots):
    raise UsageError(
      f"--source {args.source or 'missing'}, --target {' '.join(args.target or ['missing'])}",
      expected=f"both, with one target for each of {' '.join(args.pivots)}",
      fix="pass --source CODE --target CODE ..., or neither if the checkpoint has no codes",
    )


def _open_provider(args: argparse.Namespace) -> "Provider":
  from sgdx_t5x.papers.backtranslation.translations import SOURCE, open_table, shipped_table

  if args.provider == "hf":
    from sgdx_t5x.papers.backtranslation import checkpoint, text_provider

    codes = {}
    if args.source:
      codes = {SOURCE: args.source, **dict(zip(args.pivots, args.target, strict=True))}
    translator = checkpoint.CheckpointTranslator(args.model, args.model_back, codes)
    return text_provider.TextProvider(translator, pathlib.Path(args.out) / _CACHE, _say)
  return open_table(args.table) if args.table else shipped_table()


def _say(line: str) -> None:
  print(with_document_paths(line), file=sys.stderr)


def _print_result(result: "BackTranslation", folder: pathlib.Path, files: list[str]) -> None:
  rules = collections.Counter(repair.rule for repair in result.repairs)
  repairs = ", ".join(f"{count} {rule}" for rule, count in sorted(rules.items())) or "none"
  _say(f"{result.pivot}: {len(result.records):,} texts, {result.unchanged:,} returned unchanged")
  _say(f"    repairs: {repairs}")
  _say(f"    written: {folder}/{{{','.join(files)}}}")


def _task_name(text: str) -> str:
  """Returns a name that tasks can have and built-in variants have not."""
  name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")
  return f"my_{name}" if name in BACK_TRANSLATIONS else name
