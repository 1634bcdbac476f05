"""`sgdx tools requests`: requests to a language model with tools, and what they would cost.

examples:
  One request per frame; first an estimate of the cost:
    sgdx tools requests --corpus sgd.zip --variant original v3 \\
      --delivery distractors:10 --limit 100 --dry-run --price 2.50 10
    sgdx tools requests --corpus sgd.zip --variant original v3 \\
      --delivery distractors:10 --limit 100 --out requests.jsonl

A variant is original, v1 ... v5, bt_zh, bt_ja, bt_ko, para_1 ... para_15,
corrupt_SEED, or NAME=DIR for schemas of your own in DIR/SPLIT/schema.json.
docs/tools/README.md: from requests to a table of scores.
"""

import argparse
import contextlib
import dataclasses
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli import prompts
from sgdx_t5x.cli.options import add_command, schemas_of
from sgdx_t5x.cli.output import folded_command
from sgdx_t5x.cli.paths import STDOUT
from sgdx_t5x.cli.terminal import exact_stdout
from sgdx_t5x.errors import UsageError
from sgdx_t5x.tools.endpoint_options import add_price, check_price, cost

if TYPE_CHECKING:
  from sgdx_t5x.tools.requests import RequestForm, Size


def add_parser(verbs: Any) -> None:
  """Adds the subcommand to those of `sgdx tools`."""
  parser = add_command(verbs, "requests", __doc__)
  prompts.add_options(parser, needs_out=False)
  group = parser.add_argument_group("requests")
  group.add_argument(
    "--delivery",
    metavar="TOOLS",
    help="tools that a request shows: gold (default: those of the frame's service), all, "
    "retrieved:K, distractors:N",
  )
  text = "first show N examples from train with their calls, drawn with --seed (default: none)"
  group.add_argument("--shots", type=int, default=0, metavar="N", help=text)
  group.add_argument(
    "--openai-batch", metavar="MODEL", help="write lines in OpenAI's batch format, for this model"
  )
  group.add_argument(
    "--dry-run", action="store_true", help="write nothing; count requests and estimate tokens"
  )
  add_price(group, "to estimate the cost")
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Writes or counts the requests. Returns 0. Raises SgdxError for bad input."""
  from sgdx_t5x.files.writing import atomic_write
  from sgdx_t5x.prompts.protocol import service_pairs
  from sgdx_t5x.tools.examples import examples_text
  from sgdx_t5x.tools.requests import Requests

  form = _parse(args)
  corpus, reworded = prompts.open_all(args)
  pairs = {v: service_pairs(corpus.schema(args.split), x) for v, x in reworded.items()}
  dialogue_ids = prompts.choose(corpus, args)  # None for all
  shots, seed = form.style.shots, form.style.seed
  train = corpus.dialogues("train") if shots else ()
  schema = corpus.schema("train" if shots else args.split)
  requests = Requests(args.split, pairs, form, examples_text(train, schema, shots, seed))
  num_dialogues = 0
  to_file = not args.dry_run and args.out != STDOUT
  # Standard output is no file that can be written under another name first.
  no_file = contextlib.nullcontext(None if args.dry_run else exact_stdout())
  with atomic_write(args.out, "--out") if to_file else no_file as out:
    for dialogue in prompts.read(corpus, args, "counting" if args.dry_run else "writing"):
      num_dialogues += 1
      if dialogue_ids is None or dialogue.dialogue_id in dialogue_ids:
        lines = [line for _, line in requests.lines(dialogue)]
        if out:
          out.writelines(lines)
    if not requests.size.requests:
      raise prompts.no_prompts(corpus, args.split)
  partial = dialogue_ids is not None and len(dialogue_ids) < num_dialogues
  lines = [*prompts.incomplete(corpus, args.split, num_dialogues)]
  lines += _summary(args, list(pairs), requests.size, partial)
  print("\n".join(lines), file=sys.stderr)
  return 0


def _parse(args: argparse.Namespace) -> "RequestForm":
  """Returns how requests are written. Raises UsageError: options that do not fit together."""
  if args.targets and args.openai_batch:
    raise UsageError(
      "--targets with --openai-batch",
      expected="no gold answers in a batch file, which is sent unchanged",
      fix="omit --targets",
    )
  if not (args.out or args.dry_run):
    raise UsageError("no --out", expected="a file to write", fix="add --out FILE, or --out -")
  check_price(args)
  if args.shots < 0 or (args.shots and args.split == "train"):
    raise UsageError(
      f"--shots {args.shots} for split {args.split}",
      expected="a number of train examples, for requests from another split",
      fix="pass --split dev or test, or omit --shots",
    )
  from sgdx_t5x.tools.delivery import ToolStyle
  from sgdx_t5x.tools.requests import RequestForm

  style = ToolStyle(args.delivery or ToolStyle().delivery, shots=args.shots)
  if style.kind == "distractors" or style.shots:
    style = dataclasses.replace(style, seed=args.seed)
  return RequestForm(style, args.openai_batch or "", args.targets)


def _summary(
  args: argparse.Namespace, variants: list[str], size: "Size", partial: bool
) -> Iterator[str]:
  summary = f"{size.requests:,} requests ({', '.join(variants)})"
  place = "" if args.out in (None, STDOUT) else f"{args.out}: "
  yield f"would be written: {summary}" if args.dry_run else f"written: {place}{summary}"
  num_input, num_output = size.tokens
  yield f"tokens:  about {num_input:,} input, {num_output:,} output, at 4 characters per token"
  if args.price:
    total = cost(args.price, num_input, num_output)
    yield f"cost:    about {total:,.2f}, plus any text that the model writes besides its calls"
  if args.dry_run:
    return
  command = ["sgdx", "tools", "score", "--corpus", args.corpus, "--split", args.split]
  command += ["--predictions", "all=ANSWERS.jsonl", *schemas_of(args.variant)]
  command += ["--allow-missing"] if partial else []
  yield folded_command(command, "next:    ")
