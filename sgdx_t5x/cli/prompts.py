"""`sgdx prompts`: the prompts of a split as JSONL, for any language model to answer or train on."""

import argparse
import contextlib
import dataclasses
import json
import shlex
import sys
import textwrap
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from sgdx_t5x.cli.options import add_command, add_corpus, add_split, add_variants, schemas_of
from sgdx_t5x.cli.output import folded_command
from sgdx_t5x.cli.paths import STDOUT, add_input, add_output, style_path
from sgdx_t5x.cli.terminal import exact_stdout
from sgdx_t5x.tools import requests_command as requests

if TYPE_CHECKING:
  from sgdx_t5x.corpus.corpus import Corpus
  from sgdx_t5x.prompts.protocol import PromptFormat
  from sgdx_t5x.prompts.rows import Pairs

_WIDTH = 80
_EPILOG = """\
examples:
  The test split with the schemas of one variant:
    sgdx prompts --corpus sgd.zip --variant v3 --out v3.jsonl

  At most 5,000 prompts per variant, for the same frames, e.g. for a paid API:
    sgdx prompts --corpus sgd.zip --variant original v1 v2 v3 v4 v5 \\
      --limit 5000 --out prompts.jsonl

  Score the answers:
    sgdx score --corpus sgd.zip --predictions all=answers.jsonl --allow-missing

  D3ST, one prompt per frame, with targets, to train any model:
    sgdx prompts --corpus sgd.zip --split train --variant original \\
      --prompt-style format=d3st --targets --out train.jsonl

  Requests with tools, one per frame; first an estimate of their cost:
    sgdx prompts --corpus sgd.zip --variant original v3 --as tools \\
      --delivery distractors:10 --limit 500 --dry-run --price 2.50 10
    sgdx prompts --corpus sgd.zip --variant original v3 --as tools \\
      --delivery distractors:10 --limit 500 --out requests.jsonl

A variant is original, v1 ... v5, bt_zh, bt_ja, bt_ko or para_1 ... para_5
(back-translations and paraphrases of SGD's train split ship with this package),
corrupt_SEED, or NAME=DIR for schemas of your own in DIR/SPLIT/schema.json.

Each line is
  {"id": "v3/test/1_00000-002-Banks_2/amount", "prompt": "[USER] ... [slot] ."}
and for a categorical slot also "possible_values": [...]; "none" and "dontcare"
are possible answers as well. Answers are lines {"id": ..., "prediction": ...}.

The id of a prompt for a whole frame ends in /*. --prompt-style names the
format, if not T5DST, and sets fields of its style: docs/formats.md,
docs/tools/README.md

An instruction for a language model:

  The prompt is a dialogue and, after [slot], a slot. Answer with nothing but
  the value that the user wants for the slot by the end of the dialogue: in the
  words of the dialogue, or one of the values after [PVs]; "dontcare" if the
  user has no preference; "none" if there is no value yet.

--limit samples complete dialogues and spreads them evenly over services,
unlike the split: compare scores only for the same sample. The same seed gives
the same sample.
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  parser = add_command(
    subparsers, "prompts", __doc__, _EPILOG, "write prompts for any language model to answer"
  )
  add_corpus(parser)
  add_split(parser)
  add_variants(parser, "variants of the schema, see below")
  add_output(
    parser,
    "--out",
    metavar="FILE",
    help="JSONL to write; - for stdout",
  )
  parser.add_argument(
    "--targets",
    action="store_true",
    help='add the gold answers as "target", to train a model; rows then reveal the gold states',
  )
  parser.add_argument(
    "--limit", type=int, metavar="N", help="at most N prompts per variant, from complete dialogues"
  )
  parser.add_argument(
    "--seed",
    type=int,
    default=0,
    help="random seed of --limit, distractors and --shots (default: 0)",
  )
  add_input(
    parser,
    "--prompt-style",
    nargs="+",
    default=[],
    metavar="FIELD=VALUE",
    help="format and style, if not T5DST's default: format=d3st values=a",
    path=style_path,
  )
  requests.add_options(parser)
  parser.set_defaults(run=run)
  return parser


def run(args: argparse.Namespace) -> int:
  """Writes the prompts and prints what to do next. Returns 0. Raises SgdxError for bad input."""
  from sgdx_t5x.cli.options import check_least, parse_variants
  from sgdx_t5x.cli.prompt_style import parse_format
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.files import atomic_write
  from sgdx_t5x.prompts import provenance
  from sgdx_t5x.prompts.protocol import service_pairs
  from sgdx_t5x.prompts.rows import services_of
  from sgdx_t5x.tools import ToolCalls

  expected = "at least 1 prompt"
  check_least(args, "limit", 1, "omit --limit to use the whole split", expected)
  form = requests.parse(args)
  prompt_format = ToolCalls(form.style) if form else parse_format(args.prompt_style)
  corpus = open_corpus(args.corpus)
  variants, schemas = parse_variants(args.variant, corpus)
  reworded = {
    corpus.name_in_ids(args.split, variant): schemas.get(args.split, variant)
    for variant in variants
  }
  if form:
    pairs = {v: service_pairs(corpus.schema(args.split), x) for v, x in reworded.items()}
    return requests.write(args, corpus, pairs, form, _choose(corpus, args, prompt_format))
  provenance(prompt_format, corpus, ())  # refuses files that do not match, as scoring would
  services = services_of(prompt_format, args.split, corpus.schema(args.split), reworded)
  whole = args.out != STDOUT
  with atomic_write(args.out, "--out") if whole else contextlib.nullcontext(exact_stdout()) as out:
    chosen = _choose(corpus, args, prompt_format)
    written = _write(corpus, args, prompt_format, services, chosen, out)
  _print_summary(corpus, args, list(services), prompt_format.answer, written)
  return 0


@dataclasses.dataclass
class _Written:
  """Counts of what was written, and of the split."""

  prompts: int = 0
  frames: int = 0
  dialogues: int = 0
  of_dialogues: int = 0


def _choose(
  corpus: "Corpus", args: argparse.Namespace, prompt_format: "PromptFormat"
) -> Collection[str] | None:
  """Returns the ids of the dialogues to write; None for all."""
  from sgdx_t5x.prompts.selection import choose_dialogues, dialogue_sizes

  if args.limit is None:
    return None
  dialogues = requests.dialogues(corpus, args, "choosing")
  sizes = list(dialogue_sizes(dialogues, corpus.schema(args.split), prompt_format))
  if not any(size.num_prompts for size in sizes):
    raise requests.nothing(corpus, args.split)
  return choose_dialogues(sizes, args.limit, args.seed)


def _write(
  corpus: "Corpus",
  args: argparse.Namespace,
  prompt_format: "PromptFormat",
  services: "Mapping[str, Pairs]",
  chosen: Collection[str] | None,
  out: TextIO,
) -> _Written:
  from sgdx_t5x.prompts.rows import dialogue_rows

  written = _Written()
  for dialogue in requests.dialogues(corpus, args, "writing"):
    written.of_dialogues += 1
    if chosen is not None and dialogue.dialogue_id not in chosen:
      continue
    rows = list(dialogue_rows(prompt_format, dialogue, args.split, services, args.targets))
    out.writelines(f"{json.dumps(row)}\n" for row in rows)
    written.prompts += len(rows)
    written.frames += sum(1 for _ in dialogue.user_frames())
    written.dialogues += 1
  if not written.prompts:
    raise requests.nothing(corpus, args.split)
  return written


# --- output --------------------------------------------------------------------------------


def _print_summary(
  corpus: "Corpus",
  args: argparse.Namespace,
  variants: list[str],
  answer: str,
  written: _Written,
) -> None:
  from sgdx_t5x.corpus.variants import untagged

  file = f"{args.out}: " if args.out != STDOUT else ""
  lines = [
    f"written: {file}{written.prompts:,} prompts{' with targets' * args.targets} "
    f"({', '.join(variants)})",
    f"         {written.frames:,} frames, {written.dialogues:,} of {written.of_dialogues:,} "
    f"dialogues of {args.split}",
  ]
  lines += requests.incomplete(corpus, args.split, written.of_dialogues)
  command = ["sgdx", "score", "--corpus", args.corpus, "--split", args.split, "--predictions"]
  command.append(f"{untagged(variants[0])[1] if len(variants) == 1 else 'all'}=ANSWERS.jsonl")
  command += schemas_of(args.variant)
  if args.prompt_style:
    command += ["--prompt-style", *args.prompt_style]
  if written.dialogues < written.of_dialogues:
    command.append("--allow-missing")
  what = f'ANSWERS.jsonl holds {{"id": ..., "prediction": ...}} per line; prediction is {answer}'
  lines.append(folded_command(tuple(map(shlex.quote, command)), "next:    "))
  lines += textwrap.wrap(what, _WIDTH, initial_indent=" " * 9, subsequent_indent=" " * 9)
  print("\n".join(lines), file=sys.stderr)
