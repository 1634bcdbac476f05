"""`sgdx tools run`: what an endpoint, files and options can get wrong; each named, nothing lost."""

import gzip
import http.server
import json
import os
import re
import socket
import subprocess
import sys
import threading

import pytest
import tiny_corpus
from aiohttp import web
from assistant_server import AssistantServer, completion, error, know_gold
from commands import SGDX, assert_four_parts, sgdx
from locked import locked

from sgdx_t5x.tools.endpoints.endpoint import Endpoint, Failed

KEY = "sk-test-0123456789abcdef"
DEEP = "[" * 1_000 + "]" * 1_000
writes_less_than_it_reads = pytest.mark.skipif(
  sys.version_info >= (3, 12), reason="as of 3.12, Python writes the 1,000 levels that it reads"
)


@pytest.fixture
def ask(requests, tmp_path, monkeypatch):
  """Runs the command in this process with the key set; returns the exit code."""
  monkeypatch.setenv("OPENAI_API_KEY", KEY)
  monkeypatch.setenv("no_proxy", "*")
  out = tmp_path / "a.jsonl"

  def ask(url, *args, file=requests, model="small-1"):
    given = ("--endpoint", url, "--out", out, "--backoff", "0.01", "--concurrency", "4")
    return sgdx("tools", "run", file, *given, *(("--model", model) if model else ()), *args)

  ask.out = out
  return ask


@pytest.mark.parametrize(
  ("out", "corpus", "words"),
  [
    ("a.json", "sample", ("a.json", "*.jsonl")),
    ("a.json", None, ("a.json", "*.jsonl")),
    ("a.jsonl", "ned", ("requests for an unperturbed corpus", "is ned")),
    ("a.jsonl", "mine", ("no schema of variant 'mine' for split 'test'", "--schemas")),
  ],
)
def test_answers_that_could_not_be_scored_are_not_asked_for(
  requests, tmp_path, capsys, monkeypatch, out, corpus, words
):
  if corpus == "ned":
    corpus = tiny_corpus.write_corpus(tmp_path / "ned")
    tiny_corpus.mark_perturbed(corpus, monkeypatch, "ned")
  if corpus == "mine":
    text, corpus = requests.read_text().replace('"id": "v2/', '"id": "mine/'), "sample"
    requests = tmp_path / "mine.jsonl"
    requests.write_text(text)
  with AssistantServer(know_gold([])) as server:
    given = ("--endpoint", server.url, "--model", "m", "--out", tmp_path / out)
    scored = ("--corpus", corpus) if corpus else ()
    assert sgdx("tools", "run", requests, *given, *scored) in (1, 2)
    assert not server.asked
  assert_four_parts(capsys.readouterr().err, *words)
  assert not (tmp_path / out).exists()


def answered(out):
  return [json.loads(line) for line in out.read_text().splitlines()]


@pytest.mark.parametrize(
  ("status", "said", "words"),
  [
    (401, f"Incorrect API key provided: {KEY}", ("status 401", "OPENAI_API_KEY is set")),
    (403, "not yours", ("status 403: not yours", "--key-env")),
    (402, "no credits", ("status 402", "an account with sufficient credit")),
    (429, "insufficient_quota", ("status 429", "an account with sufficient credit")),
    (400, "Your credit balance is too low", ("status 400", "an account with sufficient credit")),
    (404, "no model small-1", ("status 404", "small-1, small-2", "--model")),
    (307, "moved", ("status 307", "http://127.0.0.1/v2")),
    (400, '"auto" tool choice requires a parser', ("status 400", "support tools", "format=tools")),
  ],
)
def test_what_no_request_will_overcome_stops_at_once(status, said, words, rows, ask, capsys):
  to = {"Location": "http://127.0.0.1/v2"}
  with AssistantServer(know_gold(rows), lambda *_: error(status, said, **to)) as server:
    assert ask(server.url) == 1
  assert server.asked.total() <= 4  # those in flight
  printed = capsys.readouterr()
  assert_four_parts(printed.err, *words)
  assert KEY not in printed.out + printed.err
  assert not ask.out.exists()


def test_a_key_that_ends_keeps_what_came_before_and_is_in_flight(rows, ask, capsys):
  def fault(number, _):
    return error(401, "expired") if number == 20 else None

  with AssistantServer(know_gold(rows), fault, latency=0.02) as server:
    assert ask(server.url) == 1
    assert len(answered(ask.out)) == server.answered.total() >= 20
    assert f"answers: {ask.out}: {len(answered(ask.out))} of {len(rows)}" in capsys.readouterr().err
    assert ask(server.url) == 0
  assert set(server.answered.values()) == {1}
  assert {x["custom_id"] for x in answered(ask.out)} == {x["id"] for x in rows}


def test_nobody_there(ask, capsys, monkeypatch):
  with socket.create_server(("127.0.0.1", 0)) as listening:
    port = listening.getsockname()[1]
  assert ask(f"http://127.0.0.1:{port}/v1") == 1
  assert_four_parts(capsys.readouterr().err, f"127.0.0.1:{port}", "refused", "check --endpoint")

  def unknown(*args, **kwargs):  # instead of a real DNS lookup
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

  monkeypatch.setattr(socket, "getaddrinfo", unknown)
  assert ask("http://nosuch.invalid/v1") == 1
  assert_four_parts(capsys.readouterr().err, "nosuch.invalid", "Name or service not known")
  assert not ask.out.exists()


def test_a_key_that_a_service_repeats_is_hidden_in_every_spelling(rows, ask, monkeypatch):
  monkeypatch.setenv("OPENAI_API_KEY", key := "sk-AbCd/EfGh+IjKl")
  calls = [{"name": "find", "arguments": {}}]
  body = json.dumps(completion(calls, f"key {key}")).replace("/", r"\/").replace("+", r"\u002B")
  answer = lambda *_: web.Response(text=body, content_type="application/json")  # noqa: E731
  with AssistantServer(know_gold(rows), answer) as server:
    assert ask(server.url) == 0
  assert r"sk-AbCd" not in ask.out.read_text()
  assert {x["response"]["body"]["model"] for x in answered(ask.out)} == {"key [key]"}


def test_a_proxy_that_fails_is_named_without_its_password(ask, capsys, monkeypatch):
  monkeypatch.delenv("no_proxy")
  with socket.create_server(("127.0.0.1", 0)) as listening:
    port = listening.getsockname()[1]
  monkeypatch.setenv("http_proxy", f"http://user:secretpw@127.0.0.1:{port}")
  assert ask("http://host.invalid/v1") == 1
  assert_four_parts(
    err := capsys.readouterr().err, f"the proxy 127.0.0.1:{port}: connection refused"
  )
  assert "secretpw" not in err
  with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _NoEntry) as proxy:
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    monkeypatch.setenv("https_proxy", f"http://user:secretpw@127.0.0.1:{proxy.server_port}")
    assert ask("https://host.invalid/v1?api-key=SECRET", "--retries", "0") == 1
    proxy.shutdown()
  err = capsys.readouterr().err
  assert "the proxy of http_proxy or https_proxy: status 407" in err
  assert "secretpw" not in err
  assert "SECRET" not in err


@pytest.mark.parametrize("password", ["Hunter2#x", "Hunter2/x", "12#Hunter2"])
def test_a_proxy_that_is_not_a_url_is_not_shown(ask, capsys, monkeypatch, password):
  """Regression: aiohttp's error is the whole URL, which was printed."""
  monkeypatch.delenv("no_proxy")
  monkeypatch.setenv("http_proxy", f"http://user:{password}@127.0.0.1:9")
  assert ask("http://host.invalid/v1") == 1
  assert_four_parts(err := capsys.readouterr().err, "http_proxy is not a proxy's URL", "%23")
  assert "Hunter2" not in err


def test_a_server_without_tls_is_said(rows, ask, capsys):
  with AssistantServer(know_gold(rows)) as server:
    assert ask(server.url.replace("http://", "https://")) == 1
  assert_four_parts(capsys.readouterr().err, "a server that speaks TLS", "without TLS: http://")


class _NoEntry(http.server.BaseHTTPRequestHandler):
  """A proxy that asks for a password."""

  def do_CONNECT(self):
    self.send_error(407)

  def log_message(self, *_):
    pass


@pytest.mark.parametrize("host", [".example", "a" * 70 + ".com"])
def test_host_names_that_no_server_can_have(host, ask, capsys):
  assert ask(f"http://{host}/v1") == 1
  assert_four_parts(capsys.readouterr().err, host, "label", "check --endpoint")
  assert not ask.out.exists()


def test_more_retries_than_a_float_can_double(ask, capsys, monkeypatch):
  async def fail(*_):
    raise Failed("down")

  monkeypatch.setattr(Endpoint, "ask", fail)
  options = ("--limit", "1", "--retries", "1030", "--backoff", "0", "--concurrency", "1")
  assert ask("http://127.0.0.1:9/v1", *options) == 1
  assert_four_parts(capsys.readouterr().err, "down (1031 times)")


@writes_less_than_it_reads
def test_an_answer_nested_too_deeply_fails_alone(rows, ask, capsys):
  deep = f'{{"choices": [{{"message": {{"role": "assistant"}}}}], "x": {DEEP}}}'

  def fault(number, _):
    return web.Response(text=deep) if number == 3 else None

  with AssistantServer(know_gold(rows), fault) as server:
    assert ask(server.url) == 1
    printed = capsys.readouterr().err
    assert_four_parts(printed, "1 requests were not answered", "the answer is nested too deeply")
    assert len(answered(ask.out)) == len(rows) - 1
    assert ask(server.url) == 0
  assert len(answered(ask.out)) == len(rows)


def test_a_list_of_models_nested_too_deeply_is_left_out(rows, ask, capsys, monkeypatch):
  async def models(*_):
    return web.Response(text="[" * 100_000)

  monkeypatch.setattr(AssistantServer, "_models", models)
  with AssistantServer(know_gold(rows), lambda *_: error(404, "no model")) as server:
    assert ask(server.url) == 1
  printed = capsys.readouterr().err
  assert_four_parts(printed, "status 404: no model", "--model")
  assert "available:" not in printed


def test_requests_that_get_no_answer_are_named_and_the_others_kept(rows, ask, capsys):
  """Here those of v2: half of them refused, half never answered."""
  refused = {json.dumps(x["messages"]) for x in rows if x["metadata"]["variant"] == "v2"}
  v2 = {json.dumps(x["tools"]) for x in rows if x["metadata"]["variant"] == "v2"}
  first = json.dumps(rows[1]["messages"])

  def fault(_, body):
    if json.dumps(body["tools"]) not in v2 or json.dumps(body["messages"]) not in refused:
      return None
    is_first = json.dumps(body["messages"]) == first
    return error(500, "oh") if is_first else error(400, "maximum context length of tools")

  with AssistantServer(know_gold(rows), fault) as server:
    assert ask(server.url, "--retries", "2", "--concurrency", "1") == 1
    printed = capsys.readouterr().err
    half = len(rows) // 2
    assert_four_parts(printed, f"{half} requests were not answered", "status 500: oh (3 times)")
    assert f"{half - 1} x status 400: maximum context length of tools, e.g. v2/" in printed
    assert len(answered(ask.out)) == half
    server.fault = lambda *_: None
    assert ask(server.url) == 0
  assert len(answered(ask.out)) == len(rows)
  assert set(server.answered.values()) == {1}


def test_an_endpoint_that_never_answers_is_left(rows, ask, capsys):
  with AssistantServer(know_gold(rows), lambda *_: error(500, "down")) as server:
    assert ask(server.url, "--retries", "0") == 1
    assert server.asked.total() < 16 + 4
    server.fault = lambda *_: error(400, "temperature is not supported")
    assert ask(server.url) == 1
  printed = capsys.readouterr().err
  assert_four_parts(printed, "16 consecutive requests", "status 500: down")
  assert "temperature is not supported" in printed


@pytest.mark.parametrize("wait", ["1", "date"])
def test_retry_after_holds_for_all(wait, rows, ask):
  import email.utils
  import time

  def fault(number, _):
    after = email.utils.formatdate(time.time() + 2, usegmt=True) if wait == "date" else wait
    return error(429, "slow", **{"Retry-After": after}) if number == 8 else None

  with AssistantServer(know_gold(rows), fault) as server:
    assert ask(server.url, "--concurrency", "1") == 0
  assert server.times[9] - server.times[8] >= 0.95


def test_a_full_disk(rows, requests, tmp_path):
  """The shell limits the size of files to 8 KB."""
  out = tmp_path / "a.jsonl"
  with AssistantServer(know_gold(rows)) as server:
    words = [*SGDX, "tools", "run", requests, "--endpoint", server.url]
    words += ["--model", "small-1", "--out", out]
    command = " ".join(map(str, words))
    shell = {"capture_output": True, "text": True, "env": {**os.environ, "no_proxy": "*"}}
    limits = "ulimit -f 8; export PYTHONDONTWRITEBYTECODE=1"  # Python 3.11 would cut off modules
    found = subprocess.run(["bash", "-c", f"{limits}; {command}"], **shell)
    assert found.returncode == 1
    assert_four_parts(found.stderr, f"--out {out}: File too large", "free some space")
    kept = len(answered(out))  # complete lines
    assert 0 < kept < len(rows)
    asked = server.asked.total()
    assert subprocess.run(["bash", "-c", command], **shell).returncode == 0
  assert server.asked.total() - asked == len(server.asked) - kept
  assert len(answered(out)) == len(rows)


def test_answers_of_something_else_are_refused_and_stay(rows, requests, ask, tmp_path, capsys):
  with AssistantServer(know_gold(rows)) as server:
    assert ask(server.url) == 0
    before, number = ask.out.read_bytes(), server.asked.total()
    part = tmp_path / "part.jsonl"
    part.write_text("".join(requests.read_text().splitlines(keepends=True)[:-4]))
    for args, file, words in (
      (("--param", "temperature=1"), requests, "different text or parameters"),
      ((), part, f"not in {part}"),
    ):
      assert ask(server.url, *args, file=file) == 1
      assert_four_parts(capsys.readouterr().err, words, f"--reuse {ask.out}")
    assert ask(server.url, model="small-2") == 1
    assert_four_parts(capsys.readouterr().err, "model 'small-1', now 'small-2'")
    assert ask.out.read_bytes() == before
    other = ("--out", tmp_path / "b.jsonl", "--reuse", ask.out)
    assert ask(server.url, *other, file=part) == 0
    assert server.asked.total() == number
  assert {x["custom_id"] for x in answered(tmp_path / "b.jsonl")} == {x["id"] for x in rows[:-4]}
  for text in ('{"custom_id": "x", "response": {"body": {}}}\n', '{"important": "one line"}'):
    ask.out.write_text(text)
    assert ask(server.url) == 1
    assert_four_parts(capsys.readouterr().err, "line 1: not an answer written by `sgdx tools run`")
    assert ask.out.read_text() == text


def test_requests_that_are_compressed(rows, requests, ask, tmp_path):
  file = tmp_path / "requests.jsonl.gz"
  file.write_bytes(gzip.compress(requests.read_bytes()))
  with AssistantServer(know_gold(rows)) as server:
    assert ask(server.url, file=file) == 0
  assert len(answered(ask.out)) == len(rows)


def test_equal_requests_are_asked_and_counted_once(rows, ask, tmp_path, capsys):
  """As for a service with the same wording in two variants."""
  file = tmp_path / "twice.jsonl"
  again = [{**x, "id": x["id"].replace("v1/", "v3/")} for x in rows if x["id"].startswith("v1/")]
  file.write_text("".join(f"{json.dumps(x)}\n" for x in [*rows, *again]))
  with AssistantServer(know_gold(rows)) as server:
    assert ask(server.url, file=file) == 0
    lines = ask.out.read_text().splitlines(keepends=True)
    ask.out.write_text("".join(x for x in lines if again[0]["id"] not in x))  # a kill in between
    assert ask(server.url, file=file) == 0
    assert ask(server.url, file=file) == 0
  said = re.findall(r"tokens:  ([\d,]+) input", capsys.readouterr().err)
  assert said == [f"{100 * len(server.asked):,}"] * 3
  assert set(server.asked.values()) == {1}
  found = {x["custom_id"]: x["response"] for x in answered(ask.out)}
  assert len(found) == len(rows) + len(again)
  assert all(found[x["id"]] == found[x["id"].replace("v3/", "v1/")] for x in again)


def test_equal_requests_are_equal_in_every_form(rows, ask, tmp_path, capsys):
  """Also as lines of OpenAI's batches, and with parameters in another order."""
  batch = tmp_path / "batch.jsonl"
  sent = ("messages", "tools", "tool_choice")
  lines = [
    {"custom_id": x["id"], "body": {"model": "small-1", **{k: x[k] for k in sent}}} for x in rows
  ]
  batch.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
  with AssistantServer(know_gold(rows)) as server:
    assert ask(server.url, "--param", "temperature=0", "seed=1") == 0
    asked = sum(server.asked.values())
    assert ask(server.url, "--param", "seed=1", "temperature=0", file=batch) == 0
    assert sum(server.asked.values()) == asked
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress(ask.out.read_bytes()))
    assert ask(server.url, "--param", "temperature=0", "seed=1", "--reuse", packed) == 1
  assert_four_parts(capsys.readouterr().err, "a.jsonl.gz: compressed", "gunzip --keep")


def test_a_seed_draws_nothing_without_limit(ask, capsys):
  assert ask("http://localhost:1/v1", "--seed", "4") == 2
  assert_four_parts(capsys.readouterr().err, "--seed 4 without --limit", "add --limit N")


def test_limit_takes_dialogues_in_all_variants_of_seen_and_unseen_services(rows, ask, capsys):
  from sgdx_t5x.corpus.opening import open_corpus

  seen = open_corpus("sample").seen_services("test")
  taken = []
  with AssistantServer(know_gold(rows)) as server:
    for limit in ("2", "4"):
      assert ask(server.url, "--limit", limit, "--corpus", "sample") == 0
      ids = {x["custom_id"] for x in answered(ask.out)}
      taken.append({x["metadata"]["frame"].split("-")[0] for x in rows if x["id"] in ids})
      assert len(taken[-1]) == int(limit)
      of = [x for x in rows if x["metadata"]["frame"].split("-")[0] in taken[-1]]
      assert {x["id"] for x in of} == ids
      assert {x["metadata"]["service"] in seen for x in of} == {True, False}
  assert taken[0] < taken[1]
  assert "PARTIAL" in capsys.readouterr().out


def test_a_dry_run_asks_and_writes_nothing(rows, requests, ask, capsys):
  args = ("--dry-run", "--price", "2", "10")
  assert ask("http://127.0.0.1:9/v1", *args) == 0
  printed = capsys.readouterr().err
  assert f"would be sent: {len(rows)} of {len(rows)} requests" in printed
  assert not ask.out.exists()


@pytest.mark.parametrize(
  ("args", "words"),
  [
    (("--endpoint", "localhost:8000"), "--endpoint 'localhost:8000'"),
    (
      ("--endpoint", f"http://me:{KEY}@127.0.0.1/v1"),
      "--endpoint contains a user name or password",
    ),
    (("--key-env", KEY), "--key-env is not a variable name"),
    (("--param", "stream=true"), "--param stream=true"),
    (("--param", "a=1", "a=2"), "--param a=2"),
    (("--param", "temperature=NaN"), "--param temperature=NaN: Out of range"),
    (("--param", "stop=a b"), "for a text, --param 'stop=\"a b\"'"),
    (("--param", "a=[1e999]"), "--param a=[1e999]: Out of range"),
    (("--out", "answers.jsonl.gz"), "--out answers.jsonl.gz"),
    (("--concurrency", "0"), "--concurrency 0"),
    (("--param", f"x={'[' * 100_000}"), "--param x: JSON nested too deeply"),
    (("--timeout", "0"), "--timeout 0"),
    (("--timeout", "inf"), "--timeout inf"),
    (("--timeout", "nan"), "--timeout nan"),
    (("--backoff", "nan"), "--backoff nan"),
    (("--price", "-1", "2"), "--price -1.0"),
    (("--price", "nan", "1"), "--price nan 1.0"),
  ],
)
def test_options_that_make_no_sense(args, words, ask, capsys):
  assert ask("http://127.0.0.1:9/v1", *args) == 2
  printed = capsys.readouterr().err
  assert_four_parts(printed, words)
  assert KEY not in printed


def test_a_key_or_model_that_is_not_there(ask, capsys, monkeypatch):
  assert ask("http://127.0.0.1:9/v1", "--key-env", "NO_SUCH_KEY") == 1
  assert_four_parts(capsys.readouterr().err, "NO_SUCH_KEY is not set")
  monkeypatch.setenv("MY_KEY", f"{KEY} and words")
  assert ask("http://127.0.0.1:9/v1", "--key-env", "MY_KEY") == 1
  printed = capsys.readouterr().err
  assert_four_parts(printed, "MY_KEY does not hold a valid key")
  assert KEY not in printed
  assert ask("http://127.0.0.1:9/v1", model="") == 2
  assert_four_parts(capsys.readouterr().err, "no --model", "line 1 names no model")


@pytest.mark.parametrize(
  ("text", "words"),
  [
    ("", "contains no requests"),
    ('{"id": "v1/test/1_00000-002-Banks_2/*"}\n', "line 1: no messages"),
    ('{"messages": []}\n', "line 1: neither custom_id nor id"),
    ('{"id": "x", "messages": []}\n', "example id 'x'"),
    ('{"id": "v1/te', "line 1: not valid JSON"),
    pytest.param(
      f'{{"id": "v1/test/1_00000-002-Banks_2/*", "messages": [{DEEP}]}}',
      "line 1, with --param: JSON nested too deeply",
      marks=writes_less_than_it_reads,
    ),
    ('{"id": "v1/test/1_00000-002-Banks_2/*", "messages": []}\n' * 2, "duplicate id"),
  ],
)
def test_files_that_hold_no_requests(text, words, ask, tmp_path, capsys):
  file = tmp_path / "r.jsonl"
  file.write_text(text)
  assert ask("http://127.0.0.1:9/v1", file=file) == 1
  assert_four_parts(capsys.readouterr().err, words)
  assert ask("http://127.0.0.1:9/v1", file=tmp_path / "none.jsonl") == 1
  assert_four_parts(capsys.readouterr().err, "no file at")


def test_a_second_run_into_one_file_is_refused(ask, tmp_path, capsys):
  with locked(ask.out) as process:
    before = sorted(tmp_path.iterdir())
    assert ask("http://127.0.0.1:9") == 1
    assert_four_parts(capsys.readouterr().err, f"is being written by process {process.pid} on ")
    assert sorted(tmp_path.iterdir()) == before
