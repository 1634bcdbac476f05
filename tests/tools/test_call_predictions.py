"""Scoring tool calls: all answer formats score the same, rates by hand, and bad files."""

import gzip
import json
import random

import numpy as np
import pytest
import tiny_corpus as tiny
from answer_forms import FORMS, bare, calls_of, pairs_of, score, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sgdx_t5x import metrics
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.scoring import score_predictions, score_report
from sgdx_t5x.scoring.compare import compare
from sgdx_t5x.scoring.score_files import read_frames, save
from sgdx_t5x.signature import Signature, differences
from sgdx_t5x.tools.call_predictions import call_rows
from sgdx_t5x.tools.delivery import ToolStyle
from sgdx_t5x.tools.format import ToolCalls, calls_format

VARIANTS = ("original", "v3")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  return open_corpus(tiny.write_corpus(tmp_path_factory.mktemp("tiny")))


# --- forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_gold_in_every_form_is_right(form, corpus, tmp_path):
  rows = [FORMS[form](key, calls) for key, calls in calls_of(corpus, tiny.GOLD).items()]
  scored = score(corpus, write(tmp_path / "a.jsonl", rows))
  assert scored.complete or all("published" in line for line in scored.warnings)
  for variant in VARIANTS:
    for metric in ("joint_goal_accuracy", "right_call", "right_tool", "right_arguments"):
      assert scored.frames[variant].metrics[metric].tolist() == [1.0] * 6
    assert scored.further["calls"][variant]["all"]["intent_accuracy"] == {"value": 1.0, "of": 6}
  assert "|format:tools|delivery:gold|jga:" in scored.signature


def test_random_states_score_the_same_as_dialogues(corpus, tmp_path):
  """50 sets of states, with right, wrong, fuzzy, missing and superfluous values."""
  draw = random.Random(7)
  values = ["Checking", "checking", "Anna Lee", "Ann Le", "$50", "dontcare", "rent", "Soho", "x"]
  for number in range(50):
    states = {
      dialogue_id: [
        {
          service: {
            slot: [gold.get(slot, ["y"])[0] if draw.random() < 0.6 else draw.choice(values)]
            for slot, _, _ in tiny.SLOTS[service]
            if slot not in tiny.UNTRACKED and draw.random() < 0.7
          }
          for service, gold in frames.items()
        }
        for frames in turns
      ]
      for dialogue_id, turns in tiny.GOLD.items()
    }
    file = write(tmp_path / f"{number}.jsonl", bare(calls_of(corpus, states)))
    folder = str(tiny.write_dialogues(tmp_path / str(number), states))
    calls = score(corpus, file)
    dialogues = score_predictions(
      corpus, "test", dict.fromkeys(VARIANTS, folder), bootstrap_samples=0
    )
    for variant in VARIANTS:
      a, b = (x.frames[variant].metrics for x in (calls, dialogues))
      for name in metrics.goals.GOAL_METRICS:
        np.testing.assert_array_equal(a[name], b[name])


# --- rates ---------------------------------------------------------------------------------


def test_rates_by_hand(corpus, tmp_path):
  calls = calls_of(corpus, tiny.GOLD, ["original"])
  first, second, third, both, other, last = calls
  assert (both, other) == ("original/test/1_00001-000-Banks_1/*", both[:-9] + "Homes_2/*")
  calls[first] = []
  calls[second] = [{"name": "Banks_1__Do", "arguments": {"kind": "Checking", "colour": "red"}}]
  calls[third] = [{"name": "Homes_2__Do", "arguments": {"area": "x"}}]
  calls[both] = [*calls[other], *calls[both]]  # Homes_2 is in this dialogue: not a wrong tool
  calls[other] = [{"name": "Homes_2__Do", "arguments": '{"intent": "re'}]
  calls[last] = [
    {"name": "Cook", "arguments": {}},
    {"name": "Homes_2__Do", "arguments": {"area": 3}},
  ]
  scored = score(corpus, write(tmp_path / "a.jsonl", bare(calls)))
  found = scored.further["calls"]["original"]
  assert found["all"] == {
    "right_call": {"value": 1 / 6, "of": 6},  # both; "other" has the right tool
    "right_tool": {"value": 3 / 6, "of": 6},
    "right_arguments": {"value": 2 / 6, "of": 6},  # nothing was to be given in the first
    "intent_accuracy": {"value": 4 / 6, "of": 6},  # all but the first and the third
    "wrong_tool": {"value": 1 / 6, "of": 6},
    "unknown_tool": {"value": 1 / 6, "of": 6},
    "invented_arguments": {"value": 1 / 4, "of": 4},  # 2 in second, 1 in both, 1 in last
    "mistyped_arguments": {"value": 1 / 4, "of": 4},
    "invalid_json": {"value": 1 / 6, "of": 6},
    "abstained": {"value": None, "of": 0},
    "missed": {"value": 1 / 6, "of": 6},
    "in_text": {"value": 0.0, "of": 6},
    "cut_off": {"value": 0.0, "of": 6},
    "no_call": {"value": 1 / 6, "of": 6},  # the first
  }
  assert found["unseen"]["invalid_json"] == {"value": 1 / 2, "of": 2}
  assert found["seen"]["wrong_tool"] == {"value": 1 / 4, "of": 4}
  assert scored.frames["original"].metrics["joint_goal_accuracy"].tolist()[3] == 1.0
  report = score_report(scored)
  assert report["calls"] == scored.further["calls"]
  assert report["notes"][0] == "answers without a call: 1 of 6 (original)"


@pytest.mark.parametrize(
  ("arguments", "is_right", "jga"),
  [
    ({"kind": "Checking", "to": "  anna LEE"}, True, 1.0),  # free text in another case
    ({"kind": "Checking", "to": "Anna"}, True, 1.0),
    ({"kind": "checking", "to": "Anna"}, False, 0.0),  # not in the enum
    ({"kind": "Checking", "to": "Anna Le"}, False, None),  # fuzzy matching gives it a part
    ({"kind": "Checking", "to": ["Anna", "Bob"]}, False, 1.0),  # the first of a list
    ({"kind": "Checking", "to": ["Anna"]}, False, 1.0),  # the schema says string
    ({"kind": "Checking", "to": "Anna", "colour": "red"}, False, 1.0),  # invented
    ({"kind": "Checking", "to": "Anna", "amount": None}, False, 1.0),  # null is no string
    ({"kind": "Checking", "to": "Anna", "amount": ""}, True, 1.0),  # not given
    ({"kind": "Checking"}, False, 0.0),
  ],
)
def test_a_right_call_has_all_arguments_right(arguments, is_right, jga, corpus, tmp_path):
  calls = calls_of(corpus, tiny.GOLD, ["original"])
  second = list(calls)[1]
  calls[second] = [{"name": "Banks_1__Do", "arguments": arguments}]
  metrics = score(corpus, write(tmp_path / "a.jsonl", bare(calls))).frames["original"].metrics
  assert metrics["right_call"].tolist() == [1, is_right, 1, 1, 1, 1]
  assert metrics["right_tool"].tolist() == [1] * 6
  if jga is None:
    assert 0 < metrics["joint_goal_accuracy"][1] < 1
  else:
    assert metrics["joint_goal_accuracy"][1] == jga


def test_every_score_says_how_many_answers_have_no_call(corpus, tmp_path):
  """Text, a refusal and what is no JSON have none; a call that is wrong is one."""
  calls = list(calls_of(corpus, tiny.GOLD, ["original", "v3"]).items())
  rows = bare(dict(calls))
  message = {"role": "assistant", "content": "Which bank?"}
  rows[0] = {"id": calls[0][0], "message": message}
  rows[1] = {"id": calls[1][0], "prediction": "[not JSON"}
  rows[2] = {"id": calls[2][0], "calls": [{"name": "Nothing", "arguments": {}}]}
  rows[-1] = {"id": calls[-1][0], "message": {**message, "refusal": "No."}}
  scored = score(corpus, write(tmp_path / "a.jsonl", rows))
  line = "answers without a call: 2 of 6 (original), 1 of 6 (v3)"
  assert scored.notes[0] == line
  frames, report = tmp_path / "frames.jsonl", tmp_path / "a.json"
  save(score_report(scored), scored.table(frames), report, frames)
  assert compare(read_frames(report), read_frames(report)).notes[:2] == (f"A: {line}", f"B: {line}")
  old = json.loads(report.read_text())
  for groups in old["calls"].values():
    del groups["all"]["no_call"]  # as earlier versions wrote it
  report.write_text(json.dumps(old))
  assert compare(read_frames(report), read_frames(report)).notes == ()


def test_a_model_that_calls_what_does_not_exist_is_scored(corpus, tmp_path):
  calls = {key: [{"name": "Do", "arguments": {}}] for key in calls_of(corpus, tiny.GOLD, ["v3"])}
  found = score(corpus, write(tmp_path / "a.jsonl", bare(calls))).further["calls"]["v3"]["all"]
  assert found["unknown_tool"] == {"value": 1.0, "of": 6}
  assert found["missed"] == {"value": 0.0, "of": 6}


def test_a_call_of_the_dialogues_other_service_says_nothing_of_this_one(corpus, tmp_path):
  calls = calls_of(corpus, tiny.GOLD, ["original"])
  banks, homes = (k for k in calls if "1_00001" in k)
  calls[banks] = calls[homes]
  found = score(corpus, write(tmp_path / "a.jsonl", bare(calls))).further["calls"]["original"][
    "all"
  ]
  assert found["missed"] == {"value": 1 / 6, "of": 6}
  assert found["wrong_tool"] == {"value": 0.0, "of": 6}


def test_abstention_where_no_tool_was_shown(corpus, tmp_path):
  """One request of six offered none of the frame's tools, and the model called none."""
  calls = calls_of(corpus, tiny.GOLD, ["original"])
  rows = [{"id": f"{key}@retrieved:1", "calls": found} for key, found in calls.items()]
  rows[2] = {"id": rows[2]["id"] + ",absent", "message": {"role": "assistant", "content": "No."}}
  scored = score(corpus, write(tmp_path / "a.jsonl", rows))
  assert scored.further["calls"]["original"]["all"]["abstained"] == {"value": 1.0, "of": 1}
  assert scored.further["calls"]["original"]["all"]["missed"] == {"value": 0.0, "of": 5}
  assert "|format:tools|delivery:retrieved:1|" in scored.signature


def test_scores_of_two_deliveries_are_not_comparable(corpus, tmp_path):
  calls, signatures = calls_of(corpus, tiny.GOLD, ["original"]), []
  for end in ("", "@distractors:2", "@distractors:2,seed=1"):
    rows = [{"id": f"{key}{end}", "calls": found} for key, found in calls.items()]
    signatures.append(Signature.parse(score(corpus, write(tmp_path / "a.jsonl", rows)).signature))
  gold, zero, one = signatures
  assert differences(gold, zero) == {"delivery": ("gold", "distractors:2")}
  assert differences(zero, one) == {"delivery": ("distractors:2", "distractors:2,seed=1")}


# --- bad files -----------------------------------------------------------------------------


def test_requests_that_failed_are_named_and_may_be_left_out(corpus, tmp_path):
  calls = calls_of(corpus, tiny.GOLD, ["original"])
  rows = [FORMS["openai batch"](key, found) for key, found in calls.items()]
  error = {"error": {"message": "too many requests"}}
  rows[1]["response"] = {"status_code": 429, "body": error}
  rows[4] |= {"response": None, "error": {"code": "batch_expired"}}
  file = write(tmp_path / "a.jsonl", rows)
  with pytest.raises(SgdxError, match=r"2 requests failed; .*line 2.*status 429") as e:
    score(corpus, file)
  assert "batch_expired" in e.value.available
  scored = score(corpus, file, allow_missing=True)
  assert len(scored.frames["original"]) == 4
  assert "PARTIAL" in scored.signature
  anthropic = {"custom_id": rows[1]["custom_id"], "result": {"type": "errored", "error": {}}}
  with pytest.raises(SgdxError, match=r"1 requests failed.*errored"):
    score(corpus, write(tmp_path / "b.jsonl", [anthropic]))


def test_gzipped_answers_are_read(corpus, tmp_path):
  plain = tmp_path / "a.jsonl"
  write(plain, bare(calls_of(corpus, tiny.GOLD)))
  packed = tmp_path / "b.jsonl.gz"
  packed.write_bytes(gzip.compress(plain.read_bytes()))
  first, second = score(corpus, plain), score(corpus, packed)
  assert first.further["calls"] == second.further["calls"]
  packed.write_bytes(packed.read_bytes()[:-20])
  with pytest.raises(SgdxError, match=r"b.jsonl.gz: not a complete compressed file"):
    score(corpus, packed)


def test_a_truncated_file_is_named(corpus, tmp_path):
  file = tmp_path / "a.jsonl"
  text = write(file, bare(calls_of(corpus, tiny.GOLD)))
  whole = file.read_text()
  file.write_text(whole[:-20])
  with pytest.raises(SgdxError, match="line 12") as e:
    score(corpus, text)
  assert "cut short" in e.value.fix
  file.write_text("\n".join(whole.splitlines()[:-1]) + "\n")  # cut between two lines
  with pytest.raises(SgdxError, match="1 of 6 frames of v3 are missing"):
    score(corpus, text)


def test_answers_of_other_requests_are_refused(corpus, tmp_path):
  rows = bare(calls_of(corpus, tiny.GOLD, ["original"]))
  mixed = [{**row, "id": f"{row['id']}@all"} if i else row for i, row in enumerate(rows)]
  with pytest.raises(SgdxError, match="line 2: an answer to a request that shows all"):
    score(corpus, write(tmp_path / "a.jsonl", mixed))
  other = bare(calls_of(corpus, tiny.GOLD, ["v3"]))  # tools of v3 in answers for v5
  for row in other:
    row["id"] = row["id"].replace("v3/", "v5/")
  with pytest.raises(
    SgdxError, match=r"none calls a tool of v5; 'Banks_13__Do' is a tool of v3"
  ) as e:
    score(corpus, write(tmp_path / "b.jsonl", other))
  assert "Banks_15__Do" in e.value.available
  with pytest.raises(SgdxError, match="unknown frame"):
    score(corpus, write(tmp_path / "c.jsonl", [{"id": "v3/test/9-000-Banks_1/*", "calls": []}]))
  with pytest.raises(SgdxError, match=r"an answer for a single slot[\s\S]*with `sgdx score`"):
    score(corpus, write(tmp_path / "d.jsonl", tiny.example_rows(tiny.GOLD, "v3")))


@pytest.mark.parametrize("row", [{}, {"result": 3}, {"choices": 3}, {"response": "x"}, {"body": 1}])
def test_rows_without_calls_are_refused(row, corpus, tmp_path):
  row = {"id": "original/test/1_00000-000-Banks_1/*", **row}
  with pytest.raises(SgdxError, match="line 1: no tool calls found") as e:
    score(corpus, write(tmp_path / "a.jsonl", [row]))
  assert "docs/tools/README.md" in e.value.fix


@pytest.mark.parametrize("text", ["Sorry, no.", "[f(", "[f(open('y'))]", "[1]", "[f(**{'a': 1})]"])
def test_text_of_a_model_never_raises(text, corpus, tmp_path):
  rows = bare(calls_of(corpus, tiny.GOLD, ["original"]))
  for key in ("result", "prediction"):
    rows[0] = {"id": rows[0]["id"], key: text}
    scored = score(corpus, write(tmp_path / f"{key}.jsonl", rows))
    assert scored.further["calls"]["original"]["all"]["invalid_json"]["value"] == 1 / 6


def test_integers_too_long_to_print(corpus, tmp_path):
  """Python's literals in hexadecimal have no limit of digits; its decimals have."""
  rows = bare(calls_of(corpus, tiny.GOLD, ["original"]))
  (call,) = rows[1]["calls"]
  text = f"[{call['name']}({next(iter(call['arguments']))}=0x{'f' * 4_000})]"
  rows[1] = {"id": rows[1]["id"], "result": text}
  scored = score(corpus, write(tmp_path / "a.jsonl", rows))
  assert scored.further["calls"]["original"]["all"]["invalid_json"]["value"] == 0


KEYS = ["message", "choices", "content", "output", "result", "error", "type", "role", "tool_calls"]
ANY = st.recursive(
  st.none() | st.booleans() | st.integers() | st.sampled_from(["function_call", "assistant", "x"]),
  lambda x: st.lists(x, max_size=2) | st.dictionaries(st.sampled_from(KEYS), x, max_size=3),
)


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from([*KEYS, "calls", "response", "body", "prediction"]), ANY))
def test_any_row_is_an_answer_or_an_error(corpus, tmp_path, row):
  file = tmp_path / "a.jsonl"
  write(file, [{"id": "original/test/1_00000-000-Banks_1/*", **row}])
  pair = pairs_of(corpus, "original")["Banks_1"]
  try:
    answers = [answer.read(pair).slot_values for answer in call_rows(file, ToolStyle(), False)]
  except SgdxError as e:
    answers = e.found
  assert answers == [{}] or "line 1" in answers


def test_calls_are_rows(corpus, tmp_path):
  folder = tiny.write_dialogues(tmp_path, tiny.GOLD)
  with pytest.raises(SgdxError, match="not named"):
    calls_format({"original": folder}, "test")
  assert calls_format({}, "test") == ToolCalls(ToolStyle())
