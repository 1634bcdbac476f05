"""`sgdx tools run`: asks a language model's endpoint for the answers to requests with tools."""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shlex
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.interrupts import Terminated, ended
from sgdx_t5x.cli.options import (
  add_command,
  add_schemas,
  check_least,
  schemas_of,
)
from sgdx_t5x.cli.paths import add_input, add_output, corpus_path
from sgdx_t5x.errors import SgdxError, UsageError, require
from sgdx_t5x.tools.score_command import add_calls_from_text

if TYPE_CHECKING:
  from sgdx_t5x.tools.endpoints.answer_file import AnswerFile
  from sgdx_t5x.tools.endpoints.endpoint import Endpoint
  from sgdx_t5x.tools.endpoints.request_file import Request, RequestFile
  from sgdx_t5x.tools.endpoints.runner import Runner

_EPILOG = """\
examples:
  From an endpoint to the table of six variants:
    sgdx tools requests --corpus sgd.zip --variant original v1 v2 v3 v4 v5 \\
      --out requests.jsonl
    sgdx tools run requests.jsonl --endpoint http://localhost:8000/v1 \\
      --model NAME --out answers.jsonl --corpus sgd.zip

  100 dialogues first, from a paid service, with the key in OPENAI_API_KEY:
    sgdx tools run requests.jsonl --endpoint https://HOST/v1 --model NAME \\
      --param temperature=0 --limit 100 --out answers.jsonl

Answers are written to --out as they arrive. The same command again asks for
those that are missing; after a kill, at most the requests that were in flight
are sent twice. Requests with equal text, model and parameters are sent once.
docs/tools/README.md says more.
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  parser = add_command(subparsers, "run", __doc__, _EPILOG)
  text = "output of `sgdx tools requests`, with or without --openai-batch"
  add_input(parser, "requests", metavar="REQUESTS.jsonl", help=text)
  text = "http://HOST:PORT/v1 of an OpenAI-compatible API"
  parser.add_argument("--endpoint", required=True, metavar="URL", help=text)
  text = "model to ask (default: the one that the requests name)"
  parser.add_argument("--model", default="", metavar="NAME", help=text)
  text = "answers to write, or to resume; `sgdx tools score` reads them"
  add_output(parser, "--out", required=True, metavar="ANSWERS.jsonl", help=text)
  text = "further request parameters: temperature=0 max_completion_tokens=500"
  parser.add_argument("--param", nargs="+", default=[], metavar="NAME=JSON", help=text)
  text = "to score the answers when complete, and to tell --limit which services are seen"
  add_input(parser, "--corpus", help=text, path=corpus_path)
  add_schemas(parser)
  add_calls_from_text(parser)
  parser.add_argument(
    "--limit",
    type=int,
    metavar="N",
    help="only N dialogues, in all their variants, spread over services, seen and unseen",
  )
  parser.add_argument(
    "--concurrency", type=int, default=16, metavar="N", help="requests in flight (default: 16)"
  )
  parser.set_defaults(run=run)
  return parser


def run(args: argparse.Namespace) -> int:
  """Asks, and prints a summary. Returns 0, 130 (Ctrl-C) or 143 (SIGTERM).

  Raises:
    SgdxError: bad input, or an endpoint that fails.
  """
  for name in ("limit", "concurrency"):
    check_least(args, name, 1, "omit it to use the default")
  parameters, out = _parameters(args.param), pathlib.Path(args.out)
  if out.suffix != ".jsonl":
    raise UsageError(
      f"--out {out}",
      expected="a file named *.jsonl, of plain text: only such answers are scored",
      fix=f"--out {out.with_suffix('.jsonl')}",
    )
  require("aiohttp", extra="run", why="sgdx tools run")
  from sgdx_t5x.files.locks import lock
  from sgdx_t5x.tools.endpoints.answer_file import AnswerFile
  from sgdx_t5x.tools.endpoints.endpoint import Endpoint, chat_url
  from sgdx_t5x.tools.endpoints.request_file import RequestFile

  url, key = chat_url(args.endpoint), _key()
  file = RequestFile(args.requests, args.model, parameters)
  wanted = _wanted(args, file)
  with lock(args.out):
    answers = AnswerFile(args.out, file)
    endpoint = Endpoint(url, key, args.concurrency)
    endpoint.has_answered = bool(answers.ids)
    with contextlib.closing(answers), file:
      if code := _ask(args, endpoint, file, wanted, answers):
        return code
  return _score(args, file)


# --- options -------------------------------------------------------------------------------


def _parameters(items: Sequence[str]) -> dict[str, Any]:
  """Returns the parameters of --param. Raises UsageError for malformed ones."""
  parameters: dict[str, Any] = {}
  for item in items:
    name, sign, text = item.partition("=")
    if not (name and sign) or name in (*parameters, "messages", "model", "stream", "tools"):
      raise UsageError(
        f"--param {item}",
        expected="NAME=JSON with unique names other than messages, model, stream and tools",
        fix="pass, for example, --param temperature=0",
      )
    try:
      parameters[name] = json.loads(text)
      json.dumps(parameters[name], allow_nan=False)
    except json.JSONDecodeError:
      parameters[name] = text
    except ValueError as e:
      raise UsageError(
        f"--param {item[:80]}: {e}",
        expected="NAME=JSON, which has no NaN, no Infinity and no numbers beyond a float's range",
        fix="pass, for example, --param temperature=0",
      ) from None
  return parameters


def _key() -> str:
  """Returns the key; "" if there is none. Never shows it."""
  from sgdx_t5x.tools.endpoints.endpoint import KEY

  key = os.environ.get(KEY, "").strip()
  if not re.fullmatch(r"[!-~]*", key):
    raise SgdxError(
      f"the environment variable {KEY} does not hold a valid key",
      expected="a key: printable characters without spaces",
      fix=f"export {KEY}=...",
    )
  return key


def _wanted(args: argparse.Namespace, file: "RequestFile") -> "list[Request]":
  """Returns the requests chosen by --limit, or all."""
  if args.limit is None:
    return file.requests
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.tools.endpoints.request_file import choose

  seen = open_corpus(args.corpus).seen_services(file.split) if args.corpus else None
  return choose(file.requests, args.limit, seen)


# --- running --------------------------------------------------------------------------------


def _ask(
  args: argparse.Namespace,
  endpoint: "Endpoint",
  file: "RequestFile",
  wanted: "Sequence[Request]",
  answers: "AnswerFile",
) -> int:
  """Asks, and prints a summary, even if the run ends early. Returns an exit code."""
  from sgdx_t5x.cli.progress import progress
  from sgdx_t5x.tools.endpoints.runner import Runner, pending

  names, held = {request.id for request in wanted}, len(answers.ids)
  before = len(answers.ids & names)

  def done() -> int:
    return max(0, before + len(answers.ids) - held)  # none if the file is gone

  runner, code = Runner(endpoint, file, answers, args.concurrency), 0
  try:
    asked = pending(wanted, answers)
    with progress("answers") as update:
      runner.on_progress = lambda: update(
        "asking for answers",
        done(),
        len(names),
        f"answers{_tokens(answers, ', tokens ')}",
      )
      _until_signal(runner, asked)
    answers.check_place()
  except KeyboardInterrupt as stop:
    code = ended(stop, "run the same command again to resume")
  finally:
    earlier = f", {before:,} of them from earlier runs" if before else ""
    print(f"answers: {args.out}: {done():,} of {len(names):,}{earlier}", file=sys.stderr)
    if held > before:
      print(f"         and {held - before:,} for requests outside --limit", file=sys.stderr)
    if runner.retried:
      print(f"retried: {runner.retried:,} times", file=sys.stderr)
    if tokens := _tokens(answers, "tokens:  "):
      print(tokens, file=sys.stderr)
    if answers.counts.cut_off:
      print(f"cut off: {answers.counts.cut_off:,} answers, by a limit of tokens", file=sys.stderr)
  if runner.unanswered and not code:
    raise _unanswered(runner)
  return code


def _until_signal(runner: "Runner", asked: "list[list[Request]]") -> None:
  """Runs to the end. Raises what a signal asks for once the requests in flight are given up.

  A handler that raised in the middle of the event loop would leave tracebacks of its tasks.
  """
  import asyncio  # here: `sgdx --help` would need 20 ms more

  caught: list[KeyboardInterrupt] = []
  before: dict[int, Any] = {}
  with asyncio.Runner() as loops:
    loop = loops.get_loop()

    def on_signal(number: int, frame: FrameType | None) -> None:
      caught.append(Terminated() if number == signal.SIGTERM else KeyboardInterrupt())
      loop.call_soon_threadsafe(runner.interrupt)

    try:
      with contextlib.suppress(ValueError):  # not the main thread
        for number in (signal.SIGINT, signal.SIGTERM):
          before[number] = signal.signal(number, on_signal)
      loops.run(runner.run(asked))
    finally:
      for number, handler in before.items():
        signal.signal(number, handler)
  if caught:
    raise caught[0]


def _tokens(answers: "AnswerFile", label: str) -> str:
  """Returns the tokens of all answers in --out, as the service counts them; "" if it does not."""
  counts = answers.counts
  return f"{label}{counts.read:,} input, {counts.written:,} output" if counts.metered else ""


def _unanswered(runner: "Runner") -> SgdxError:
  total = sum(map(len, runner.unanswered.values()))
  reasons = sorted(runner.unanswered.items(), key=lambda x: -len(x[1]))
  return SgdxError(
    f"{total:,} requests were not answered",
    expected="an answer to every request",
    available="; ".join(f"{len(ids):,} x {why}, e.g. {ids[0]}" for why, ids in reasons[:3]),
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
    print(folded_command(("sgdx", "tools", *map(shlex.quote, words)), "next:    "), file=sys.stderr)
    return 0
  subparsers = argparse.ArgumentParser().add_subparsers()
  given = score_command.add_parser(subparsers).parse_args(words[1:])
  return score_command.run(given)
