"""`sgdx backtranslate`: back-translates names and descriptions of schemas, as training data."""

import argparse
import collections
import pathlib
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.interrupts import ended
from sgdx_t5x.cli.options import add_command, add_corpus, add_split
from sgdx_t5x.cli.output import folded_command
from sgdx_t5x.cli.paths import add_input, add_output, check_no_inputs
from sgdx_t5x.cli.progress import progress
from sgdx_t5x.corpus.variants import BACK_TRANSLATIONS
from sgdx_t5x.errors import UsageError, with_document_paths

if TYPE_CHECKING:
  from sgdx_t5x.corpus.schema import Schema
  from sgdx_t5x.papers.backtranslation.backtranslate import BackTranslation
  from sgdx_t5x.variants.translations import Plan

_PIVOT = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_PRICE = 20.0  # USD per million characters
_CACHE = ".cache"
_OPTIONS = {  # per provider; options not given keep the provider's defaults
  "table": ("table",),
  "google": ("project", "price"),
  "hf": (
    "model_to", "model_from", "language_codes", "batch_size", "beams",
    "sample", "temperature", "top_p", "seed",
  ),
}  # fmt: skip
_EPILOG = """\
examples:
  The back-translations shipped with this package (SGD train; zh, ja, ko):
    sgdx backtranslate --corpus sgd.zip --provider table --out back_translations

  With Google Translate, which the paper used; first an estimate of the cost:
    sgdx backtranslate --corpus sgd.zip --provider google --out google --dry-run

  With local checkpoints, one for each direction and pivot, and sampling:
    sgdx backtranslate --corpus sgd.zip --provider hf --pivots zh ja \\
      --model-to 'models/en-{pivot}' --model-from 'models/{pivot}-en' \\
      --sample --seed 1 --out marian

  With one NLLB, M2M100 or mBART-50 checkpoint for all directions:
    sgdx backtranslate --corpus sgd.zip --provider hf --model-to nllb-200 \\
      --out nllb

  From recorded texts that were corrected by hand:
    sgdx backtranslate --corpus sgd.zip --pivots ja --provider table \\
      --table marian/ja/train/texts.jsonl --out corrected

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
  google = parser.add_argument_group("--provider google")
  google.add_argument(
    "--project",
    metavar="ID",
    help="Google Cloud project to bill (default: that of the credentials)",
  )
  google.add_argument(
    "--price",
    type=float,
    metavar="USD",
    help=f"price per million characters, for --dry-run (default: {_PRICE:g}, an assumption)",
  )
  hf = parser.add_argument_group("--provider hf")
  add_input(
    hf,
    "--model-to",
    metavar="DIR",
    help="checkpoint for English > {pivot}, or for all directions",
  )
  add_input(hf, "--model-from", metavar="DIR", help="checkpoint for {pivot} > English")
  hf.add_argument(
    "--language-codes",
    nargs="+",
    metavar="PIVOT=CODE",
    help="language codes of the checkpoint, if not the usual ones: zh=zho_Hant",
  )
  hf.add_argument(
    "--batch-size", type=int, metavar="N", help="number of texts per batch (default: 16)"
  )
  hf.add_argument("--beams", type=int, metavar="N", help="width of the beam search (default: 4)")
  hf.add_argument(
    "--sample", action="store_true", default=None, help="sample instead of using beam search"
  )
  hf.add_argument(
    "--temperature", type=float, help="sampling temperature, with --sample (default: 1)"
  )
  hf.add_argument(
    "--top-p", type=float, help="nucleus sampling threshold, with --sample (default: 0.9)"
  )
  hf.add_argument("--seed", type=int, help="random seed, with --sample (default: 0)")


def run(args: argparse.Namespace) -> int:
  """Back-translates a split's schema, or prints what would be done. Returns the exit code.

  Raises:
    SgdxError: bad input, a provider that fails, or a folder that cannot be written.
  """
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.papers.backtranslation import backtranslate
  from sgdx_t5x.papers.backtranslation.providers import open_provider
  from sgdx_t5x.variants.wording import wording

  if args.price is not None and not 0 <= args.price < float("inf"):
    raise UsageError(f"--price {args.price}", expected="at least 0 USD", fix="leave it out")
  pivots = _pivots(args)
  options = _provider_options(args)
  schema = open_corpus(args.corpus).schema(args.split)
  out = pathlib.Path(args.out)
  provider = open_provider(args.provider, options, out / _CACHE, _say)
  items = list(wording(schema).items())
  plans = {pivot: provider.plan(items, pivot) for pivot in pivots}
  if args.dry_run:
    _print_plans(plans, args)
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


def _provider_options(args: argparse.Namespace) -> dict[str, Any]:
  """Returns the chosen provider's options; refuses those of another provider."""
  for provider, names in _OPTIONS.items():
    for name in names:
      if getattr(args, name) is not None and provider != args.provider:
        raise UsageError(
          f"--{name.replace('_', '-')} with --provider {args.provider}",
          expected=f"--provider {provider}",
          available=" ".join(f"--{n.replace('_', '-')}" for n in _OPTIONS[args.provider]),
          fix="leave it out, or choose the provider it belongs to",
        )
  given = {
    name: value for name in _OPTIONS[args.provider] if (value := getattr(args, name)) is not None
  }
  given.pop("price", None)
  return _hf_options(given) if args.provider == "hf" else given


def _hf_options(given: dict[str, Any]) -> dict[str, Any]:
  from sgdx_t5x.papers.backtranslation.providers.huggingface import Sampling

  for name in ("batch_size", "beams"):
    if given.get(name, 1) < 1:
      raise UsageError(
        f"--{name.replace('_', '-')} {given[name]}", expected="1 or more", fix="leave it out"
      )
  sampling = {n: given.pop(n) for n in ("temperature", "top_p", "seed") if n in given}
  if given.pop("sample", False):
    if "beams" in given:
      raise UsageError(
        "--sample with --beams", expected="one decoding method", fix="leave out one of them"
      )
    given["sampling"] = Sampling(**sampling)
  elif sampling:
    raise UsageError(
      " ".join(f"--{name.replace('_', '-')}" for name in sampling) + " without --sample",
      expected="these options only together with --sample",
      fix="add --sample",
    )
  codes = [item.partition("=") for item in given.pop("language_codes", [])]
  for pivot, sign, code in codes:
    if not (pivot and code):
      raise UsageError(
        f"--language-codes {pivot}{sign}{code}",
        expected="PIVOT=CODE, for example zh=zho_Hant",
        fix="use the language code from the checkpoint's tokenizer",
      )
  return {**given, "language_codes": {pivot: code for pivot, _, code in codes}}


# --- output --------------------------------------------------------------------------------


def _say(line: str) -> None:
  print(with_document_paths(line), file=sys.stderr)


def _print_plans(plans: "Mapping[str, Plan]", args: argparse.Namespace) -> None:
  """Prints to stdout what is left to do."""
  for pivot, plan in plans.items():
    print(f"{pivot}: {plan.texts:,} distinct texts, {plan.known:,} of them already translated")
    if plan.known < plan.texts:
      forward, back = plan.characters_to, plan.characters_back
      print(f"    to send: {forward:,} characters to the pivot language, about {back:,} back")
  characters = sum(plan.characters_to + plan.characters_back for plan in plans.values())
  if any(plan.is_paid for plan in plans.values()):
    price = _PRICE if args.price is None else args.price
    print(f"cost: about {characters * price / 1e6:.2f} USD for {characters:,} characters,")
    print(f"      at {price:g} USD per million, an assumption: see the provider's price list")
  print("nothing was sent or written")


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
