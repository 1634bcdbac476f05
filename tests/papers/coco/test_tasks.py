"""Single-turn tasks, CoCo's generator and classifier, and counterfactuals as records."""

import json
import subprocess
import sys

import pytest
import seqio
from commands import sgdx
from sample_folder import write_sample
from task_names import FAMILIES, VARIANTS, unregistered

import sgdx_t5x.papers.coco.tasks  # noqa: F401  # registers them
from sgdx_t5x.corpus.dialogue import USER
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.variants import untagged
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.checkdst.checks import sets
from sgdx_t5x.papers.coco import register, turn_examples
from sgdx_t5x.papers.coco.tasks import TurnSource
from sgdx_t5x.records.builder import config_name, frame_records
from sgdx_t5x.records.source import RecordSource

LENGTHS = {"inputs": 400, "targets": 100}
SUFFIXES = [
  *(f"coco_{slots}{more}" for slots in ("freq", "neutral", "rare")
    for more in ("", *(f"_{v}" for v in VARIANTS), "_check")),
  "coco_ori_freq", "coco_ori_neutral", "coco_ori_rare", "sgd_coco_aug", "coco_aug",
  "all_tests_freq", "all_tests_neutral", "all_tests_rare",
]  # fmt: skip


def _examples(task: str, split: str = "validation") -> list[dict]:
  dataset = seqio.get_mixture_or_task(task).get_dataset(LENGTHS, split, shuffle=False)
  return list(dataset.as_numpy_iterator())


def test_every_family_has_counterfactuals():
  assert unregistered(FAMILIES, SUFFIXES) == set()


def test_a_family_that_comes_after_checkdst_is_left_out():
  annexes = (f"sgdx_t5x.papers.{paper}.tasks" for paper in ("checkdst", "sgpdst", "coco"))
  subprocess.run([sys.executable, "-c", f"import {', '.join(annexes)}"], check=True)


def test_the_generator_learns_utterances_of_acts():
  found, dialogues = _examples("sample_sgd_user_turn"), open_corpus("sample").dialogues("dev")
  turns = [turn for dialogue in dialogues for turn in dialogue.turns if turn.speaker == USER]
  said = [x["targets_pretokenized"].decode() for x in found]
  assert said == [turn.utterance for turn in turns]
  for example, turn in zip(found, turns, strict=True):
    asked = example["inputs_pretokenized"].decode()
    assert asked.startswith("[SYSTEM] ")
    acts = asked.split(" [ACTS] ")[1].split(" ; ")
    assert len(acts) == sum(len(frame.actions) for frame in turn.frames)
    for action in (a for frame in turn.frames for a in frame.actions if a["act"] == "INFORM"):
      assert f"inform {action['slot']} = {action['values'][0]}" in acts


def test_the_classifier_learns_what_turns_tell():
  found = _examples("sample_sgd_turn_slots")
  dialogues = open_corpus("sample").dialogues("dev")
  turns = [turn for dialogue in dialogues for turn in dialogue.turns if turn.speaker == USER]
  for example, turn in zip(found, turns, strict=True):
    told = {a["slot"] for f in turn.frames for a in f.actions if a["act"] == "INFORM"}
    answer = example["targets_pretokenized"].decode()
    asked = example["inputs_pretokenized"].decode()
    assert f"[USER] {turn.utterance} [domain] " in asked
    slots = asked.split(" [slots] ")[1].split(", ")
    assert told <= set(slots)
    assert answer == (", ".join(slot for slot in slots if slot in told) or "none")


def test_goals_are_what_the_generator_learned_from(tmp_path, monkeypatch):
  write_sample(tmp_path / "sample", {"train": 40, "dev": 0, "test": 10})
  goals = tmp_path / "goals.jsonl"
  command = ("coco", "perturb", "--corpus", tmp_path / "sample", "--goals-out", goals)
  assert sgdx(*command) == 0
  monkeypatch.setenv("SGDX_GOALS", str(goals))
  lines = [json.loads(line) for line in goals.read_text().splitlines()]
  goals.write_text(goals.read_text() + "\n")  # as an editor may leave it
  examples = list(turn_examples.goal_examples())
  assert [x["inputs"] for x in examples] == [line["inputs"] for line in lines]
  corpus = open_corpus(tmp_path / "sample")
  known = {x["id"]: x["inputs"] for x in turn_examples.generator_examples(corpus, "test")}
  originals = [line for line in lines if line["id"].endswith("+ori")]
  assert originals
  for line in originals:  # the acts are in another order, determined by the id
    parts = [text.partition(" [ACTS] ") for text in (line["inputs"], known[line["id"][:-4]])]
    assert parts[0][0] == parts[1][0]
    assert sorted(parts[0][2].split(" ; ")) == sorted(parts[1][2].split(" ; "))


def test_its_kinds_are_known_where_kinds_are_told_apart():
  """Else a check would count no changed goals."""
  assert set(register.PERTURBATIONS) == set(sets.OF_GOALS)


def test_the_controls_records_are_made_from_the_folder_beside():
  """Regression: after the named command, the only folder was that of the counterfactuals."""
  with pytest.raises(SgdxError, match="FOLDER  # these are in FOLDER_ori`, then") as error:
    RecordSource("sample_coco_ori_rare", "task").metadata()
  assert "sgdx coco perturb --corpus sample --slots rare" in error.value.fix


def test_files_that_are_not_there_are_named(tmp_path, monkeypatch):
  monkeypatch.delenv("SGDX_GOALS", raising=False)
  with pytest.raises(SgdxError, match="SGDX_GOALS is not set"):
    list(turn_examples.goal_examples())
  monkeypatch.setenv("SGDX_CORPUS", str(tmp_path / "none.zip"))
  with pytest.raises(SgdxError, match=r"SGDX_CORPUS=.*none.zip: no such file"):
    turn_examples.corpus_of_tasks("full")


def test_records_of_counterfactuals_are_of_the_last_turn(tmp_path):
  write_sample(tmp_path / "sample", {"train": 40, "dev": 0, "test": 10})
  out = tmp_path / "coco"
  command = ("coco", "perturb", "--corpus", tmp_path / "sample", "--slots", "neutral")
  assert sgdx(*command, "--out", out) == 0
  corpus = open_corpus(out)
  schema, seen = corpus.schema("test"), corpus.seen_services("test")
  for dialogue in corpus.dialogues("test"):
    records = list(frame_records(dialogue, schema, seen))
    assert {record["turn"] for record in records} == {len(dialogue.turns) - 1}
    assert len(records) == len(dialogue.turns[-1].frames)
    assert len(records[0]["utterances"]) == len(dialogue.turns)
  assert config_name(corpus) == "sample_coco_neutral"
  assert config_name(open_corpus(f"{out}_ori")) == "sample_coco_ori_neutral"
  assert untagged("coco_ori+v3") == (("coco_ori",), "v3")
  prompts = tmp_path / "prompts.jsonl"
  assert sgdx("prompts", "--corpus", out, "--variant", "original", "--out", prompts) == 0
  ids = [json.loads(line)["id"] for line in prompts.read_text().splitlines()]
  last = {d.dialogue_id: len(d.turns) - 1 for d in corpus.dialogues("test")}
  for name in ids:
    variant, _, frame, _ = name.split("/")
    dialogue, turn, _ = frame.split("-", 2)
    assert (variant, int(turn)) == ("coco", last[dialogue])


@pytest.mark.real
@pytest.mark.long
def test_sgds_train_has_as_many_turns_with_acts_as_were_counted(real_archive):
  """111,878 of 164,982 user turns: 31 of 127 files have no user acts."""
  corpus = open_corpus(real_archive)
  turns = sum(
    1 for dialogue in corpus.dialogues("train") for _ in turn_examples.user_turns(dialogue)
  )
  assert turns == 111_878


def test_a_task_without_examples_says_so():
  """Else a mixture would have none, or wait forever."""
  source = TurnSource(lambda split: iter(()), ["train"])
  with pytest.raises(SgdxError, match="no examples of this task in split train"):
    source.get_dataset("train")


def test_lone_surrogates_are_read_as_question_marks():
  source = TurnSource(lambda split: iter([{"id": "a", "inputs": "caf\udce9"}]), ["train"])
  [example] = source.get_dataset("train", shuffle=False).as_numpy_iterator()
  assert example["inputs"] == b"caf?"
