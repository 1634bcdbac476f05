"""`sgdx tools run`, typed as a user types it, against a server on loopback that may fail."""

import json
import os
import shlex
import signal
import subprocess

import pytest
from assistant_server import AssistantServer, error, key_of, know_gold
from commands import SGDX, sgdx, sgdx_process
from places import ROOT

VARIANTS = ("original", "v1", "v2", "v3", "v4", "v5")
KEY = "sk-test-0123456789abcdef"


def read(path):
  return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def requests(tmp_path_factory):
  """Requests of a few dialogues in six variants."""
  out = tmp_path_factory.mktemp("requests") / "requests.jsonl"
  args = ("--variant", *VARIANTS, "--limit", "5", "--targets", "--out", out)
  assert not sgdx("tools", "requests", "--corpus", "sample", *args)
  return out


@pytest.fixture(scope="module")
def gold(requests):
  return know_gold(read(requests))


def command(requests, server, out, *args):
  given = ("--endpoint", server.url, "--model", "small-1", "--out", out, "--backoff", "0.01")
  return ("tools", "run", requests, *given, *args)


def environment(**names):
  return {**os.environ, "OPENAI_API_KEY": KEY, "no_proxy": "*", **names}


def row(printed, name):
  """The cells of the first row of that name."""
  return next(x.split()[1:] for x in printed.splitlines() if x.split()[:1] == [name])


def test_the_commands_of_the_page(gold, tmp_path):
  """The assistant knows the gold, so each JGA is 100; the table is that of `sgdx tools score`."""
  text = (ROOT / "docs/commands.md").read_text().partition("# Language models with tools")[2]
  commands = text.partition("\n\n")[0].splitlines()[-3:]  # before them are those of own tools
  assert [x.split()[1:3] for x in commands] == [["tools", x] for x in ("requests", "run", "score")]
  with AssistantServer(gold, latency=0.05) as server:
    for old, new in (
      ("sgdx ", f"{shlex.join(SGDX)} "),
      ("sgd.zip", "sample"),
      ("--limit 100", "--limit 5"),
      ("http://localhost:8000/v1", server.url),
      ("--model NAME", "--model small-1 --price 2 10 --param temperature=0"),
    ):
      commands = [x.replace(old, new) for x in commands]
    shell = {"shell": True, "capture_output": True, "text": True, "cwd": tmp_path}
    found = [subprocess.run(x, **shell, env=environment()) for x in commands]
  assert [x.returncode for x in found] == [0, 0, 0], found
  _, ran, scored = found
  assert row(ran.stdout, "all")[:6] == ["100.0"] * 6
  assert "|format:tools|" in ran.stdout
  assert scored.stdout == ran.stdout
  number, asked = len(read(tmp_path / "requests.jsonl")), len(server.asked)
  assert f"answers: answers.jsonl: {number} of {number}\n" in ran.stderr
  assert f"tokens:  {100 * asked:,} input, {10 * asked:,} output" in ran.stderr  # of the server
  assert f"cost:    {(200 * asked + 100 * asked) / 1e6:,.2f}" in ran.stderr
  assert server.most == 16
  assert server.headers["Authorization"] == f"Bearer {KEY}"


def test_a_server_that_fails_in_every_way(requests, gold, tmp_path):
  """Nothing is lost, no request is repeated after its answer came, and the key stays secret."""
  faults = [
    lambda: error(429, f"slow down, {KEY}"),
    lambda: error(500, "oh"),
    lambda: error(503, "busy", **{"Retry-After": "0.02"}),
    lambda: "cut",
    lambda: "broken",
    lambda: "hang",
    lambda: error(200, f"an upstream said {KEY}"),  # some proxies' errors have this status
  ]

  def fault(number, body):
    return faults[number % 14 // 2]() if number % 2 and number < 84 else None

  out = tmp_path / "a.jsonl"
  with AssistantServer(gold, fault) as server:
    args = command(requests, server, out, "--timeout", "0.5", "--retries", "20")
    found = sgdx_process(*args, env=environment(), cwd=tmp_path)
  assert found.returncode == 0, found.stderr
  assert server.asked.total() == len(server.asked) + 42
  assert "retried: 42 times" in found.stderr
  assert set(server.answered.values()) == {1}
  assert {x["custom_id"] for x in read(out)} == {x["id"] for x in read(requests)}
  for path in tmp_path.rglob("*"):
    assert KEY not in path.read_text()
  assert KEY not in found.stdout + found.stderr
  assert not sgdx(
    "tools",
    "score",
    "--corpus",
    "sample",
    "--predictions",
    f"all={out}",
    "--allow-missing",
    "--bootstrap-samples",
    "0",
  )


def test_killed_at_several_moments_it_asks_for_what_is_missing(requests, gold, tmp_path):
  """An answer in the file is never asked for again; a kill repeats at most what was in flight."""
  out, flying = tmp_path / "a.jsonl", 8
  of = {x["id"]: key_of(x) for x in read(requests)}
  known = {}  # requests answered in the file after a kill -> how often they had been sent
  kills = [(0, 9), (1, 9), (20, 9), (40, 15), (60, 9), (80, 2)]
  with AssistantServer(gold, latency=0.01) as server:
    args = command(requests, server, out, "--concurrency", flying)
    for at, number in kills:
      most = at + 16  # otherwise the run might end before it is killed
      server.fault = lambda *_, most=most: "hang" if server.answered.total() >= most else None
      process = subprocess.Popen(
        [*SGDX, *map(str, args)], env=environment(), stderr=subprocess.PIPE, text=True
      )
      server.wait_for_answers(at)
      process.send_signal(number)
      stderr = process.communicate()[1]
      assert process.returncode == {9: -9, 15: 143, 2: 130}[number]
      assert ("run the same command again to resume" in stderr) == (number != signal.SIGKILL)
      assert known == {key: server.asked[key] for key in known}
      if at == 20:  # as if it had died while it was writing
        os.truncate(out, out.stat().st_size - 7)
      lines = out.read_bytes().split(b"\n")[:-1] if out.exists() else []
      known = {of[json.loads(x)["custom_id"]]: 0 for x in lines}
      known = {key: server.asked[key] for key in known}
      assert len(known) >= max(0, at - flying * (1 + kills.index((at, number))) - 1)
    server.fault = lambda *_: None
    found = sgdx_process(*args, env=environment())
  assert found.returncode == 0, found.stderr
  assert known == {key: server.asked[key] for key in known}
  assert server.asked.total() <= len(server.asked) + len(kills) * flying + 1
  assert sorted(x["custom_id"] for x in read(out)) == sorted(of)
