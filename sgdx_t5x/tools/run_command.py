"""`sgdx tools run`: asks a language model's endpoint for the answers to requests with tools.

examples:
  From an endpoint to the table of six variants:
    sgdx tools requests --corpus sgd.zip --variant original v1 v2 v3 v4 v5 \\
      --out requests.jsonl
    sgdx tools run requests.jsonl --endpoint http://localhost:8000/v1 \\
      --model NAME --out answers.jsonl --corpus sgd.zip

  100 dialogues first, from a paid service, with the key in OPENAI_API_KEY:
    sgdx tools run requests.jsonl --endpoint https://HOST/v1 --model NAME \\
      --param temperature=0 --limit 100 --price 2.50 10 --out answers.jsonl

Answers are written to --out as they arrive. The same command again asks for
those that are missing; after a kill, at most the requests that were in flight
are sent twice. Requests with equal text, model and parameters are sent once.
docs/tools/README.md says more.
"""

import argparse
import contextlib
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.interrupts import ended
from sgdx_t5x.cli.options import (
  add_command,
  add_limit,
  add_schemas,
  check_least,
  check_seed,
  parse_schemas,
  schemas_of,
)
from sgdx_t5x.cli.paths import add_input, add_output, corpus_path
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.tools.endpoint_options import (
  add_service,
  api_key,
  cost,
  make_runner,
  request_parameters,
  run_until_signal,
  say_tokens,
)
from sgdx_t5x.tools.score_command import add_calls_from_text

if TYPE_CHECKING:
  from sgdx_t5x.tools.endpoints.answer_file import AnswerFile
  from sgdx_t5x.tools.endpoints.request_file import Request, RequestFile
  from sgdx_t5x.tools.endpoints.runner import Runner


def add_parser(subparsers: Any) -> None:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  parser = add_command(subparsers, "run", __doc__)
  text = "output of `sgdx tools requests`, with or without --openai-batch"
  add_input(parser, "requests", metavar="REQUESTS.jsonl", help=text)
  text = "http://HOST:PORT/v1 of an OpenAI-compatible API"
  parser.add_argument("--endpoint", required=True, metavar="URL", help=text)
  text = "model to ask (default: the one that the requests name)"
  parser.add_argument("--model", default="", metavar="NAME", help=text)
  text = "answers to write, or to resume; `sgdx tools score` reads them"
  add_output(parser, "--out", required=True, metavar="ANSWERS.jsonl", help=text)
  text = "answers of other runs, to reuse for identical requests"
  add_input(parser, "--reuse", nargs="+", default=[], metavar="FILE", help=text)
  text = "to score the answers when complete, and to tell --limit which services are seen"
  add_input(parser, "--corpus", help=text, path=corpus_path)
  add_schemas(parser)
  add_calls_from_text(parser)
  text = "only N dialogues, in all their variants, spread over services, seen and unseen"
  add_limit(parser, text)
  add_service(parser)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Asks, and prints a summary. Returns 0, 130 (Ctrl-C) or 143 (SIGTERM)."""
  check_seed(args)
  check_least(args, "limit", 1, "omit it to use the default")
  parameters = request_parameters(args)
  api_key(args)  # an unfit key is refused before the requests are read
  from sgdx_t5x.errors import require

  require("aiohttp", extra="tools", why="sgdx tools run")
  from sgdx_t5x.files.locks import lock
  from sgdx_t5x.tools.endpoints.answer_file import AnswerFile
  from sgdx_t5x.tools.endpoints.endpoint import chat_url
  from sgdx_t5x.tools.endpoints.request_file import RequestFile

  chat_url(args.endpoint)
  file = RequestFile(args.requests, args.model, parameters)
  _check_corpus(args, file)
  selected = _wanted(args, file)
  with contextlib.nullcontext() if args.dry_run else lock(args.out):
    answers = AnswerFile(args.out, file)
    answers.reuse(args.reuse, {request.digest for request in selected})
    if args.dry_run:
      return _dry_run(args, selected, answers)
    with contextlib.closing(answers), file:
      if code := _ask(args, file, selected, answers):
        return code
  code = _score(args, file)
  if not args.corpus:
    _check_calls(args, answers)
  return code


# --- options -------------------------------------------------------------------------------


def _wanted(args: argparse.Namespace, file: "RequestFile") -> "list[Request]":
  """Returns the requests chosen by --limit, or all."""
  if args.limit is None:
    return file.requests
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.tools.endpoints.request_file import choose

  seen_services = open_corpus(args.corpus).seen_services(file.split) if args.corpus else None
  return choose(file.requests, args.limit, seen_services, args.seed)


def _check_corpus(args: argparse.Namespace, file: "RequestFile") -> None:
  """Refuses, before anything is asked, answers that could not be scored, on --corpus if given."""
  out = pathlib.Path(args.out)
  if out.suffix == ".gz":
    raise UsageError(
      f"--out {out}",
      expected="a file of plain text, to which answers are appended as they arrive",
      fix=f"--out {out.with_suffix('')}, and compress it at the end",
    )
  if ".jsonl" not in out.name:
    raise UsageError(
      f"--out {out}",
      expected="a file named *.jsonl: only such answers are scored",
      fix=f"--out {out.with_suffix('.jsonl')}",
    )
  if not args.corpus:
    return
  from sgdx_t5x.corpus.example_id import ExampleId
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.corpus.variants import untagged
  from sgdx_t5x.tools.requests import parse_request_id
  from sgdx_t5x.variants.variant_schemas import VariantSchemas

  corpus, id = open_corpus(args.corpus), file.requests[0].id
  example = ExampleId.parse(parse_request_id(id, str(file.path))[0], str(file.path))
  sets, corpus_sets = untagged(example.variant)[0], corpus.perturbed(example.split)
  if sets != corpus_sets:
    raise SgdxError(
      f"{file.path}: requests for {' and '.join(sets) or 'an unperturbed corpus'} (id {id!r})",
      expected="requests made from --corpus",
      available=f"{corpus.origin} is {' and '.join(corpus_sets) or 'not perturbed'}",
      fix="pass the corpus that the requests were made from as --corpus, or leave it out",
    )
  schemas = VariantSchemas(corpus, parse_schemas(args))
  for variant in sorted(file.variants):
    schemas.get(example.split, variant)  # raises if there is none


# --- running --------------------------------------------------------------------------------


def _dry_run(args: argparse.Namespace, selected: "Sequence[Request]", answers: "AnswerFile") -> int:
  size = answers.missing(selected)
  print(f"would be sent: {size.requests:,} of {len(selected):,} requests", file=sys.stderr)
  say_tokens(args, size)
  return 0


def _ask(
  args: argparse.Namespace,
  file: "RequestFile",
  selected: "Sequence[Request]",
  answers: "AnswerFile",
) -> int:
  """Asks, and prints a summary, even if the run ends early. Returns an exit code."""
  from sgdx_t5x.cli.progress import progress

  names, num_stored = {request.id for request in selected}, len(answers.ids)
  num_earlier = len(answers.ids & names)

  def done() -> int:
    return max(0, num_earlier + len(answers.ids) - num_stored)  # none if the file is gone

  runner, code = make_runner(args, file.body, answers), 0
  try:
    groups = answers.pending(selected, write=True)
    with progress("answers") as update:
      runner.on_progress = lambda: update(
        "asking for answers",
        done(),
        len(names),
        ", ".join(("answers", *map(" ".join, _spent(args, answers)))),
      )
      run_until_signal(runner, groups)
    answers.check_place()
  except KeyboardInterrupt as stop:
    code = ended(stop, "run the same command again to resume")
  finally:
    earlier = f", {num_earlier:,} of them from earlier runs" if num_earlier else ""
    print(f"answers: {args.out}: {done():,} of {len(names):,}{earlier}", file=sys.stderr)
    if outside := num_stored - num_earlier:
      print(f"         and {outside:,} for requests outside --limit", file=sys.stderr)
    if runner.retried:
      print(f"retried: {runner.retried:,} times", file=sys.stderr)
    for label, number in _spent(args, answers):
      print(f"{label + ':':8} {number}", file=sys.stderr)
    if answers.counts.cut_off:
      print(f"cut off: {answers.counts.cut_off:,} answers, by a limit of tokens", file=sys.stderr)
  if runner.unanswered and not code:
    raise _unanswered(runner)
  return code


def _spent(args: argparse.Namespace, answers: "AnswerFile") -> Iterator[tuple[str, str]]:
  """Yields tokens and cost of all answers in --out, as the service counts them."""
  counts = answers.counts
  if not counts.metered:
    return
  yield "tokens", f"{counts.input_tokens:,} input, {counts.output_tokens:,} output"
  if args.price:
    yield "cost", f"{cost(args.price, counts.input_tokens, counts.output_tokens):,.2f}"


def _unanswered(runner: "Runner") -> SgdxError:
  total = sum(map(len, runner.unanswered.values()))
  reasons = sorted(runner.unanswered.items(), key=lambda x: -len(x[1]))
  return SgdxError(
    f"{total:,} requests were not answered",
    expected="an answer to every request",
    available="; ".join(f"{len(ids):,} x {reason}, e.g. {ids[0]}" for reason, ids in reasons[:3]),
    fix="run the same command again, which sends only these requests; "
    "`sgdx tools score --allow-missing` scores the others",
  )


def _score(args: argparse.Namespace, file: "RequestFile") -> int:
  """Scores the answers, or prints how to. Returns the exit code."""
  from sgdx_t5x.cli.output import folded_command
  from sgdx_t5x.tools import score_command

  # What is not in the requests is missing, and the result says that it is PARTIAL.
  words = ["score", "--corpus", args.corpus or "CORPUS", "--split", file.split]
  words += ["--predictions", f"all={args.out}", "--allow-missing", *schemas_of(args.schemas)]
  words += ["--calls-from-text"] if args.calls_from_text else []
  if not args.corpus:
    print(folded_command(["sgdx", "tools", *words], "next:    "), file=sys.stderr)
    return 0
  subparsers = argparse.ArgumentParser().add_subparsers()
  score_args = score_command.add_parser(subparsers).parse_args(words[1:])
  return score_command.run(score_args)


def _check_calls(args: argparse.Namespace, answers: "AnswerFile") -> None:
  """Raises SgdxError if no answer has a call. Where answers are scored, that says so."""
  from sgdx_t5x.tools.call_shares import no_calls

  counts = answers.counts
  silent = counts.silent - (counts.in_text if args.calls_from_text else 0)
  if counts.answers and silent == counts.answers:
    raise no_calls(counts.answers, counts.in_text, counts.example)
