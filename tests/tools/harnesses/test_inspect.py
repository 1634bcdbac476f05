"""The Inspect task, run by Inspect with its own mock model, scripted with the gold answers.

Inspect takes seconds to import, so functions do it: all of pytest's workers read this file.
"""

import json
import os

import pytest
from commands import sgdx
from needs import lacks

from sgdx_t5x.errors import SgdxError

if lacks("inspect_ai") and not os.environ.get("CI"):
  pytest.skip("no inspect_ai: pip install 'sgdx_t5x[inspect]'", allow_module_level=True)

BAD = "v3"  # the variant that the assistant does not understand: it calls no tool
VARIANTS = ("original", "v1", "v2", "v3", "v4", "v5")


@pytest.fixture(scope="module")
def inspect_task():
  from sgdx_t5x.tools.harnesses import inspect_task

  return inspect_task


@pytest.fixture(scope="module")
def requests(tmp_path_factory):
  file = tmp_path_factory.mktemp("requests") / "requests.jsonl"
  args = ("--variant", *VARIANTS, "--limit", "3", "--targets", "--out", file)
  assert not sgdx("tools", "requests", "--corpus", "sample", *args)
  return file


def key(messages, tools):
  return json.dumps([messages, tools])


def scripted(requests, broken=""):
  """Inspect's mock model, answering a request with its target; `broken` gets invalid JSON."""
  from inspect_ai.model import ChatMessageAssistant, ModelOutput, ModelUsage, get_model
  from inspect_ai.tool import ToolCall

  targets = {}
  for row in map(json.loads, requests.read_text().splitlines()):
    names = [tool["function"]["name"] for tool in row["tools"]]
    targets[key([message["content"] for message in row["messages"]], names)] = row

  def answer(messages, tools, tool_choice, config):
    row = targets[key([x.text for x in messages], [tool.name for tool in tools])]
    assert [tool.parameters.model_dump(exclude_none=True) for tool in tools] == [
      tool["function"]["parameters"] for tool in row["tools"]
    ]
    assert tool_choice == "auto"
    target = [] if row["metadata"]["variant"] == BAD else row["target"]
    error = "Error parsing the arguments" if row["id"] == broken else None
    calls = [
      ToolCall(
        id=f"call_{i}",
        function=call["name"],
        arguments={} if error else call["arguments"],
        parse_error=error,
      )
      for i, call in enumerate(target)
    ]
    message = ChatMessageAssistant(content="", tool_calls=calls or None)
    output = ModelOutput.from_message(message)
    output.usage = ModelUsage(total_tokens=1)  # else the mock model downloads a tokenizer to count
    return output

  return get_model("mockllm/model", custom_outputs=answer, memoize=False)


def sample_score(row, value=1):
  from inspect_ai.scorer import SampleScore, Score

  return SampleScore(score=Score(value=value, metadata={"row": row}))


def evaluate(task, model, folder):
  import inspect_ai

  (log,) = inspect_ai.eval(task, model=model, display="none", log_dir=str(folder / "logs"))
  assert log.status == "success", log.error.message
  found = {name: x.value for score in log.results.scores for name, x in score.metrics.items()}
  return log, found


def test_an_assistant_that_knows_the_gold_is_scored_as_by_the_command(
  inspect_task, requests, tmp_path
):
  answers, out = tmp_path / "answers.jsonl", tmp_path / "scores.json"
  rows = list(map(json.loads, requests.read_text().splitlines()))
  broken = next(x["id"] for x in rows if x["id"].startswith("v1/") and x["target"])
  model = scripted(requests, broken)
  task = inspect_task.sgdx(requests=str(requests), answers=str(answers))
  log, found = evaluate(task, model, tmp_path)
  frames = len(rows) / len(VARIANTS)
  assert [found[f"jga_{v}_all"] for v in ("orig", "v2", "v4", "v5")] == [1.0] * 4
  assert found["jga_v1_all"] == pytest.approx(1 - 1 / frames)
  assert found["invalid_json"] == pytest.approx(1 / len(rows))
  assert found["missed"] == pytest.approx(1 / len(VARIANTS))
  given = ("--corpus", "sample", "--predictions", f"all={answers}", "--bootstrap-samples", "0")
  assert sgdx("tools", "score", "--allow-missing", *given, "--json", out) == 0
  scores = json.loads(out.read_text())["sgdx"]
  for name in ("jga_orig_all", "jga_v3_all", "ss_jga_all", "retained_all", "jga_v1_5_seen"):
    metric, _, group = name.rpartition("_")
    assert found[name] == scores[group][metric]
  assert found["jga_v3_all"] < 0.5
  jga = [x.scores["calls"].value for x in log.samples if x.metadata["variant"] == BAD]
  assert sum(jga) / len(jga) == pytest.approx(found["jga_v3_all"])


def test_numbers_of_a_run_that_goes_on(inspect_task, requests):
  """Inspect computes metrics during a run, from the samples answered so far."""
  rows = list(map(json.loads, requests.read_text().splitlines()))
  numbers = inspect_task.state_scores("sample", "test", None)

  def of(*chosen):
    return numbers([sample_score({"id": row["id"], "calls": row["target"]}) for row in chosen])

  assert of() == {}
  assert rows[1]["id"].startswith("v1/")
  assert of(rows[0], rows[1 + len(VARIANTS)]) == {}  # v1 of another frame
  assert of(rows[0], rows[1])["jga_v1_all"] == 1
  # A first answer that calls the tool of another variant is wrong: ids cannot be mixed up here.
  called = next(i for i, row in enumerate(rows) if row["target"] and i % len(VARIANTS) == 0)
  strange = {**rows[called + 1], "target": rows[called]["target"]}
  assert of(rows[called], strange)["jga_v1_all"] == 0


def test_variants_need_not_show_the_right_tools_of_the_same_frames(inspect_task, tmp_path):
  """The ids of requests say which do not."""
  file, answers = tmp_path / "requests.jsonl", tmp_path / "answers.jsonl"
  args = ("--variant", "original", "v5", "--limit", "3", "--delivery", "retrieved:2")
  assert not sgdx("tools", "requests", "--corpus", "sample", *args, "--out", file)
  numbers = inspect_task.state_scores("sample", "test", str(answers))
  rows = list(map(json.loads, file.read_text().splitlines()))
  pairs = zip(rows[::2], rows[1::2], strict=True)
  chosen = [
    x for pair in pairs if len({row["metadata"]["absent"] for row in pair}) == 2 for x in pair
  ]
  found = numbers([sample_score({"id": row["id"], "calls": []}, value=0) for row in chosen])
  assert {"jga_orig_all", "jga_v5_all"} <= found.keys()
  assert len(answers.read_text().splitlines()) == len(chosen) > 0


@pytest.mark.parametrize("name", ["answers.json", "nowhere/answers.jsonl"])
def test_answers_that_could_not_be_written_are_refused_first(
  inspect_task, requests, tmp_path, name
):
  with pytest.raises(SgdxError, match=r"(?s)answers=.*\*\.jsonl, in a folder that exists"):
    inspect_task.sgdx(requests=str(requests), answers=str(tmp_path / name))


def test_other_files_are_refused_by_name(inspect_task, requests, tmp_path):
  batch = tmp_path / "batch.jsonl"
  row = {"custom_id": "v1/test/1_00000-000-Banks_1/*", "body": {}}
  batch.write_text(json.dumps(row))
  with pytest.raises(SgdxError, match="no example id"):
    inspect_task.sgdx(requests=str(batch))
  batch.write_text(json.dumps({"id": row["custom_id"], "prompt": "x"}))
  with pytest.raises(SgdxError, match="no messages"):
    inspect_task.sgdx(requests=str(batch))


def test_a_frame_that_the_corpus_lacks_is_refused_with_the_command_of_the_requests(inspect_task):
  row = {"id": "v1/test/9_99999-000-Vets_1/*", "calls": []}
  with pytest.raises(SgdxError, match="9_99999") as refused:
    inspect_task._frames("sample", "test").jga(row)
  assert "`sgdx tools requests`" in refused.value.fix
