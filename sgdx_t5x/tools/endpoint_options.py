"""What commands share that ask an endpoint: its options, what sends requests, what they cost."""

import argparse
import contextlib
import json
import math
import operator
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.interrupts import Terminated
from sgdx_t5x.cli.options import check_least
from sgdx_t5x.errors import SgdxError, UsageError, require

if TYPE_CHECKING:
  from sgdx_t5x.tools.endpoints.answer_file import AnswerFile, Send
  from sgdx_t5x.tools.endpoints.request_file import Request
  from sgdx_t5x.tools.endpoints.runner import Runner
  from sgdx_t5x.tools.requests import Size

KEY = "OPENAI_API_KEY"


def add_service(parser: argparse.ArgumentParser) -> None:
  """Adds what commands share that ask a service: parameters, key, price, retries."""
  text = "further request parameters: temperature=0 'reasoning_effort=\"low\"'"
  parser.add_argument("--param", nargs="+", default=[], metavar="NAME=JSON", help=text)
  parser.add_argument(
    "--key-env",
    metavar="NAME",
    help=f"environment variable with the key (default: {KEY}, if it is set)",
  )
  add_price(parser, "to show the cost so far")
  parser.add_argument(
    "--dry-run",
    action="store_true",
    help="send and write nothing; count the requests that would be sent",
  )
  group = parser.add_argument_group("retries and concurrency")
  group.add_argument(
    "--concurrency", type=int, default=16, metavar="N", help="requests in flight (default: 16)"
  )
  group.add_argument(
    "--timeout", type=float, default=120.0, metavar="S", help="seconds per request (default: 120)"
  )
  text = (
    "retries per request, after timeouts, lost connections, HTTP 429, 500 and others (default: 7)"
  )
  group.add_argument("--retries", type=int, default=7, metavar="N", help=text)
  text = "seconds before the first retry, doubled each time up to a minute (default: 0.5)"
  group.add_argument("--backoff", type=float, default=0.5, metavar="S", help=text)


def add_price(parser: argparse._ActionsContainer, purpose: str) -> None:
  """Adds `--price`. Args: purpose, what the prices are for."""
  parser.add_argument(
    "--price",
    nargs=2,
    type=float,
    metavar=("INPUT", "OUTPUT"),
    help=f"prices per million input and output tokens, {purpose}",
  )


def check_price(args: argparse.Namespace) -> None:
  """Refuses prices of tokens, `args.price`, that are negative, infinite or NaN."""
  if args.price and not all(0 <= price < float("inf") for price in args.price):
    raise UsageError(
      f"--price {args.price[0]} {args.price[1]}",
      expected="two prices of at least 0",
      fix="use the provider's prices per million tokens",
    )


def cost(price: Sequence[float], num_input: int, num_output: int = 0) -> float:
  """Returns what tokens cost. Args: price, of `--price`; numbers of tokens."""
  return (num_input * price[0] + num_output * price[1]) / 1_000_000


def request_parameters(args: argparse.Namespace) -> dict[str, Any]:
  """Refuses numbers that make no sense. Returns the parameters of --param."""
  for name, minimum in (("concurrency", 1), ("retries", 0), ("backoff", 0)):
    check_least(args, name, minimum, "omit it to use the default")
  if not 0 < args.timeout < math.inf:
    raise UsageError(
      f"--timeout {args.timeout:g}", expected="a number of seconds above 0", fix="leave it out"
    )
  check_price(args)
  parameters: dict[str, Any] = {}
  for item in args.param:
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
    except RecursionError:
      raise UsageError(
        f"--param {name}: JSON nested too deeply",
        expected="JSON that an endpoint can read",
        fix="pass, for example, --param temperature=0",
      ) from None
    except ValueError as e:  # json's, or that of NaN and of what is beyond a float's range
      in_quotes = f"{name}={json.dumps(text, ensure_ascii=False)}"
      raise UsageError(
        f"--param {item[:80]}: {e}",
        expected="NAME=JSON: a finite number, true, a text in double quotes",
        fix=f"correct the value, or, for a text, --param {shlex.quote(in_quotes)}",
      ) from None
  return parameters


def api_key(args: argparse.Namespace) -> str:
  """Returns the key; "" if there is none. Never shows it, or anything that may be a key."""
  name = args.key_env or KEY
  if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
    raise UsageError(
      "--key-env is not a variable name",
      expected="the name of the environment variable that holds the key, never the key itself",
      fix=f"export {KEY}=..., and omit --key-env",
    )
  key = os.environ.get(name, "").strip()
  if (args.key_env and not key) or not re.fullmatch(r"[!-~]*", key):
    raise SgdxError(
      f"the environment variable {name} {'does not hold a valid key' if key else 'is not set'}",
      expected="a key: printable characters without spaces",
      fix=f"export {name}=...",
    )
  return key


def say_costs(args: argparse.Namespace, size: "Size", purpose: str) -> None:
  """Prints what would be sent. Args: size of the requests; what they are for."""
  print(f"requests: {size.requests:,} to send, for {purpose}", file=sys.stderr)
  if size.requests:
    say_tokens(args, size)


def say_tokens(args: argparse.Namespace, size: "Size") -> None:
  """Prints how many tokens would be sent, and by --price what they cost."""
  tokens = size.tokens[0]
  price = f", {cost(args.price, tokens):,.2f} and what it writes" if args.price else ""
  line = f"tokens:   about {tokens:,} input, at 4 characters per token{price}"
  print(line, file=sys.stderr)


def make_runner(
  args: argparse.Namespace, body: "Callable[[Request], bytes]", answers: "AnswerFile"
) -> "Runner":
  """Returns what sends requests, by the options of `add_service`. Raises SgdxError: bad ones."""
  require("aiohttp", extra="tools", why="asking an endpoint")
  from sgdx_t5x.tools.endpoints.endpoint import Endpoint, chat_url
  from sgdx_t5x.tools.endpoints.runner import Runner

  url, key = chat_url(args.endpoint), api_key(args)
  endpoint = Endpoint(url, key, args.key_env or KEY, args.timeout)
  endpoint.has_answered = bool(answers.ids)
  return Runner(endpoint, body, answers, args.concurrency, args.retries, args.backoff)


def sender(args: argparse.Namespace) -> "Send":
  """Returns what sends requests to the endpoint, and says what it refused to answer."""

  def send(answers: "AnswerFile", groups: "list[list[Request]]") -> None:
    if not args.endpoint:
      raise SgdxError(
        f"{len(groups):,} answers are not in {answers.path}",
        expected="all answers, if there is no --endpoint",
        fix="pass --endpoint URL",
      )
    from sgdx_t5x.cli.progress import progress

    runner, num_before = make_runner(args, operator.attrgetter("body"), answers), len(answers.ids)
    with progress("answers") as update:
      runner.on_progress = lambda: update(
        "asking", len(answers.ids) - num_before, len(groups), "answers"
      )
      run_until_signal(runner, groups)
    answers.check_place()
    for reason, ids in runner.unanswered.items():
      print(f"unanswered: {len(ids):,} x {reason}, e.g. {ids[0]}", file=sys.stderr)

  return send


def run_until_signal(runner: "Runner", groups: "list[list[Request]]") -> None:
  """Runs to the end. Raises what a signal asks for once the requests in flight are given up.

  A handler that raised in the middle of the event loop would leave tracebacks of its tasks.
  """
  import asyncio  # here: `sgdx --help` would need 20 ms more

  caught: list[KeyboardInterrupt] = []
  previous_handlers: dict[int, Any] = {}
  with asyncio.Runner() as loops:
    loop = loops.get_loop()

    def on_signal(number: int, frame: FrameType | None) -> None:
      caught.append(Terminated() if number == signal.SIGTERM else KeyboardInterrupt())
      loop.call_soon_threadsafe(runner.interrupt)

    try:
      with contextlib.suppress(ValueError):  # not the main thread
        for number in (signal.SIGINT, signal.SIGTERM):
          previous_handlers[number] = signal.signal(number, on_signal)
      loops.run(runner.run(groups))
    finally:
      for number, handler in previous_handlers.items():
        signal.signal(number, handler)
  if caught:
    raise caught[0]
