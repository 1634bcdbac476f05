"""`sgdx tools score`: from requests to the table, by a scripted assistant that knows the gold."""

import json

import pytest
from commands import assert_four_parts, sgdx

VARIANTS = ("original", "v1", "v2", "v3", "v4", "v5")
BAD = "v3"  # the variant that the assistant does not understand: it calls no tool


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
  """Answers to requests of a sample of dialogues, as OpenAI's batches return them."""
  folder = tmp_path_factory.mktemp("answers")
  requests, out = folder / "requests.jsonl", folder / "answers.jsonl"
  args = ("--variant", *VARIANTS, "--delivery", "distractors:5", "--limit", "12", "--targets")
  assert not sgdx("tools", "requests", "--corpus", "sample", "--out", requests, *args)
  with out.open("w") as file:
    for row in map(json.loads, requests.read_text().splitlines()):
      calls = [] if row["metadata"]["variant"] == BAD else row["target"]
      functions = [{**call, "arguments": json.dumps(call["arguments"])} for call in calls]
      message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"type": "function", "function": x} for x in functions],
      }
      body = {"choices": [{"message": message}]}
      answer = {"status_code": 200, "body": body}
      print(json.dumps({"custom_id": row["id"], "response": answer, "error": None}), file=file)
  return out


def score(answers, *args):
  given = ("--corpus", "sample", "--predictions", f"all={answers}", "--bootstrap-samples", "0")
  return sgdx("tools", "score", *given, *args)


def cells(printed, title):
  """Maps row names to cells, in the table titled `title`."""
  lines = printed.partition(title)[2].split("\n\n")[0].splitlines()[2:]
  return {line[:38].strip(): line[38:].split() for line in lines}


def test_an_assistant_that_knows_the_gold_fails_only_where_it_calls_nothing(answers, capsys):
  assert score(answers, "--allow-missing") == 0
  printed = capsys.readouterr().out
  jga = printed.split("\n\n")[0]
  others = jga[jga.index("\nall") :].splitlines()[1].split()[1:7]
  assert [others[i] for i in (0, 1, 2, 4, 5)] == ["100.0"] * 5
  assert float(others[3]) < 30  # the frames whose gold state is empty
  rates = cells(printed, "calls, all services (%)")
  intent = rates["last call is the active intent"]
  assert intent == ["100.0", "100.0", "100.0", "0.0", "100.0", "100.0"]
  missed = rates["no call where a tool fits"]
  assert missed == ["0.0", "0.0", "0.0", "100.0", "0.0", "0.0"]
  assert "|format:tools|delivery:distractors:5|" in printed
  of = "answers without a call: 0 of 74 (original), 0 of 74 (v1), 0 of 74 (v2), 74 of 74 (v3), "
  assert of in printed


def test_the_tool_counts_in_numbers_of_its_own(answers, tmp_path, capsys):
  """A table, robustness, intervals and a paired test, as for JGA."""
  frames, out = tmp_path / "f.jsonl", tmp_path / "s.json"
  given = ("--allow-missing", "--per-frame", frames, "--json", out, "--bootstrap-samples", "100")
  assert score(answers, *given, "--all") == 0
  printed = capsys.readouterr().out
  for name in ("right_call", "right_tool"):
    table = printed.partition(f"{name} (%)")[2].splitlines()
    everything = next(line for line in table if line.startswith("all "))
    assert everything.split()[1:7] == ["100.0", "100.0", "100.0", "0.0", "100.0", "100.0"]
    assert f"{name}, robustness (%)" in printed
    assert f"{name}, 95% intervals (%)" in printed
  assert "right_call" not in printed.partition("official metrics")[2].split("\n\n")[0]
  assert json.loads(out.read_text())["metrics"]["right_tool"]["all"]["right_tool_v1_5"] == 0.8
  assert sgdx("diff", frames, frames, "--metric", "right_tool", "--bootstrap-samples", "100") == 0
  assert "right_tool" in capsys.readouterr().out
  out.write_text(json.dumps({**json.loads(out.read_text()), "calls": {"v1": 5}}))
  assert sgdx("diff", out, frames) == 1
  assert_four_parts(capsys.readouterr().err, "what was also counted: TypeError")


def test_json_has_the_groups(answers, tmp_path):
  out = tmp_path / "s.json"
  assert score(answers, "--allow-missing", "--json", out) == 0
  calls = json.loads(out.read_text())["calls"]
  assert list(calls) == list(VARIANTS)
  assert calls["v1"]["all"]["missed"]["of"] > 20


def test_answers_without_any_call_end_in_an_error(answers, tmp_path, capsys):
  silent = tmp_path / "silent.jsonl"
  rows = [json.loads(line)["custom_id"] for line in answers.read_text().splitlines()]
  silent.write_text("".join(json.dumps({"id": name, "calls": []}) + "\n" for name in rows))
  assert score(silent, "--allow-missing") == 1
  assert_four_parts(capsys.readouterr().err, "none of 444 answers has a call, not even in its text")


def test_what_does_not_fit_is_refused(answers, tmp_path, capsys):
  assert score(answers) == 1
  assert_four_parts(capsys.readouterr().err, "are missing", "--allow-missing")
  assert score(answers, "--prompt-style", "format=d3st") == 2
  assert_four_parts(capsys.readouterr().err, "sgdx tools score with --prompt-style")
  assert sgdx("tools", "score", "--help") == 0
  assert "--prompt-style" not in capsys.readouterr().out
  cut = tmp_path / "cut.jsonl"
  cut.write_text(answers.read_text()[:-30])
  assert score(cut, "--allow-missing") == 1
  assert_four_parts(capsys.readouterr().err, "cut.jsonl, line", "cut short")
  given = ("--corpus", "sample", "--predictions", f"all={answers}", "--allow-missing")
  assert sgdx("score", *given) == 1  # without tools
  assert_four_parts(
    capsys.readouterr().err, "line 1", "an API response or a tool call", "sgdx tools score"
  )


def test_answers_to_prompts_may_have_further_keys(tmp_path):
  """Users may keep a service's raw response beside the text extracted from it."""
  out = tmp_path / "p.jsonl"
  args = ("--corpus", "sample", "--variant", "v1", "--limit", "4", "--out", out)
  assert not sgdx("prompts", *args, "--targets")
  rows = [json.loads(line) for line in out.read_text().splitlines()]
  answered = ({"id": x["id"], "prediction": x["target"], "response": {}} for x in rows)
  out.write_text("".join(f"{json.dumps(row)}\n" for row in answered))
  given = ("--predictions", f"all={out}", "--allow-missing", "--bootstrap-samples", "0")
  assert sgdx("score", "--corpus", "sample", *given) == 0
