"""`sgdx prompts --as tools`: requests to a language model with tools, and what they would cost."""

import argparse
import contextlib
import dataclasses
import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TextIO

from sgdx_t5x.cli.options import check_price, schemas_of
from sgdx_t5x.cli.output import folded_command
from sgdx_t5x.cli.paths import STDOUT
from sgdx_t5x.cli.terminal import exact_stdout
from sgdx_t5x.errors import SgdxError, UsageError

if TYPE_CHECKING:
  from sgdx_t5x.corpus.corpus import Corpus
  from sgdx_t5x.corpus.dialogue import Dialogue
  from sgdx_t5x.prompts.protocol import ServicePair
  from sgdx_t5x.tools.requests import RequestForm, Size

_OWN = ("delivery", "shots", "openai-batch", "dry-run", "price")  # options of requests only


def add_options(parser: argparse.ArgumentParser) -> None:
  """Adds the options of requests to `sgdx prompts`."""
  group = parser.add_argument_group("requests with tools")
  group.add_argument(
    "--as", dest="form", choices=("text", "tools"), default="text", help="text (default), or tools"
  )
  group.add_argument(
    "--delivery",
    metavar="TOOLS",
    help="tools that a request shows: gold (default: those of the frame's service), all, "
    "retrieved:K, distractors:N",
  )
  text = "first show N examples from train with their calls, drawn with --seed (default: none)"
  group.add_argument("--shots", type=int, default=0, metavar="N", help=text)
  group.add_argument(
    "--openai-batch",
    metavar="MODEL",
    help="write lines in OpenAI's batch format, for this model",
  )
  group.add_argument(
    "--dry-run", action="store_true", help="write nothing; count requests and estimate tokens"
  )
  group.add_argument(
    "--price",
    nargs=2,
    type=float,
    metavar=("INPUT", "OUTPUT"),
    help="prices per million input and output tokens, to estimate the cost",
  )


def parse(args: argparse.Namespace) -> "RequestForm | None":
  """Returns how requests are written; None for prompts as text.

  Raises:
    UsageError: options that do not fit together.
  """
  given = [f"--{name}" for name in _OWN if getattr(args, name.replace("-", "_"))]
  if args.form != "tools":
    if given:
      raise UsageError(
        f"{', '.join(given)} without --as tools",
        expected=f"--as tools, which {', '.join(given)} belong{'s' * (len(given) == 1)} to",
        fix="add --as tools, or omit the rest",
      )
  elif args.prompt_style or (args.targets and args.openai_batch):
    raise UsageError(
      "--as tools with --prompt-style" if args.prompt_style else "--targets with --openai-batch",
      expected="--delivery, which selects what requests show"
      if args.prompt_style
      else "no gold answers in a batch file, which is sent unchanged",
      fix=f"omit --{'prompt-style' if args.prompt_style else 'targets'}",
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
  if args.form != "tools":
    return None
  from sgdx_t5x.tools.delivery import ToolStyle
  from sgdx_t5x.tools.requests import RequestForm

  style = ToolStyle(args.delivery or ToolStyle().delivery, shots=args.shots)
  if style.kind == "distractors" or style.shots:
    style = dataclasses.replace(style, seed=args.seed)
  return RequestForm(style, args.openai_batch or "", args.targets)


def write(
  args: argparse.Namespace,
  corpus: "Corpus",
  services: "Mapping[str, Mapping[str, ServicePair]]",
  form: "RequestForm",
  chosen: Collection[str] | None,
) -> int:
  """Writes the requests of the chosen dialogues, or counts them. Returns 0.

  Args:
    args: of the command.
    corpus: the corpus of the dialogues.
    services: variant -> services of the split.
    form: see `RequestForm`.
    chosen: ids of the dialogues; None for all.

  Raises:
    SgdxError: nothing to write, or a file that cannot be written.
  """
  from sgdx_t5x.tools.examples import examples_text
  from sgdx_t5x.tools.requests import Requests

  shots, seed = form.style.shots, form.style.seed
  train = corpus.dialogues("train") if shots else ()
  schema = corpus.schema("train" if shots else args.split)
  made = Requests(args.split, services, form, examples_text(train, schema, shots, seed))
  num_dialogues = 0
  with _output(args) as out:
    for dialogue in dialogues(corpus, args, "counting" if args.dry_run else "writing"):
      num_dialogues += 1
      if chosen is None or dialogue.dialogue_id in chosen:
        lines = list(made.lines(dialogue))
        if out:
          out.writelines(lines)
    if not made.size.requests:
      raise nothing(corpus, args.split)
  partial = chosen is not None and len(chosen) < num_dialogues
  lines = [*incomplete(corpus, args.split, num_dialogues)]
  lines += _summary(args, list(services), made.size, partial)
  print("\n".join(lines), file=sys.stderr)
  return 0


@contextlib.contextmanager
def _output(args: argparse.Namespace) -> Iterator[TextIO | None]:
  """Yields the file to write; None where nothing is written."""
  from sgdx_t5x.files import atomic_write

  if args.dry_run:
    yield None
  elif args.out == STDOUT:
    yield exact_stdout()
  else:
    with atomic_write(args.out, "--out") as file:
      yield file


def _summary(
  args: argparse.Namespace, variants: list[str], size: "Size", partial: bool
) -> Iterator[str]:
  what = f"{size.requests:,} requests ({', '.join(variants)})"
  place = "" if args.out in (None, STDOUT) else f"{args.out}: "
  yield f"would be written: {what}" if args.dry_run else f"written: {place}{what}"
  read, written = size.tokens
  yield f"tokens:  about {read:,} input, {written:,} output, at 4 characters per token"
  if args.price:
    cost = (read * args.price[0] + written * args.price[1]) / 1_000_000
    yield f"cost:    about {cost:,.2f}, plus any text that the model writes besides its calls"
  if args.dry_run:
    return
  command = ["sgdx", "score", "--calls", "--corpus", args.corpus, "--split", args.split]
  command += ["--predictions", "all=ANSWERS.jsonl", *schemas_of(args.variant)]
  command += ["--allow-missing"] if partial else []
  yield folded_command(tuple(map(shlex.quote, command)), "next:    ")


def dialogues(corpus: "Corpus", args: argparse.Namespace, what: str) -> "Iterable[Dialogue]":
  """Returns a split's dialogues, with a progress bar unless output goes to stdout."""
  from sgdx_t5x.cli.progress import track

  total = corpus.expected_dialogues(args.split)
  return track(corpus.dialogues(args.split), what, "dialogues", total, args.out != STDOUT)


def incomplete(corpus: "Corpus", split: str, number: int) -> Iterator[str]:
  """Yields a warning if a split, which has `number` dialogues, lacks published ones."""
  if not corpus.is_complete(split, number):
    yield f"PARTIAL: the corpus has {corpus.part(split, number)}"


def nothing(corpus: "Corpus", split: str) -> SgdxError:
  """Returns the error for a split without prompts."""
  return SgdxError(
    f"{corpus.origin}: no prompts in split {split}",
    expected="dialogues with user frames of services that have slots",
    available=corpus.file_counts(),
    fix="choose a split with dialogues",
  )
