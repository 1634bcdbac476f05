"""Requests: what they show, with which tools; variants differ in wording only."""

import collections
import dataclasses
import itertools
import json

import pytest
import tiny_corpus as tiny
from places import DOCS

from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.prompts.protocol import service_pairs
from sgdx_t5x.tools.calls import calls_text, state_calls
from sgdx_t5x.tools.delivery import ToolStyle, words
from sgdx_t5x.tools.endpoints.request_file import RequestFile
from sgdx_t5x.tools.examples import examples_text
from sgdx_t5x.tools.requests import RequestForm, Requests, parse_request_id, request_id

DELIVERIES = ("gold", "all", "distractors:4", "retrieved:3")


def rows_of(corpus, style=None, dialogues=40, variants=("original", "v5"), examples="", **form):
  schema = corpus.schema("test")
  pairs = {v: service_pairs(schema, corpus.schema("test", v)) for v in variants}
  made = Requests("test", pairs, RequestForm(style or ToolStyle(), **form), examples)
  some = itertools.islice(corpus.dialogues("test"), dialogues)
  return [json.loads(line) for dialogue in some for _, line in made.lines(dialogue)]


@pytest.fixture(scope="module")
def sample():
  return open_corpus("sample")


@pytest.fixture(scope="module")
def by_delivery(sample):
  return {d: rows_of(sample, ToolStyle(d)) for d in DELIVERIES}


def names(row):
  return [tool["function"]["name"] for tool in row["tools"]]


def test_a_request_by_hand(tmp_path):
  corpus = open_corpus(tiny.write_corpus(tmp_path / "tiny"))
  row = rows_of(corpus, variants=("v3",), targets=True)[1]
  assert row["id"] == "v3/test/1_00000-002-Banks_1/*"
  assert [(m["role"], m["content"]) for m in row["messages"][1:]] == [
    ("user", "user turn 0 of 1_00000"),
    ("assistant", "answer 0"),
    ("user", "user turn 1 of 1_00000"),
  ]
  assert names(row) == ["Banks_13__Do"]
  assert row["tool_choice"] == "auto"
  assert row["metadata"] == {
    "frame": "1_00000-002-Banks_1",
    "variant": "v3",
    "service": "Banks_1",
    "delivery": "gold",
    "seed": 0,
    "shots": 0,
    "absent": False,
  }
  # v3 gives `kind` the original name of another slot; the first of two accepted values is used.
  arguments = {"amount": "Checking", "to_v3": "Anna Lee"}
  assert row["target"] == [{"name": "Banks_13__Do", "arguments": arguments}]


def test_tokens_are_estimated_as_they_are_of_the_written_file(tmp_path):
  """In any script: a character that JSON escapes counts as one, as it does when it is sent."""
  corpus = open_corpus(tiny.write_corpus(tmp_path / "tiny"))
  schema = corpus.schema("test")
  made = Requests("test", {"v1": service_pairs(schema, corpus.schema("test", "v1"))}, RequestForm())
  said = "東京から大阪までの切符を二枚ください。" * 200
  dialogue = next(iter(corpus.dialogues("test")))
  turns = [dataclasses.replace(turn, utterance=said) for turn in dialogue.turns]
  lines = [line for _, line in made.lines(dataclasses.replace(dialogue, turns=turns))]
  (tmp_path / "r.jsonl").write_text("".join(lines))
  file = RequestFile(tmp_path / "r.jsonl", "m", {})
  assert sum(request.size for request in file.requests) == pytest.approx(
    made.size.input_characters, rel=0.02
  )


def test_a_batch_has_the_same_body(sample):
  rows, batch = rows_of(sample, dialogues=2), rows_of(sample, dialogues=2, model="m-1")
  for row, line in zip(rows, batch, strict=True):
    assert list(line) == ["custom_id", "method", "url", "body"]
    assert (line["custom_id"], line["method"]) == (row["id"], "POST")
    assert line["url"] == "/v1/chat/completions"
    shown = {key: row[key] for key in ("messages", "tools", "tool_choice")}
    assert line["body"] == {"model": "m-1", **shown}


def test_no_delivery_changes_frames_or_messages(by_delivery):
  seen = {
    delivery: [(row["id"].partition("@")[0], row["messages"]) for row in rows]
    for delivery, rows in by_delivery.items()
  }
  assert all(rows == seen["gold"] for rows in seen.values())


def test_which_tools_a_delivery_shows(by_delivery):
  every = {v: set(names(row)) for row in by_delivery["all"] for v in [row["metadata"]["variant"]]}
  missed = 0
  for gold, more, found in zip(*(by_delivery[d] for d in DELIVERIES if d != "all"), strict=True):
    variant = gold["metadata"]["variant"]
    assert set(names(gold)) < set(names(more)) < every[variant]
    assert len(names(more)) == len(set(names(more))) == len(names(gold)) + 4
    assert len(set(names(found))) == 3
    absent = not set(names(gold)) & set(names(found))
    assert found["metadata"]["absent"] == found["id"].endswith(",absent") == absent
    missed += absent
  assert 0 < missed < len(by_delivery["gold"])


def test_targets_call_only_what_is_shown(sample, by_delivery):
  rows = rows_of(sample, ToolStyle("retrieved:3"), targets=True)
  gold = rows_of(sample, targets=True)
  for row, whole in zip(rows, gold, strict=True):
    shown = set(names(row))
    assert row["target"] == [call for call in whole["target"] if call["name"] in shown]
  assert any(row["target"] != whole["target"] for row, whole in zip(rows, gold, strict=True))


def test_distractors_are_the_same_in_every_variant_and_the_right_tool_comes_anywhere(
  sample, by_delivery
):
  schema = sample.schema("test")
  position = collections.Counter()
  place = {}  # (variant, tool name) -> position among all tools, as in the original
  for row in by_delivery["all"]:
    place.update({(row["metadata"]["variant"], name): i for i, name in enumerate(names(row))})
  rows = by_delivery["distractors:4"]
  for a, b in zip(rows[::2], rows[1::2], strict=True):
    assert [place["original", n] for n in names(a)] == [place["v5", n] for n in names(b)]
    position[next(i for i, n in enumerate(names(a)) if a["metadata"]["service"] in n)] += 1
  assert len(schema) > 4
  assert min(position[i] for i in range(4)) > 0.05 * len(rows) / 2  # uniform would be 1/5 or more
  other = rows_of(sample, ToolStyle("distractors:4", seed=1))
  assert [names(row) for row in other] != [names(row) for row in rows]
  assert [names(row) for row in rows_of(sample, ToolStyle("distractors:4"))] == [
    names(row) for row in rows
  ]


def test_retrieval_finds_what_the_user_speaks_of(by_delivery):
  """3 of the sample's 31 tools drawn at random would rarely include the right one."""
  rows = by_delivery["retrieved:3"]
  assert sum(not row["metadata"]["absent"] for row in rows) > len(rows) / 2
  assert words("FindBus find_a-bus, 3pm!") == ("find", "bus", "find", "a", "bus", "3pm")


def test_examples_are_those_of_train_with_right_calls(sample):
  schema, train = sample.schema("train"), list(sample.dialogues("train"))[:300]
  text = examples_text(train, schema, 3, seed=1)
  assert text == examples_text(train, schema, 3, seed=1)
  assert text != examples_text(train, schema, 3, seed=2)
  row = next(iter(rows_of(sample, ToolStyle("gold", 1, 3), dialogues=1, examples=text)))
  assert row["messages"][0]["content"].endswith(text)
  assert row["id"].endswith("/*@gold,shots=3,seed=1")
  shown = text.split("\n\nFunctions:\n")[1:]
  assert len({part.partition("__")[0] for part in shown}) == 3  # services
  states = {
    calls_text(state_calls(service_pairs(schema, schema)[frame.service], frame.state)): dialogue
    for dialogue in train
    for _, frame in dialogue.user_frames()
  }
  for part in shown:
    tools, _, rest = part.partition("\nConversation:\n")
    said, _, calls = rest.partition("\nCalls:\n")
    named = {json.loads(line)["name"] for line in tools.splitlines()}
    assert {call["name"] for call in json.loads(calls)} <= named
    assert calls in states
    assert said.startswith("user: ")
  with pytest.raises(SgdxError, match="--shots 99: train has frames with calls of"):
    examples_text(train, schema, 99, seed=1)


def test_ids_say_which_tools_are_shown():
  frame = ExampleId("ned+v3", "test", "1_0/@x-002-Banks_1")
  for style, absent, end in [
    (ToolStyle(), False, "/*"),
    (ToolStyle("all"), False, "/*@all"),
    (ToolStyle("retrieved:5"), True, "/*@retrieved:5,absent"),
    (ToolStyle("distractors:10", 3), False, "/*@distractors:10,seed=3"),
    (ToolStyle("gold", 1, 2), True, "/*@gold,shots=2,seed=1,absent"),
  ]:
    text = request_id(frame, style, absent)
    assert text == f"ned+v3/test/1_0/@x-002-Banks_1{end}"
    assert parse_request_id(text) == (str(frame), style, absent)
  for wrong in (
    "best",
    "gold,seed=x",
    "gold,more",
    "retrieved:0",
    "gold,shot=1",
    "gold,seed=1,seed=1",
  ):
    with pytest.raises(SgdxError, match="keep the ids"):
      parse_request_id(f"{frame}@{wrong}", "a.jsonl, line 1")


@pytest.mark.parametrize("delivery", ["", "retrieved", "retrieved:0", "distractors:-1", "gold:1"])
def test_an_unknown_delivery_is_refused(delivery):
  with pytest.raises(UsageError, match="gold, all, retrieved:K, distractors:N"):
    ToolStyle(delivery)


def test_the_format_and_its_fields_are_documented():
  """Errors of `--prompt-style` refer to this page."""
  page = (DOCS / "tools/README.md").read_text("utf-8")
  for name in ("tools", *(field.name for field in dataclasses.fields(ToolStyle))):
    assert any(form in page for form in (f"`{name}", f"`--{name}", f"format={name}`")), name
