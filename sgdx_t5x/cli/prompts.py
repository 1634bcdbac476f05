"""`sgdx prompts`: the prompts of a split as JSONL, for any language model to answer or train on.

examples:
  The test split with the schemas of one variant:
    sgdx prompts --corpus sgd.zip --variant v3 --out v3.jsonl

  100 dialogues, the same for every variant and format, e.g. for a paid API:
    sgdx prompts --corpus sgd.zip --variant original v1 v2 v3 v4 v5 \\
      --limit 100 --out prompts.jsonl

  One dialogue, to look at:
    sgdx prompts --corpus sgd.zip --variant v3 --dialogue 1_00000 --out -

  Score the answers:
    sgdx score --corpus sgd.zip --predictions all=answers.jsonl --allow-missing

  D3ST, one prompt per frame, with targets, to train any model:
    sgdx prompts --corpus sgd.zip --split train --variant original \\
      --prompt-style format=d3st --targets --out train.jsonl

A variant is original, v1 ... v5, bt_zh, bt_ja, bt_ko or para_1 ... para_15
(back-translations and paraphrases of SGD's train split ship with this package),
corrupt_SEED, or NAME=DIR for schemas of your own in DIR/SPLIT/schema.json.

Each line is
  {"id": "v3/test/1_00000-002-Banks_2/amount", "prompt": "[USER] ... [slot] ."}
and for a categorical slot also "possible_values": [...]; "none" and "dontcare"
are possible answers as well. Answers are lines {"id": ..., "prediction": ...}.
The id of a prompt for a whole frame ends in /*. --prompt-style names the
format, if not T5DST, and sets fields of its style.

docs/formats.md describes them, and has an instruction for language models.

--limit samples dialogues and spreads them evenly over services, unlike the
split: compare scores only for the same sample.
"""

import argparse
import contextlib
import dataclasses
import json
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from sgdx_t5x.cli import options
from sgdx_t5x.cli.output import folded_command
from sgdx_t5x.cli.paths import STDOUT, add_output
from sgdx_t5x.cli.terminal import exact_stdout
from sgdx_t5x.errors import SgdxError, UsageError, nearest

if TYPE_CHECKING:
  from sgdx_t5x.corpus.corpus import Corpus
  from sgdx_t5x.corpus.dialogue import Dialogue
  from sgdx_t5x.corpus.schema import Schema
  from sgdx_t5x.prompts.protocol import PromptFormat
  from sgdx_t5x.prompts.rows import Pairs

_WIDTH = 80


def add_parser(subparsers: Any) -> None:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  summary = "write prompts for any language model to answer"
  parser = options.add_command(subparsers, "prompts", __doc__, help=summary)
  add_options(parser)
  options.add_prompt_style(parser, "format and style, if not T5DST's default: format=d3st values=a")
  parser.set_defaults(run=run)


def add_options(parser: argparse.ArgumentParser, needs_out: bool = True) -> None:
  """Adds the options for which dialogues to write, and where.

  Args:
    parser: of the command.
    needs_out: whether the command needs `--out`.
  """
  options.add_corpus(parser)
  options.add_split(parser)
  options.add_variants(parser, "variants of the schema, see below")
  text = "JSONL to write; - for stdout"
  add_output(parser, "--out", metavar="FILE", required=needs_out, stdout=True, help=text)
  text = 'add the gold answers as "target", to train a model; rows then reveal the gold states'
  parser.add_argument("--targets", action="store_true", help=text)
  parser.add_argument("--dialogue", nargs="+", metavar="ID", help="only these dialogues")
  options.add_limit(parser, "only N dialogues, the same for every format")


def run(args: argparse.Namespace) -> int:
  """Writes the prompts and prints what to do next. Returns 0. Raises SgdxError for bad input."""
  from sgdx_t5x.cli.prompt_style import parse_format
  from sgdx_t5x.files.writing import atomic_write
  from sgdx_t5x.prompts import provenance
  from sgdx_t5x.prompts.rows import services_of

  options.check_seed(args)
  prompt_format = parse_format(args.prompt_style)
  corpus, schemas_by_variant = open_all(args)
  provenance(prompt_format, corpus, ())  # refuses files that do not match, as scoring would
  original = corpus.schema(args.split)
  services_by_variant = services_of(prompt_format, args.split, original, schemas_by_variant)
  is_file = args.out != STDOUT
  with (
    atomic_write(args.out, "--out") if is_file else contextlib.nullcontext(exact_stdout()) as out
  ):
    dialogue_ids = choose(corpus, args)
    counts = _write(corpus, args, prompt_format, services_by_variant, dialogue_ids, out)
  _print_summary(corpus, args, list(services_by_variant), prompt_format.answer, counts)
  return 0


def open_all(args: argparse.Namespace) -> "tuple[Corpus, dict[str, Schema]]":
  """Returns the corpus, and name of a variant in ids -> its schema. Raises SgdxError."""
  from sgdx_t5x.corpus.opening import open_corpus

  options.check_least(args, "limit", 1, "omit --limit to use the whole split")
  if args.dialogue and args.limit:
    raise UsageError(
      "--limit with --dialogue", expected="one of the two", fix="omit --limit or --dialogue"
    )
  corpus = open_corpus(args.corpus)
  variants, schemas = options.parse_variants(args.variant, corpus)
  schemas_by_variant = {}
  for variant in variants:
    schemas_by_variant[corpus.name_in_ids(args.split, variant)] = schemas.get(args.split, variant)
  return corpus, schemas_by_variant


@dataclasses.dataclass
class _Written:
  """Counts of what was written, and of the split."""

  prompts: int = 0
  frames: int = 0
  dialogues: int = 0
  of_dialogues: int = 0


def choose(corpus: "Corpus", args: argparse.Namespace) -> Collection[str] | None:
  """Returns the ids of the dialogues to write; None for all.

  Raises:
    UsageError: the split lacks a dialogue of `--dialogue`.
  """
  from sgdx_t5x.prompts.selection import choose_dialogues, frame_counts

  if args.limit is None and not args.dialogue:
    return None
  frames = frame_counts(read(corpus, args, "choosing"))
  if not any(frames.values()):
    raise no_prompts(corpus, args.split)
  for dialogue_id in args.dialogue or ():
    if dialogue_id not in frames:
      raise UsageError(
        f"--dialogue {dialogue_id}",
        expected=f"ids of dialogues in split {args.split}",
        available=nearest(dialogue_id, frames),
        fix="correct the id, or choose its split with --split",
      )
  return args.dialogue or choose_dialogues(frames, args.limit, args.seed)


def _write(
  corpus: "Corpus",
  args: argparse.Namespace,
  prompt_format: "PromptFormat",
  services: "Mapping[str, Pairs]",
  dialogue_ids: Collection[str] | None,
  out: TextIO,
) -> _Written:
  from sgdx_t5x.prompts.rows import dialogue_rows

  counts = _Written()
  for dialogue in read(corpus, args, "writing"):
    counts.of_dialogues += 1
    if dialogue_ids is not None and dialogue.dialogue_id not in dialogue_ids:
      continue
    rows = list(dialogue_rows(prompt_format, dialogue, args.split, services, args.targets))
    out.writelines(f"{json.dumps(row)}\n" for row in rows)
    counts.prompts += len(rows)
    counts.frames += sum(1 for _ in dialogue.user_frames())
    counts.dialogues += 1
  if not counts.prompts:
    raise no_prompts(corpus, args.split)
  return counts


def read(corpus: "Corpus", args: argparse.Namespace, task: str) -> "Iterable[Dialogue]":
  """Returns a split's dialogues, with a progress bar unless output goes to stdout."""
  from sgdx_t5x.cli.progress import track

  total = corpus.expected_dialogues(args.split)
  return track(corpus.dialogues(args.split), task, "dialogues", total, args.out != STDOUT)


def incomplete(corpus: "Corpus", split: str, number: int) -> Iterator[str]:
  """Yields a warning if a split, which has `number` dialogues, lacks published ones."""
  if not corpus.is_complete(split, number):
    yield f"PARTIAL: the corpus has {corpus.part(split, number)}"


def no_prompts(corpus: "Corpus", split: str) -> SgdxError:
  """Returns the error for a split without prompts."""
  return SgdxError(
    f"{corpus.origin}: no prompts in split {split}",
    expected="dialogues with user frames of services that have slots",
    available=corpus.file_counts(),
    fix="choose a split with dialogues",
  )


# --- output --------------------------------------------------------------------------------


def _print_summary(
  corpus: "Corpus", args: argparse.Namespace, variants: list[str], answer: str, counts: _Written
) -> None:
  from sgdx_t5x.corpus.variants import untagged

  file = f"{args.out}: " if args.out != STDOUT else ""
  lines = [
    f"written: {file}{counts.prompts:,} prompts{' with targets' * args.targets} "
    f"({', '.join(variants)})",
    f"         {counts.frames:,} frames, {counts.dialogues:,} of {counts.of_dialogues:,} "
    f"dialogues of {args.split}",
  ]
  lines += incomplete(corpus, args.split, counts.of_dialogues)
  command = ["sgdx", "score", "--corpus", args.corpus, "--split", args.split, "--predictions"]
  # The ids of the answers say which variant each is for; a single one is clearer by its name.
  command.append(f"{untagged(variants[0])[1] if len(variants) == 1 else 'all'}=ANSWERS.jsonl")
  command += options.schemas_of(args.variant)
  if args.prompt_style:
    command += ["--prompt-style", *args.prompt_style]
  if counts.dialogues < counts.of_dialogues:  # which scoring would refuse
    command.append("--allow-missing")
  answers = f'ANSWERS.jsonl holds {{"id": ..., "prediction": ...}} per line; prediction is {answer}'
  lines.append(folded_command(command, "next:    "))
  lines += textwrap.wrap(answers, _WIDTH, initial_indent=" " * 9, subsequent_indent=" " * 9)
  print("\n".join(lines), file=sys.stderr)
