"""A second prompt format, one JSON object per frame: nothing outside of it knows that it exists.

`StateJson` is the example of sgdx_t5x/prompts/README.md. Its predictions must score the same
as equal states given as DSTC8 dialogues.
"""

import dataclasses
import json
import zlib
from typing import ClassVar

import numpy as np
import pytest
import tiny_corpus as tiny
from commands import next_command

from sgdx_t5x import prompts
from sgdx_t5x.cli import main
from sgdx_t5x.corpus.dialogue import State, write_dialogues
from sgdx_t5x.corpus.example_id import FRAME, ExampleId, Unit
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics import PredictedFrame
from sgdx_t5x.metrics.seqio_metrics import joint_goal_accuracy, schema_sensitivity
from sgdx_t5x.prompts.protocol import Prompt, service_pairs
from sgdx_t5x.scoring.score import score_predictions, score_report

VARIANTS = ("original", "v1", "v2", "v3", "v4", "v5")


@dataclasses.dataclass(frozen=True)
class JsonStyle:
  turns: int = 0  # how many of the newest turns a prompt shows; 0 for all
  acts: bool = True  # whether intent and requested slots are asked for


@dataclasses.dataclass(frozen=True)
class StateJson:
  """One example per frame: all slot names and the history -> the state as a JSON object."""

  style: JsonStyle = dataclasses.field(default_factory=JsonStyle)
  name: ClassVar[str] = "json"
  unit: ClassVar[Unit] = FRAME
  answer: ClassVar[str] = "a JSON object of slots and their values"

  def asked(self, service):
    return (None,)

  def prompts(self, frame, service, history):
    turns = tuple(f"{speaker}: {text.strip()}" for speaker, text in history[-self.style.turns :])
    names = ", ".join(slot.name for slot in service.variant.slots)
    return [Prompt(turns, before=(f"slots: {names}",), row={"slots": names.split(", ")})]

  def targets(self, frame, service, state):
    names = {a.name: b.name for a, b in _aligned(service, "slots")}
    answer = {"state": {names[slot]: values[0] for slot, values in state.slot_values.items()}}
    if self.style.acts:
      intents = {a.name: b.name for a, b in _aligned(service, "intents")}
      answer["intent"] = intents.get(state.active_intent, state.active_intent)
      answer["requested"] = [names[slot] for slot in state.requested_slots]
    return [json.dumps(answer)]

  def read(self, text, example, service):
    try:
      answer = json.loads(text)
    except ValueError:
      answer = None

    def part(name, kind):  # whatever else a model writes there counts as nothing
      found = answer.get(name) if isinstance(answer, dict) else None
      return found if isinstance(found, kind) else kind()

    names = {b.name: a.name for a, b in _aligned(service, "slots")}
    intents = {b.name: a.name for a, b in _aligned(service, "intents")}
    said = {slot: value for slot, value in part("state", dict).items() if isinstance(value, str)}
    values = {names[slot]: (value,) for slot, value in said.items() if slot in names}
    if not self.style.acts:
      return PredictedFrame(values)
    wanted = tuple(names[x] for x in part("requested", list) if isinstance(x, str) and x in names)
    return PredictedFrame(values, intents.get(part("intent", str), "NONE"), wanted)

  def examples(self, batches, sequence_length, output_features, **how):
    from sgdx_t5x.prompts.text_examples import text_examples

    return text_examples(self, batches, sequence_length, output_features, **how)


def _aligned(service, part):
  return zip(getattr(service.original, part), getattr(service.variant, part), strict=True)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
  monkeypatch.setitem(prompts.FORMATS, "json", f"{__name__}:StateJson")


# --- a tracker that is sometimes wrong -----------------------------------------------------


def predicted(variant, frame_id, service, gold):
  """Returns a state near the gold one, chosen by a hash: the same in either output format."""
  kind = zlib.crc32(f"{variant}/{frame_id}".encode()) % 8
  slots = {slot: values[:1] for slot, values in gold.slot_values.items()}
  intent, requested = gold.active_intent, gold.requested_slots
  names = [slot.name for slot in service.slots]
  if kind == 0:
    slots = dict(list(slots.items())[1:])
  elif kind == 1:
    slots = {slot: ("nonsense",) for slot in slots}
  elif kind == 2:  # any slot, even one that is not tracked
    slots |= {names[-1]: ("Anna Lee",)}
  elif kind == 3:
    intent, requested = "NONE", tuple(names[:2])
  return State(intent, requested, slots)


@pytest.fixture(scope="module")
def corpus():
  return open_corpus("sample")


def write_dstc8(folder, corpus, variant):
  """Writes the predictions as DSTC8 dialogues, with original names and without spans."""
  schema = corpus.schema("dev")

  def changed(dialogue):
    turns = []
    for i, turn in enumerate(dialogue.turns):
      frames = []
      for frame in turn.frames if turn.speaker == "USER" else ():
        name = f"{dialogue.dialogue_id}-{i:03d}-{frame.service}"
        state = predicted(variant, name, schema[frame.service], frame.state)
        frames.append(dataclasses.replace(frame, slots=None, state=state))
      turns.append(dataclasses.replace(turn, frames=tuple(frames)))
    return dataclasses.replace(dialogue, turns=tuple(turns))

  folder.mkdir(parents=True)
  text = write_dialogues(changed(dialogue) for dialogue in corpus.dialogues("dev"))
  (folder / "dialogues_001.json").write_text(text)
  return folder


def test_frames_score_as_dstc8_dialogues_do(corpus, sample_records, tmp_path):
  """Task -> examples -> JSONL -> scores, and the task's metrics along the way."""
  seqio = pytest.importorskip("seqio")
  from sgdx_t5x import tasks

  task = tasks.register(
    "sample_json_sgd_sgdx",
    data="sample",
    variants=VARIANTS,
    vocabulary=tasks.sample_vocabulary,
    prompt_format=StateJson(),
  )
  seqio.set_tfds_data_dir_override(str(sample_records))
  try:
    dataset = task.get_dataset({"inputs": 128, "targets": 128}, "dev", shuffle=False)
    examples = list(dataset.as_numpy_iterator())
  finally:
    seqio.set_tfds_data_dir_override(None)
    seqio.TaskRegistry.remove(task.name)
    del tasks.REGISTERED[task.name]

  gold = {
    f"{dialogue.dialogue_id}-{turn:03d}-{frame.service}": frame.state
    for dialogue in corpus.dialogues("dev")
    for turn, frame in dialogue.user_frames()
  }
  original = corpus.schema("dev")
  rows, targets, answers = [], [], []
  for example in examples:
    assert len(example["inputs"]) <= 128
    key = example["example_id_pretokenized"].decode()
    parsed = ExampleId.parse(key)
    pair = service_pairs(original, corpus.schema("dev", parsed.variant))[parsed.service]
    [text] = StateJson().targets(parsed, pair, gold[parsed.frame_id])
    assert example["targets_pretokenized"].decode() == text
    state = predicted(parsed.variant, parsed.frame_id, pair.original, gold[parsed.frame_id])
    [text] = StateJson().targets(parsed, pair, state)
    rows.append({"inputs": {"example_id_pretokenized": key}, "prediction": text})
    targets.append(task.postprocess_fn("", example=example, is_target=True))
    answers.append(task.postprocess_fn(text, example=example))
  assert len(rows) == len(VARIANTS) * len(gold)

  path = tiny.write_rows(tmp_path / "p.jsonl", rows)
  found = score_predictions(
    corpus, "dev", {"all": path}, prompt_format=StateJson(), bootstrap_samples=0
  )
  folders = {v: write_dstc8(tmp_path / v, corpus, v) for v in VARIANTS}
  expected = score_predictions(corpus, "dev", folders, bootstrap_samples=0)
  assert found.states == expected.states
  for variant in VARIANTS:
    for key, values in expected.frames[variant].metrics.items():
      np.testing.assert_array_equal(found.frames[variant].metrics[key], values)
  row = score_report(found)["sgdx"]["all"]
  assert row == score_report(expected)["sgdx"]["all"]
  assert 0.3 < row["jga_v1_5"] < 0.9
  assert found.signature == expected.signature.replace("|jga:", "|format:json|jga:")

  seqio_row = schema_sensitivity(targets, answers)
  for key in ("jga_orig", "jga_v3", "jga_v1_5", "ss_jga", "cjga_all", "diff_rel", "num_frames"):
    assert seqio_row[key] == pytest.approx(row[key], abs=1e-12)
  for key in ("active_intent_accuracy", "requested_slots_f1"):
    mean = expected.frames["v3"].metrics[key].mean()
    assert seqio_row[f"{key}_v3"] == pytest.approx(mean, abs=1e-12)
    assert 0 < seqio_row[f"ss_{key}_seen"] < 1
  of_v3 = [(t, a) for t, a in zip(targets, answers, strict=True) if t["id"].startswith("v3/")]
  one = joint_goal_accuracy(*zip(*of_v3, strict=True))
  scores = expected.frames["v3"]
  assert one["jga_unseen"] == pytest.approx(
    scores.metrics["joint_goal_accuracy"][~scores.seen].mean(), abs=1e-12
  )
  assert one["requested_slots_f1"] == seqio_row["requested_slots_f1_v3"]


# --- the commands --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory):
  return str(tiny.write_corpus(tmp_path_factory.mktemp("tiny")))


def run_prompts(small, out, *args):
  options = ["--variant", "original", "v3", "--out", str(out), *args]
  return main(["prompts", "--corpus", small, *options])


def read(path):
  return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(("limit", "num_frames"), [(None, 6), (1, 3)])
def test_prompts_and_their_answers(small, tmp_path, capsys, limit, num_frames):
  """The command that `sgdx prompts` prints is run as printed; right answers score 1."""
  style = ("--prompt-style", "format=json", "turns=2", "acts=false")
  args = (*style, *(["--limit", str(limit)] if limit else []))
  assert run_prompts(small, tmp_path / "p.jsonl", *args) == 0
  printed = capsys.readouterr().err
  assert "prediction is a JSON" in " ".join(printed.split())
  rows = read(tmp_path / "p.jsonl")
  assert len(rows) == 2 * num_frames
  row = next(row for row in rows if row["id"] == "v3/test/1_00000-002-Banks_1/*")
  assert row == {
    "id": "v3/test/1_00000-002-Banks_1/*",
    "prompt": "slots: amount, to_v3, amount_v3, balance_v3 SYSTEM: answer 0 "
    "USER: user turn 1 of 1_00000",
    "slots": ["amount", "to_v3", "amount_v3", "balance_v3"],
  }

  answers = []
  for row in rows:
    variant, _, frame, _ = row["id"].split("/")
    dialogue, turn, service = frame.split("-")
    state = tiny.GOLD[dialogue][int(turn) // 2][service]
    names = {tiny.slot_name(service, slot, variant): v[0] for slot, v in state.items()}
    answers.append({"id": row["id"], "prediction": json.dumps({"state": names})})
  tiny.write_rows(tmp_path / "a.jsonl", answers)
  answered = str(tmp_path / "a.jsonl")
  command = [word.replace("ANSWERS.jsonl", answered) for word in next_command(printed)[1:]]
  assert main([*command, "--json", str(tmp_path / "s.json")]) == 0
  scores = json.loads((tmp_path / "s.json").read_text())
  row = scores["sgdx"]["all"]
  assert (row["num_frames"], row["jga_orig"], row["jga_v3"]) == (num_frames, 1.0, 1.0)
  assert "|format:json|style:turns=2+acts=False|" in scores["signature"]
  assert scores["complete"] is (limit is None)


def refused(small, path, rows, **settings):
  tiny.write_rows(path, rows)
  with pytest.raises(SgdxError) as caught:
    score_predictions(small, "test", {"v1": path}, **settings)
  return str(caught.value)


def test_answers_of_the_other_unit_are_refused(small, tmp_path):
  rows = tiny.example_rows(tiny.GOLD, "v1")
  found = refused(small, tmp_path / "a.jsonl", rows, prompt_format=StateJson())
  assert "line 1: an answer for a slot (id 'v1/test/1_00000-000-Banks_1/kind')" in found
  assert "fix:       specify the prompt format and its fields: --prompt-style format=t5dst" in found
  rows = [{"id": "v1/test/1_00000-000-Banks_1/*", "prediction": "{}"}]
  found = refused(small, tmp_path / "b.jsonl", rows)
  assert "line 1: an answer for a frame (id 'v1/test/1_00000-000-Banks_1/*')" in found
  assert "expected:  one answer per slot" in found
  # Annexes have formats too.
  assert "and its fields: --prompt-style format=d3st or format=sdt or " in found
  assert " or format=json" in found


def test_half_ids_are_refused(small, tmp_path):
  rows = [{"id": "v1/test/1_00000-000-Banks_1", "prediction": "{}"}]
  found = refused(small, tmp_path / "a.jsonl", rows, prompt_format=StateJson())
  assert "line 1: example id 'v1/test/1_00000-000-Banks_1'" in found
  assert "as in v3/dev/1_00000-002-Banks_2/*" in found


@pytest.mark.parametrize(
  "answer",
  [
    "no JSON",
    "[1]",
    '{"state": ["a"]}',
    '{"state": {"kind": 5, "to": null}, "requested": null}',
    '{"state": {}, "requested": [[]], "intent": ["a"]}',
  ],
)
def test_an_unintelligible_answer_is_a_wrong_one(small, tmp_path, answer):
  row = {"id": "v1/test/1_00000-000-Banks_1/*", "prediction": answer}
  path = tiny.write_rows(tmp_path / "a.jsonl", [row])
  settings = {"prompt_format": StateJson(), "allow_missing": True}
  found = score_predictions(small, "test", {"v1": path}, **settings)
  assert found.states["v1"]["1_00000-000-Banks_1"] == {}


def test_missing_and_repeated_frames_are_refused(small, tmp_path):
  rows = [{"id": "v1/test/1_00000-000-Banks_1/*", "prediction": "no JSON"}]
  found = refused(small, tmp_path / "a.jsonl", rows, prompt_format=StateJson())
  assert "5 of 6 frames of v1 are missing; the first is 1_00000-002-Banks_1\n" in found
  found = refused(small, tmp_path / "b.jsonl", 2 * rows, prompt_format=StateJson())
  assert "example v1/test/1_00000-000-Banks_1/* occurs twice" in found
  target = {"id": rows[0]["id"], "seen": True, "state": {}, "slots": {}, "active_intent": "NONE"}
  target["requested_slots"] = []
  with pytest.raises(SgdxError, match=r"Banks_1/\* occurs twice"):
    joint_goal_accuracy(2 * [target], 2 * [PredictedFrame({})])


def test_a_frame_of_a_service_without_slots_has_no_jga():
  target = {"id": "v1/test/a-000-B_1/*", "seen": True, "state": {}, "slots": {}}
  target |= {"has_slots": False, "active_intent": "Do", "requested_slots": []}
  predicted = PredictedFrame({}, "Do", ())
  found = joint_goal_accuracy([target], [predicted])
  assert "jga" not in found
  assert (found["num_frames"], found["active_intent_accuracy"]) == (1.0, 1.0)
  other = {**target, "id": "v1/test/a-001-C_1/*", "state": {"to": ["Anna"]}}
  other |= {"slots": {"to": False}, "has_slots": True}
  assert joint_goal_accuracy([target, other], 2 * [predicted])["jga"] == 0.0


def test_a_slot_that_no_state_can_have_is_wrong_in_a_task_too():
  target = {"id": "v1/test/a-000-B_1/*", "seen": True, "state": {"to": ["Anna"]}}
  target |= {"slots": {"to": False, "kind": True}, "active_intent": "Do", "requested_slots": []}
  right, wrong = {"to": ("Anna",)}, {"to": ("Anna",), "balance": ("$5",)}
  assert joint_goal_accuracy([target], [PredictedFrame(right)]) == {
    "num_frames": 1.0,
    "num_frames_incomplete": 0.0,
    "slot_accuracy": 1.0,
    "jga": 1.0,
    "jga_seen": 1.0,
  }
  assert joint_goal_accuracy([target], [PredictedFrame(wrong)])["jga"] == 0.0


@pytest.mark.parametrize(
  ("style", "part"),
  [
    (["format=jsn"], "available: t5dst, "),
    (["format=json", "turns=many"], "--prompt-style turns=many"),
    (["format=json", "values=list"], "a field of JsonStyle"),
    (["turns=2"], "a field of PromptStyle"),
  ],
)
def test_styles_of_another_format_are_refused(small, tmp_path, capsys, style, part):
  assert run_prompts(small, tmp_path / "p.jsonl", "--prompt-style", *style) == 2
  assert part in capsys.readouterr().err
