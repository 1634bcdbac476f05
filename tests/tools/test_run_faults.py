"""`sgdx tools run`: what a service, a disk or a signal did is never taken for what a model did."""

import gzip
import json
import os
import signal
import subprocess

import pytest
from aiohttp import web
from assistant_server import AssistantServer, completion, error, know_gold
from commands import SGDX, assert_four_parts, sgdx

from sgdx_t5x.tools.endpoints import endpoint


@pytest.fixture
def ask(requests, tmp_path, monkeypatch):
  """Runs the command in this process; returns the exit code."""
  monkeypatch.setenv("no_proxy", "*")

  def ask(url, *args, out=tmp_path / "a.jsonl"):
    given = ("--endpoint", url, "--model", "small-1", "--out", out, "--backoff", "0.01")
    return sgdx("tools", "run", requests, *given, "--concurrency", "4", *args)

  ask.out = tmp_path / "a.jsonl"
  return ask


def answered(out):
  return [json.loads(line) for line in out.read_text().splitlines()]


def message(**parts):
  return {"role": "assistant", "content": None, **parts}


@pytest.mark.parametrize(
  "body",
  [
    {"choices": [{"finish_reason": "error", "message": message(content="")}]},
    {"choices": [{"finish_reason": "network_error", "message": message()}]},
    {"choices": [{"finish_reason": "stop", "message": message(), "error": {"code": 502}}]},
    {"choices": [{"finish_reason": "stop", "message": message()}], "error": {"code": 502}},
    {"choices": [{"finish_reason": "error", "message": None}]},
  ],
)
def test_an_error_inside_a_200_is_asked_again(body, rows, ask, capsys):
  fault = lambda number, _: web.json_response(body) if number % 3 == 0 else None  # noqa: E731
  with AssistantServer(know_gold(rows), fault) as server:
    assert ask(server.url) == 0
    assert set(server.answered.values()) == {1}
  assert "retried: " in capsys.readouterr().err
  assert 'finish_reason":"tool_calls' in ask.out.read_text().replace(" ", "")
  assert all(x["response"]["body"]["usage"] for x in answered(ask.out))


def test_a_failure_that_an_earlier_version_kept_is_asked_again(rows, ask):
  with AssistantServer(know_gold(rows)) as server:
    assert ask(server.url) == 0
    lines = answered(ask.out)
    lines[1]["response"]["body"] = {"choices": [{"finish_reason": "error", "message": message()}]}
    ask.out.write_text("".join(json.dumps(x, separators=(",", ":")) + "\n" for x in lines))
    assert ask(server.url) == 0
  ids = [x["custom_id"] for x in answered(ask.out)]
  assert ids[-1] == lines[1]["custom_id"]
  assert len(ids) == len(lines) + 1


def test_an_answer_that_a_service_withheld_is_not_the_models(rows, ask, capsys):
  body = {"choices": [{"finish_reason": "content_filter", "message": message(content="I")}]}
  fault = lambda number, _: web.json_response(body) if number == 3 else None  # noqa: E731
  with AssistantServer(know_gold(rows), fault) as server:
    assert ask(server.url) == 1
  assert_four_parts(capsys.readouterr().err, "1 requests were not answered", "content_filter")
  assert len(answered(ask.out)) == len(rows) - 1


@pytest.mark.parametrize(("status", "said"), [(400, "maximum context length"), (413, "")])
def test_a_file_that_begins_with_long_requests_is_answered(status, said, rows, ask, capsys):
  """More of them than the refusals after which a run gives up: it could never pass them."""
  fault = lambda number, _: error(status, said) if number < 20 else None  # noqa: E731
  with AssistantServer(know_gold(rows), fault) as server:
    assert ask(server.url) == 1
  assert_four_parts(capsys.readouterr().err, "20 requests were not answered")
  assert len(answered(ask.out)) == len(rows) - 20


def test_a_refusal_inside_a_200_is_not_asked_again(rows, ask, capsys):
  """As a router sends it: each long dialogue would be sent eight times, and many end a run."""
  body = {"error": {"code": 400, "message": "maximum context length"}}
  fault = lambda number, _: web.json_response(body) if number > 3 else None  # noqa: E731
  with AssistantServer(know_gold(rows), fault) as server:
    assert ask(server.url) == 1
    assert set(server.asked.values()) == {1}
  assert_four_parts(capsys.readouterr().err, f"{len(rows) - 4} requests were not answered")


@pytest.mark.parametrize("status", [400, 500])
def test_a_malformed_call_that_a_service_refuses_is_a_wrong_answer(
  status, rows, ask, tmp_path, capsys
):
  """Groq's form; every second request. The answer is kept, not asked for again, and reused."""
  body = {"error": {"code": "tool_use_failed", "failed_generation": '<function=find>{"a": '}}
  bad = {json.dumps(row["tools"]) for row in rows if row["metadata"]["variant"] == "v2"}

  def fault(_, request):
    is_bad = json.dumps(request["tools"]) in bad
    return web.json_response(body, status=status) if is_bad else None

  with AssistantServer(know_gold(rows), fault) as server:
    assert ask(server.url, "--corpus", "sample") == 0
    printed = capsys.readouterr().out
    asked = server.asked.total()
    again = tmp_path / "b.jsonl"
    assert ask(server.url) == ask(server.url, "--reuse", ask.out, out=again) == 0
    assert server.asked.total() == asked == len(server.asked)
  line = next(x for x in printed.splitlines() if x.startswith("answers that are not valid JSON"))
  assert line.split()[-2:] == ["0.0", "100.0"]
  by_id = lambda row: row["custom_id"]  # noqa: E731
  assert sorted(answered(again), key=by_id) == sorted(answered(ask.out), key=by_id)
  statuses = {x["custom_id"][:2]: x["response"]["status_code"] for x in answered(ask.out)}
  assert statuses == {"v1": 200, "v2": status}


@pytest.mark.parametrize(
  "said",
  [
    "Context window of 4096 tokens exceeded: 2950 of text, 1360 of tool input.",
    "Please shorten the messages, the tools or the completion.",
    "input too big; tool_choice and tools count as well",
    "Your prompt about tools was flagged: it is not allowed by the usage policies.",
    "messages.3.tool_calls.0.function.arguments: null is not allowed",
    "Tool schema: the keyword format is not supported",
    "status 403: moderation: your input was flagged",
  ],
)
def test_a_request_with_a_fault_of_its_own_is_one_refused_request(said, rows, ask, capsys):
  """Even if it is the first, and its message speaks of tools."""
  status = 403 if "403" in said else 400
  fault = lambda number, _: error(status, said) if number == 0 else None  # noqa: E731
  with AssistantServer(know_gold(rows), fault) as server:
    assert ask(server.url, "--concurrency", "1") == 1
  assert_four_parts(capsys.readouterr().err, "1 requests were not answered", said[:30])
  assert len(answered(ask.out)) == len(rows) - 1


@pytest.mark.parametrize(
  "said",
  [
    "registry.ollama.ai/library/x does not support tools",
    "tools param requires --jinja flag",
    "This model doesn't support function calling",
    "Unrecognized request argument supplied: tools",
    "No endpoints found that support tool use.",
  ],
)
def test_a_server_without_tools_is_left_at_once(said, rows, ask, capsys):
  status = 404 if "endpoints" in said else 400  # a router's
  with AssistantServer(know_gold(rows), lambda *_: error(status, said)) as server:
    assert ask(server.url) == 1
    assert server.asked.total() <= 4
  assert_four_parts(capsys.readouterr().err, said, "support tools")


def test_answers_cut_off_are_counted(rows, ask, capsys):
  cut = completion([], "m")
  cut["choices"][0]["finish_reason"] = "length"
  fault = lambda number, _: web.json_response(cut) if number < 3 else None  # noqa: E731
  with AssistantServer(know_gold(rows), fault) as server:
    assert ask(server.url) == 0
  assert "cut off: 3 answers" in capsys.readouterr().err


def test_an_answer_that_unpacks_to_too_much_is_not_read_to_its_end(rows, ask, capsys, monkeypatch):
  monkeypatch.setattr(endpoint, "LARGEST_ANSWER", 2**20)
  packed = gzip.compress(b'{"choices": [' + b" " * 2**24)

  def fault(number, _):
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    return web.Response(body=packed, headers=headers) if number == 3 else None

  with AssistantServer(know_gold(rows), fault) as server:
    assert ask(server.url) == 1
  assert_four_parts(capsys.readouterr().err, "1 requests were not answered", "more than 1 MiB")
  assert len(answered(ask.out)) == len(rows) - 1


# --- files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [10, 40, 47])
@pytest.mark.parametrize("what", ["unlink", "move", "replace", "empty"])
def test_answers_that_are_taken_away_end_the_run(what, at, rows, ask, capsys):
  def fault(number, _):
    if number == at:
      if what == "unlink":
        ask.out.unlink()
      elif what == "move":
        ask.out.rename(ask.out.with_name("moved.jsonl"))
      elif what == "replace":
        ask.out.rename(ask.out.with_name("moved.jsonl"))
        ask.out.write_text("{}\n" * 10_000)
      else:
        os.truncate(ask.out, 0)

  with AssistantServer(know_gold(rows), fault) as server:
    assert ask(server.url) == 1
  printed = capsys.readouterr().err
  assert_four_parts(printed, "removed, moved or changed during the run", "move it back")
  assert f": 0 of {len(rows)}" in printed


def test_answers_that_are_moved_away_and_back_are_resumed(rows, ask):
  moved = ask.out.with_name("moved.jsonl")
  fault = lambda number, _: ask.out.rename(moved) and None if number == 20 else None  # noqa: E731
  with AssistantServer(know_gold(rows), fault) as server:
    assert ask(server.url) == 1
    moved.rename(ask.out)
    server.fault = lambda *_: None
    assert ask(server.url) == 0
    assert len(answered(ask.out)) == len(rows)


@pytest.mark.parametrize("end", [b"\0" * 5_000, b'{"custom_id": "v1/te' + b"\0" * 900, b'{"cust'])
def test_a_tail_that_a_crash_left_is_cut_off(end, rows, ask):
  with AssistantServer(know_gold(rows)) as server:
    assert ask(server.url) == 0
    whole = ask.out.read_bytes()
    lines = whole.splitlines(keepends=True)
    ask.out.write_bytes(b"".join(lines[:-2]) + end)
    asked = server.asked.total()
    assert ask(server.url) == 0
    assert server.asked.total() == asked + 2
  assert sorted(ask.out.read_bytes().splitlines()) == sorted(whole.splitlines())


# --- no calls ------------------------------------------------------------------------------


@pytest.mark.parametrize("corpus", [(), ("--corpus", "sample")])
def test_a_run_without_a_call_says_so_and_fails(corpus, rows, ask, capsys):
  """The server leaves the calls in the text, as one without a parser does."""
  gold = know_gold(rows)

  def fault(_, body):
    calls = gold[json.dumps([body["messages"], body["tools"]])] or [{"name": "x", "arguments": {}}]
    answer = completion([], "m")
    answer["choices"][0]["message"] = message(content=f"```json\n{json.dumps(calls)}\n```")
    return web.json_response(answer)

  with AssistantServer(gold, fault) as server:
    assert ask(server.url, *corpus) == 1
    printed = capsys.readouterr()
    of = f"none of {len(rows)} answers has a call, but the text of {len(rows)} has one"
    assert_four_parts(printed.err, of, "--calls-from-text", '```json [{"name": ')
    assert ("right_call (%)" in printed.out) == bool(corpus)
    asked = server.asked.total()
    assert ask(server.url, *corpus, "--calls-from-text") == 0
    assert server.asked.total() == asked
  printed = capsys.readouterr()
  assert "|calls:from-text|" in printed.out if corpus else "--calls-from-text" in printed.err


def test_a_run_of_answers_in_words_says_so_and_fails(rows, ask, capsys):
  with AssistantServer(
    know_gold(rows), lambda *_: web.json_response(completion([], "m"))
  ) as server:
    assert ask(server.url) == 1
  assert_four_parts(capsys.readouterr().err, f"none of {len(rows)} answers has a call, not even")


# --- signals -------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at", [0, 1, 7, 30, 47])
def test_a_signal_leaves_no_traceback(number, at, rows, requests, tmp_path):
  out = tmp_path / "a.jsonl"
  with AssistantServer(know_gold(rows)) as server:
    words = ["tools", "run", requests, "--endpoint", server.url, "--model", "m", "--out", out]
    process = subprocess.Popen(
      [*SGDX, *map(str, words), "--concurrency", "8"],
      env={**os.environ, "no_proxy": "*"},
      stderr=subprocess.PIPE,
      text=True,
    )
    server.fault = lambda number, _: "hang" if number > at else None
    server.wait_for_answers(at)
    for _ in range(3):  # the impatient press Ctrl-C again
      process.send_signal(number)
    stderr = process.communicate()[1]
  assert process.returncode in (128 + number, -number)  # the latter before Python could react
  assert "Traceback" not in stderr
  assert "Exception" not in stderr
  assert at < 8 or len(answered(out)) >= at - 8  # those that were on their way
