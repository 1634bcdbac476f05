"""`sgdx track`: tracks dialogues of a corpus, or typed in the terminal, with a checkpoint.

examples:
  Predictions of the test split under the original schemas and two variants:
    sgdx track runs/spandst/checkpoint_20000 --corpus sgd.zip \\
      --variant original v1 v2 --out tracked
    sgdx score --corpus sgd.zip --predictions original=tracked/original \\
      v1=tracked/v1 v2=tracked/v2

  A schema of your own, in the terminal: type a dialogue and see the state after
  every turn, side by side under variants of the schema:
    sgdx track runs/spandst --schema mine.json --variant-schema v1=mine_v1.json

CHECKPOINT is a folder checkpoint_N of `t5x.train`, or a MODEL_DIR, whose last
checkpoint is used. The config.gin in MODEL_DIR says which tracker it is:
T5DST, D3ST, SDT, SpanDST or an annex's (docs/trackers.md). A tracker of several
models takes several, or a folder of their MODEL_DIRs. The vocabulary is found
as in training: SGDX_VOCAB, SGDX_ENCODER, SGDX_DEMOS.

--out DIR will contain DIR/VARIANT/dialogues_NNN.json, DSTC8 dialogues with the
names of the original schema. A run that was killed resumes when started again;
predictions of other checkpoints, settings or dialogues are never mixed in.

In Python: sgdx_t5x.load_tracker("runs/spandst").track(dialogue, schema)
docs/trackers.md says more.
"""

import argparse
import functools
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.interrupts import ended
from sgdx_t5x.cli.options import (
  add_allowed_modules,
  add_command,
  add_limit,
  add_split,
  check_seed,
  schemas_of,
)
from sgdx_t5x.cli.paths import add_input, add_output, check_no_inputs, corpus_path, path_of_name
from sgdx_t5x.errors import SgdxError, UsageError

if TYPE_CHECKING:
  from sgdx_t5x.corpus.corpus import Corpus
  from sgdx_t5x.corpus.schema import Schema, Service
  from sgdx_t5x.tracking.protocol import Shown, Tracker


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  summary = "track dialogues with a trained checkpoint"
  parser = add_command(subparsers, "track", __doc__, help=summary)
  text = "checkpoint_N or its MODEL_DIR (default: the tracker that ships with the package)"
  add_input(parser, "checkpoints", nargs="*", metavar="CHECKPOINT", help=text)
  text = 'corpus to track: the official archive or one in its layout, or "sample"'
  add_input(parser, "--corpus", help=text, path=corpus_path)
  text = "instead of a corpus: type a dialogue for the services of this schema file"
  add_input(parser, "--schema", metavar="FILE", help=text)
  text = "lengths of features, if not those in config.gin: inputs=512"
  parser.add_argument("--lengths", nargs="+", default=[], metavar="FEATURE=N", help=text)
  add_allowed_modules(parser)
  _add_corpus_options(parser.add_argument_group("with --corpus"))
  _add_schema_options(parser.add_argument_group("with --schema"))
  parser.set_defaults(run=run)
  return parser


def _add_corpus_options(group: Any) -> None:
  add_split(group)
  text = "variants of the schema, as for `sgdx prompts` (default: original)"
  add_input(group, "--variant", several=True, metavar="NAME[=DIR]", help=text, path=path_of_name)
  add_output(group, "--out", metavar="DIR", help="folder of the predictions", folder=True)
  add_limit(group, "only N dialogues of the split, drawn at random")
  text = (
    "states of earlier turns that are read: predicted (default), or gold by a tracker whose "
    "published pipeline reads those; scores then say so"
  )
  group.add_argument("--history", choices=["predicted", "gold"], default="predicted", help=text)
  group.add_argument("--overwrite", action="store_true", help="start over if DIR has predictions")


def _add_schema_options(group: Any) -> None:
  text = "variants of the schema, tracked side by side with it"
  add_input(
    group, "--variant-schema", several=True, metavar="NAME=FILE", help=text, path=path_of_name
  )
  text = "instead of the prompt: count the turns of these dialogues whose state a variant changes"
  add_input(group, "--dialogues", metavar="FILE", help=text)
  text = "services to track (default: all of the schema)"
  group.add_argument("--service", nargs="+", metavar="NAME", help=text)


def run(args: argparse.Namespace) -> int:
  """Tracks a corpus, or opens the prompt. Returns 0. Raises SgdxError for bad input."""
  _check_usage(args)
  return _track_corpus(args) if args.corpus else _converse(args)


def _check_usage(args: argparse.Namespace) -> None:
  """Refuses options of the other mode."""
  if bool(args.corpus) == bool(args.schema):
    raise UsageError(
      "--corpus and --schema" if args.corpus else "neither --corpus nor --schema",
      expected="either a corpus to track, or a schema to type a dialogue for",
      fix="pass --corpus sample --out DIR, or --schema mine.json",
    )
  mode, other_mode = ("--corpus", "--schema") if args.corpus else ("--schema", "--corpus")
  # The parser groups the options by mode; one that differs from its default was given.
  (group,) = (x for x in args.parser._action_groups if x.title == f"with {other_mode}")
  for option in group._group_actions:
    name = option.option_strings[0]
    if getattr(args, option.dest) != option.default:
      instead = {"--variant": "--variant-schema", "--variant-schema": "--variant"}.get(name)
      raise UsageError(
        f"{name} with {mode}",
        expected=f"{name} only with {other_mode}",
        fix=f"use {instead}" if instead else "leave it out",
      )
  if args.dialogues and not args.variant_schema:
    raise UsageError(
      "--dialogues without --variant-schema",
      expected="the same schema in other words, to compare states with",
      fix="add --variant-schema v2=renamed.json; or leave --dialogues out to type a dialogue",
    )
  check_seed(args)
  if args.corpus and not args.out:
    raise UsageError(
      "--corpus without --out", expected="a folder for the predictions", fix="add --out DIR"
    )


def _lengths(args: argparse.Namespace) -> dict[str, int]:
  lengths = {}
  for item in args.lengths:
    name, _, number = item.partition("=")
    if not name or not number.isdecimal():
      raise UsageError(
        f"--lengths {item}",
        expected="FEATURE=N with a whole number N, e.g. of tokens",
        fix="pass, for example, inputs=512",
      )
    lengths[name] = int(number)
  return lengths


def _open(args: argparse.Namespace) -> "Tracker":
  """Loads the tracker and prints which it is."""
  from sgdx_t5x.cli.progress import native_stderr_hidden
  from sgdx_t5x.tracking.opening import is_packed, open_tracker, with_gold_history

  lengths, allowed = _lengths(args), args.allow_module
  # What TensorFlow prints is hidden; a packed tracker loads none, and may fetch its encoder.
  with native_stderr_hidden(args.debug or is_packed(*args.checkpoints)):
    tracker = open_tracker(*args.checkpoints, lengths=lengths, allow_modules=allowed)
  if args.history == "gold":
    tracker = with_gold_history(tracker)
  source = ", ".join(args.checkpoints) or "the one that ships with sgdx_t5x (docs/trackers.md)"
  print(f"tracker: {tracker.name}, {source}", file=sys.stderr)
  return tracker


# --- a corpus ------------------------------------------------------------------------------


def _track_corpus(args: argparse.Namespace) -> int:
  from sgdx_t5x.cli.options import check_least, parse_variants
  from sgdx_t5x.cli.progress import native_stderr_hidden, progress
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.corpus.subset import Subset
  from sgdx_t5x.corpus.variants import ORIGINAL

  check_least(args, "limit", 1, "omit --limit to use the whole split")
  corpus: Corpus = open_corpus(args.corpus)
  names, schemas = parse_variants(args.variant or [ORIGINAL], corpus)
  variants = {name: schemas.get(args.split, name) for name in names}
  if args.limit is not None:
    corpus = Subset(corpus, {args.split: args.limit}, args.seed)
  if args.overwrite:  # before the tracker is loaded, which takes longer than all of the above
    check_no_inputs(args, [args.out])
  tracker = _open(args)
  from sgdx_t5x.tracking.predicting import track_split

  try:
    with progress("frames") as update, native_stderr_hidden(args.debug):
      folder, on_progress = pathlib.Path(args.out), functools.partial(update, "tracking")
      options: dict[str, Any] = {"overwrite": args.overwrite, "on_progress": on_progress}
      tracked = list(track_split(tracker, corpus, args.split, variants, folder, **options))
  except KeyboardInterrupt as stop:
    again = "without --overwrite " if args.overwrite else ""
    return ended(stop, f"run the same command {again}again to resume")
  for variant in tracked:
    resumed = f", {variant.resumed:,} of them from an earlier run" if variant.resumed else ""
    print(f"written: {variant.folder}: {variant.frames:,} frames{resumed}", file=sys.stderr)
  _print_next(args, variants)
  return 0


def _print_next(args: argparse.Namespace, variants: "Mapping[str, Schema]") -> None:
  from sgdx_t5x.cli.output import folded_command

  command = ["sgdx", "score", "--corpus", args.corpus, "--split", args.split, "--predictions"]
  command += [f"{name}={pathlib.Path(args.out) / name}" for name in variants]
  command += schemas_of(args.variant)
  if args.limit is not None:
    command.append("--allow-missing")
  print(folded_command(command), file=sys.stderr)


# --- the terminal --------------------------------------------------------------------------


def _converse(args: argparse.Namespace) -> int:
  """Opens the prompt, or compares the states of --dialogues in all wordings. Returns 0."""
  from sgdx_t5x.cli.options import parse_named
  from sgdx_t5x.corpus.variants import ORIGINAL
  from sgdx_t5x.tracking.conversations import checked_view, read_schema

  files = parse_named(
    [f"{ORIGINAL}={args.schema}", *args.variant_schema],
    "--variant-schema",
    "NAME=FILE",
    "pass, for example, --variant-schema v1=mine_v1.json",
  )
  schemas = {name: read_schema(file) for name, file in files.items()}
  original = schemas[ORIGINAL]
  services = tuple(dict.fromkeys(args.service or original.names))
  for name in services:
    original[name]  # raises if there is none, before the tracker is loaded, which takes seconds
  tracker = _open(args)
  _say_never_filled([original[name] for name in services])
  shown_by_variant = {}
  for name, schema in schemas.items():
    shown_by_variant[name] = checked_view(tracker, original, name, schema, services)
  if args.dialogues:
    return _compare_wordings(args.dialogues, tracker, shown_by_variant, services)
  from sgdx_t5x.cli.conversation import Conversation

  Conversation(tracker, shown_by_variant, services, args.debug).run()
  return 0


def _say_never_filled(services: "Sequence[Service]") -> None:
  """Prints the slots that no intent has, which no state will have: an own schema may lack them."""
  for service in services:
    known: set[str] = set()
    for intent in service.intents:
      known.update(intent.required_slots, intent.optional_slots, intent.result_slots)
    names = [slot.name for slot in service.slots if slot.name not in known]
    if names:
      print(
        f"never filled, as no intent of {service.name} has them: {', '.join(names)}",
        file=sys.stderr,
      )


def _compare_wordings(
  path: str, tracker: "Tracker", shown_by_variant: "Mapping[str, Shown]", services: Sequence[str]
) -> int:
  """Prints in how many turns each variant's states differ from the original's, by slot."""
  from sgdx_t5x.cli import output
  from sgdx_t5x.corpus.variants import ORIGINAL
  from sgdx_t5x.tables import Table, count, percent
  from sgdx_t5x.tracking.rewording import count_changes, read_typed

  variants = dict(shown_by_variant)
  original = variants.pop(ORIGINAL)
  dialogues = read_typed(path)
  changes, filled = count_changes(tracker, dialogues, original, variants, services)
  turns = next(iter(changes.values())).turns  # the same for all: those of the dialogues
  if not turns:
    raise SgdxError(
      f"{path}: no user turn about {', '.join(services)}",
      expected="dialogues about the services that are tracked",
      fix='for example [["I need a taxi.", "Where to?"]]; or name other services',
    )
  shares = [percent(change.changed / turns) for change in changes.values()]
  rows = [("any slot", count(turns), *shares)]
  for (service, slot), number in sorted(filled.items()):
    shares = [percent(change.by_slot[service, slot] / number) for change in changes.values()]
    rows.append((f"{service} {slot}", count(number), *shares))
  title = "% of turns whose state differs from the original wording's (of a slot: with a value)"
  header = ("slot", "turns", *variants)
  skipped = sum(not dialogue.tracked(services) for dialogue in dialogues)
  notes = [f"left out, about other services: {skipped:,} of {len(dialogues):,} dialogues"]
  output.show("text", [Table(title, header, tuple(rows))], {}, notes=notes if skipped else ())
  return 0
