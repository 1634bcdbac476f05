"""SpanDST through `sgdx track`: a checkpoint of one step, its answers, and a typed dialogue."""

import concurrent.futures
import functools
import json
import re
import shutil
import time

import pytest
from commands import assert_four_parts, sgdx
from places import ROOT
from run_scripts import NO_EVAL

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.records.turns import user_turns
from sgdx_t5x.spandst.span_features import SpanReader
from sgdx_t5x.spandst.span_tracking import span_prediction
from sgdx_t5x.spandst.walk import Question
from sgdx_t5x.tasks import sample_encoder_vocabulary
from sgdx_t5x.tracking import checkpoints, model
from sgdx_t5x.tracking.checkpoints import Checkpoint, find_checkpoints
from sgdx_t5x.tracking.predicting import without_gold
from sgdx_t5x.tracking.protocol import tracked

SMALL = "--gin.encoder.BertConfig.num_layers=1"


def ended(run, code=0):
  got, err = run.wait()
  assert got == code, err[-3000:]
  return err


by_model = pytest.mark.long


@pytest.fixture(scope="module")
def start(fork_server):
  return functools.partial(fork_server.start, cwd=ROOT)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory, start, small_sample):
  folder = tmp_path_factory.mktemp("spandst")
  steps = ("--gin.TRAIN_STEPS=1", "--gin.BATCH_SIZE=2", *NO_EVAL, SMALL)
  places = (f"--gin.MODEL_DIR='{folder}'", f"--tfds_data_dir={small_sample}/data")
  ended(start("train", "gin/sample/spandst.gin", *steps, *places))
  return folder / "checkpoint_1"


@pytest.fixture(scope="module")
def predictions(tmp_path_factory, fork_server, checkpoint, small_sample):
  """The folder that `sgdx track` wrote, and what it printed."""
  out = tmp_path_factory.mktemp("tracked") / "out"
  arguments = ("track", checkpoint, "--corpus", small_sample / "sample", "--split", "dev")
  arguments += ("--variant", "original", "v1", "--limit", 4, "--out", out)
  return out, ended(fork_server.start_module("sgdx_t5x.cli", *arguments, cwd=ROOT))


@by_model
def test_predictions_are_scored(predictions, small_sample, tmp_path):
  out, err = predictions
  assert "tracker: SpanDST" in err
  files = [f"{variant}={out / variant}" for variant in ("original", "v1")]
  command = ("score", "--corpus", small_sample / "sample", "--split", "dev", "--allow-missing")
  assert sgdx(*command, "--predictions", *files, "--json", tmp_path / "scores.json") == 0
  scores = json.loads((tmp_path / "scores.json").read_text())
  found = scores["variants"]["v1"]["#ALL_SERVICES"]
  assert found["active_intent_accuracy"] >= 0  # SpanDST predicts intents, T5DST does not
  assert found["requested_slots_f1"] >= 0


@by_model
def test_predictions_of_another_network_are_not_mixed_in(
  predictions, fork_server, checkpoint, small_sample, tmp_path
):
  shutil.copytree(checkpoint.parent, tmp_path / "other")
  config = tmp_path / "other/config.gin"
  text = config.read_text()
  heads = int(re.search(r"num_heads = (\d+)", text)[1])
  config.write_text(text.replace(f"num_heads = {heads}", f"num_heads = {2 * heads}"))
  arguments = ("track", tmp_path / "other", "--corpus", small_sample / "sample", "--split", "dev")
  arguments += ("--variant", "original", "v1", "--limit", 4, "--out", predictions[0])
  run = fork_server.start_module("sgdx_t5x.cli", *arguments, cwd=ROOT)
  assert_four_parts(ended(run, 1), "network")


@by_model
def test_first_turns_are_what_infer_answers(predictions, start, checkpoint, small_sample, tmp_path):
  """First turns have no earlier state, so t5x.infer and the tracker give the same answers."""
  ended(
    start(
      "infer",
      "gin/sample/spandst_infer.gin",
      "--gin.utils.DatasetConfig.split='dev'",
      "--gin.MIXTURE_OR_TASK_NAME='sample_spandst_sgd'",
      f"--gin.CHECKPOINT_PATH='{checkpoint}'",
      f"--gin.INFER_OUTPUT_DIR='{tmp_path}'",
      f"--tfds_data_dir={small_sample}/data",
      SMALL,
    )
  )
  (file,) = tmp_path.glob("*.jsonl-00000-of-00001")
  rows = [json.loads(line) for line in file.read_text().splitlines()]
  answers = {row["inputs"]["example_id_pretokenized"]: row["prediction"] for row in rows}
  corpus = open_corpus(small_sample / "sample")
  original = corpus.schema("dev")
  reader = SpanReader(original, sample_encoder_vocabulary())
  (written,) = (predictions[0] / "original").iterdir()
  states = {x["dialogue_id"]: x["turns"][0]["frames"] for x in json.loads(written.read_text())}
  compared = 0
  for dialogue in map(without_gold, corpus.dialogues("dev")):
    first = next(user_turns(dialogue, original))
    for context, found in zip(first, states.get(dialogue.dialogue_id, ()), strict=False):
      vector = answers[f"original/dev/{context.frame_id}/*"]
      one = span_prediction(original, Question(context, {}), reader.example(context, {}), vector)
      frame, state = tracked(one, original, context.service), found["state"]
      assert {k: list(v) for k, v in frame.slot_values.items()} == state["slot_values"]
      assert frame.active_intent == state["active_intent"]
      assert list(frame.requested_slots) == state["requested_slots"]
      compared += 1
  assert compared == 4


@by_model
def test_a_dialogue_is_typed(fork_server, checkpoint, small_sample, tmp_path):
  corpus = open_corpus(small_sample / "sample")
  for name, variant in (("mine", "original"), ("v1", "v1")):
    services = corpus.schema("dev", variant).to_json()[:1]
    (tmp_path / f"{name}.json").write_text(json.dumps(services))
  (tmp_path / "typed").write_text("I need it tomorrow\nWhere? {REQUEST nothing}\n")
  run = fork_server.start_module(
    *("sgdx_t5x.cli", "track", checkpoint.parent, "--schema", tmp_path / "mine.json"),
    *("--variant-schema", f"v1={tmp_path / 'v1.json'}"),
    cwd=ROOT,
    stdin=tmp_path / "typed",
  )
  assert_four_parts(ended(run), "unknown slot 'nothing'")
  service = corpus.schema("dev").names[0]
  assert service in run.out()
  assert max(map(len, run.out().splitlines())) <= 80


_UNKNOWN_MODULE = "import a_module_of_nobody\nMIXTURE_OR_TASK_NAME = 'sample_spandst_sgd'\n"


@pytest.mark.parametrize(
  ("spoil", "words"),
  [
    (lambda folder: (folder / "config.gin").unlink(), "no config.gin"),
    (lambda folder: (folder / "config.gin").write_text("X = 1\n"), "no MIXTURE_OR_TASK_NAME"),
    (lambda folder: (folder / "config.gin").write_bytes(b"\xff\x00"), "no MIXTURE_OR_TASK_NAME"),
    (lambda folder: (folder / "checkpoint_1").rmdir(), "no checkpoint"),
    (lambda folder: (folder / "config.gin").write_text(_UNKNOWN_MODULE), "a_module_of_nobody"),
  ],
)
def test_folders_that_are_no_tracker(tmp_path, capsys, spoil, words):
  (tmp_path / "checkpoint_1").mkdir()
  (tmp_path / "config.gin").write_text("MIXTURE_OR_TASK_NAME = 'sample_spandst_sgd'\n")
  assert find_checkpoints(tmp_path)[0].task == "sample_spandst_sgd"
  spoil(tmp_path)
  assert sgdx("track", tmp_path, "--corpus", "sample", "--out", tmp_path / "out") == 1
  assert_four_parts(capsys.readouterr().err, words)


def test_a_long_task_name_is_found_where_gin_breaks_the_line(tmp_path):
  (tmp_path / "checkpoint_1").mkdir()
  (tmp_path / "config.gin").write_text("MIXTURE_OR_TASK_NAME = \\\n    'a_mixture_of_mine'\n")
  assert find_checkpoints(tmp_path)[0].task == "a_mixture_of_mine"


def test_lengths_of_features_that_must_be_as_long_follow(monkeypatch):
  lengths = {"inputs": 384, "segments": 384, "slots": 24, "slot_context": 24, "memory": 12}
  monkeypatch.setattr(model, "query", lambda name: lengths)
  checkpoint = Checkpoint("c", "config.gin", "", "task")
  found = model._lengths(checkpoint, {"inputs": 512, "slots": 30})
  assert found == {**lengths, "inputs": 512, "segments": 512, "slots": 30, "slot_context": 30}
  assert model._lengths(checkpoint, {"inputs": 9, "segments": 8})["segments"] == 8


def test_a_changed_configuration_under_the_same_path_is_read_again():
  """As in a notebook that trains again into the same folder."""
  for number in (1, 2):
    checkpoint = Checkpoint("c", "config.gin", f"NUMBER = {number}\nMODEL = None\n", "task")
    with checkpoints.configured(checkpoint):
      assert checkpoints.query("NUMBER") == number
  with checkpoints.gin.unlock_config():
    checkpoints.gin.clear_config()


def test_threads_do_not_see_each_others_configurations():
  """As in a server that answers with two trackers, or with one for several users."""

  def read(number):
    checkpoint = Checkpoint(
      f"c{number}", "config.gin", f"NUMBER = {number}\nMODEL = None\n", "task"
    )
    found = set()
    for _ in range(20):
      with checkpoints.configured(checkpoint):
        time.sleep(1e-4)  # lets another thread run
        found.add(checkpoints.query("NUMBER"))
    return found

  with concurrent.futures.ThreadPoolExecutor(3) as threads:
    assert list(threads.map(read, range(3))) == [{0}, {1}, {2}]
  with checkpoints.gin.unlock_config():
    checkpoints.gin.clear_config()


@pytest.mark.parametrize(
  ("options", "words"),
  [
    ([], "neither --corpus nor --schema"),
    (["--corpus", "sample"], "--corpus without --out"),
    (["--corpus", "sample", "--out", "o", "--service", "x"], "--service with --corpus"),
    (["--schema", "s", "--variant", "v1"], "--variant with --schema"),
    (["--schema", "s", "--dialogues", "d"], "--dialogues without --variant-schema"),
    (["--corpus", "sample", "--out", "o", "--seed", "7"], "--seed 7 without --limit"),
    (["--corpus", "sample", "--out", "o", "--limit", "0"], "--limit 0"),
    (["--corpus", "sample", "--out", "o", "--lengths", "inputs"], "--lengths inputs"),
  ],
)
def test_wrong_usage(options, words, capsys):
  assert sgdx("track", "nothing", *options) == 2
  assert_four_parts(capsys.readouterr().err, words)
