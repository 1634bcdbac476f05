"""Times `sgdx tools run` beside a bare asynchronous client, on a server that answers in 20 ms.

  python benchmarks/run_requests.py [--requests 20000]

64 requests are in flight. The server is a separate process on loopback, does next to nothing, and
measures the time from the first request to the last answer. The bare client is aiohttp with the
same bodies: it reads each answer and discards it. `sgdx tools run` is the whole command: it reads
the file of requests, checks answers, writes them, counts tokens. Client and server need a core
each.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import multiprocessing
import pathlib
import resource
import statistics
import sys
import time
import urllib.request

import _common

IN_FLIGHT, LATENCY_S, TARGET = 64, 0.02, 0.8
OURS, BARE = "sgdx tools run", "bare aiohttp"
_CALL = {"name": "Restaurants_2__FindRestaurants", "arguments": '{"city": "San Jose"}'}
_ANSWER = {
  "id": "x",
  "object": "chat.completion",
  "model": "m",
  "choices": [
    {
      "index": 0,
      "finish_reason": "tool_calls",
      "message": {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": _CALL}],
      },
    }
  ],
  "usage": {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940},
}


class Server(asyncio.Protocol):
  """Answers POST after the latency; GET with seconds and answers since the last GET."""

  first, last, answers = 0.0, 0.0, 0

  def connection_made(self, transport: asyncio.BaseTransport) -> None:
    """Keeps the connection."""
    self.transport, self.received = transport, b""
    self.loop = asyncio.get_running_loop()

  def data_received(self, data: bytes) -> None:
    """Waits for a complete request; requests of a connection come one at a time."""
    self.received += data
    head, _, body = self.received.partition(b"\r\n\r\n")
    if head.startswith(b"GET"):
      self.report()
    elif b"\r\n\r\n" in self.received and len(body) >= _length(head):
      self.received = b""
      Server.first = Server.first or time.perf_counter()
      self.loop.call_later(LATENCY_S, self.answer)

  def answer(self) -> None:
    """Writes the answer."""
    self.write(_ANSWER)
    Server.answers, Server.last = Server.answers + 1, time.perf_counter()

  def report(self) -> None:
    """Writes the numbers and resets them."""
    self.received = b""
    self.write({"seconds": Server.last - Server.first, "answers": Server.answers})
    Server.first, Server.answers = 0.0, 0

  def write(self, data: dict) -> None:
    """Writes JSON."""
    self.transport.write(_response(json.dumps(data)))


@functools.lru_cache
def _response(text: str) -> bytes:
  head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(text)}"
  return f"{head}\r\n\r\n{text}".encode()


def _length(head: bytes) -> int:
  return int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])


def serve(port: multiprocessing.Queue) -> None:
  """Serves until the process is terminated. Args: port, a queue that gets the port."""

  async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    port.put(server.sockets[0].getsockname()[1])
    await server.serve_forever()

  asyncio.run(main())


def ask_bare(file: str, url: str) -> None:
  """Sends all requests of a file."""
  import aiohttp

  with pathlib.Path(file).open("rb") as lines:
    bodies = [json.dumps(json.loads(line)["body"]).encode() for line in lines]

  async def main() -> None:
    connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
    headers = {"Content-Type": "application/json"}
    waiting = iter(bodies)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

      async def work() -> None:
        for body in waiting:
          async with session.post(f"{url}/chat/completions", data=body) as response:
            await response.read()

      await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))

  asyncio.run(main())


def write_requests(path: pathlib.Path, number: int) -> None:
  """Writes requests of the sample's train split, in six variants."""
  made, log = path.with_suffix(".all"), path.with_suffix(".log")
  args = ("--variant", "original", "v1", "v2", "v3", "v4", "v5", "--openai-batch", "m")
  command = ("tools", "requests", "--corpus", "sample", "--split", "train", *args)
  _common.run(_common.sgdx(*command, "--out", str(made)), log, _common.environment())
  with made.open() as lines, path.open("w") as out:
    unlike = {line.partition('"body"')[2]: line for line in lines}  # equal ones are sent once
    out.writelines(list(unlike.values())[:number])
  made.unlink()


def measure(command: list[str], url: str, work: pathlib.Path, number: int) -> float:
  """Runs a client; returns answers per second by the server's clock."""
  (work / "answers.jsonl").unlink(missing_ok=True)
  before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
  seconds = _common.run(command, work / "client.log", _common.environment(no_proxy="*"))
  cpu = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before
  opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
  with opener.open(url) as response:
    found = json.load(response)
  if found["answers"] != number:
    _common.fail(f"{found['answers']} answers, not {number}", f"see {work / 'client.log'}")
  print(f"  whole process: {seconds:.2f} s, {cpu:.2f} s of CPU", flush=True)
  return number / found["seconds"]


def main() -> None:
  """Measures in turn, prints answers per second and the ratio with its target."""
  parser = _common.make_parser(__doc__, repeats=3)
  parser.add_argument("--requests", type=int, default=20_000, help="of a run (default 20,000)")
  parser.add_argument("--bare", nargs=2, metavar=("FILE", "URL"), help=argparse.SUPPRESS)
  args = parser.parse_args()
  if args.bare:
    return ask_bare(*args.bare)
  work = (args.work_dir / "run").resolve()
  work.mkdir(parents=True, exist_ok=True)
  write_requests(file := work / "requests.jsonl", args.requests)
  port: multiprocessing.Queue = multiprocessing.Queue()
  server = multiprocessing.Process(target=serve, args=(port,), daemon=True)
  server.start()
  url = f"http://127.0.0.1:{port.get()}/v1"
  given = [str(file), "--endpoint", url, "--concurrency", str(IN_FLIGHT)]
  commands = {
    OURS: _common.sgdx("tools", "run", *given, "--out", str(work / "answers.jsonl")),
    BARE: [sys.executable, str(pathlib.Path(__file__).resolve()), "--bare", str(file), url],
  }
  results = _common.interleave(
    {
      name: functools.partial(measure, command, url, work, args.requests)
      for name, command in commands.items()
    },
    args.repeats,
  )
  server.terminate()
  _common.print_table(results, "answers/s", BARE, digits=0)
  ratio = statistics.median(a / b for a, b in zip(results[OURS], results[BARE], strict=True))
  print(f"median of the rounds' ratios {ratio:.2f}, target: {TARGET}")
  print("missed" if ratio < TARGET else "met")
  return None


if __name__ == "__main__":
  main()
