"""SGP-DST through the command line: train its four models, infer, track, score."""

import functools
import json

import pytest
from commands import sgdx
from places import ROOT

from sgdx_t5x.papers.sgpdst.sgpdst import PARTS
from sgdx_t5x.papers.sgpdst.sgpdst_answers import read_slot

pytestmark = pytest.mark.long
STEPS = 3
SMALL = (  # compilation takes most of the time
  "--gin.encoder.BertConfig.num_layers=1",
  "--gin.encoder.BertConfig.emb_dim=16",
)


@pytest.fixture(scope="module")
def start(fork_server):
  """Runs t5x.SCRIPT with a gin file and further arguments to its end; returns what it printed."""

  def run(script, gin, *arguments):
    gin = f"gin/papers/sgpdst/sample/{gin}.gin"
    return fork_server.run(script, gin, *SMALL, *arguments, cwd=ROOT)

  return functools.cache(run)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, start, small_sample):
  """A folder with a MODEL_DIR for each sub-model, and what the runs printed."""
  folder, printed = tmp_path_factory.mktemp("sgpdst"), {}
  for part in PARTS:
    # No dialogue of this small dev split has two services.
    evaluated = ("--gin.infer_eval/utils.DatasetConfig.split='train'",) * (part == "cross")
    printed[part] = start(
      "train",
      part,
      *evaluated,
      f"--gin.MODEL_DIR='{folder / 'runs' / part}'",
      f"--gin.TRAIN_STEPS={STEPS}",
      "--gin.BATCH_SIZE=4",
      "--gin.EVAL_STEPS=1",
      "--gin.EVALUATOR_NUM_EXAMPLES=16",
      f"--tfds_data_dir={small_sample / 'data'}",
    )
  return folder, printed


def test_training_shows_losses_and_metrics(trained):
  _, printed = trained
  for part, metric in (("intent", "intent_accuracy"), ("combine", "none_accuracy"), ("copy", "f1")):
    assert f"training_eval sample_sgpdst_{part}_sgd: loss" in printed[part]
    assert "loss nan" not in printed[part]
    assert metric in printed[part]


def test_infer_answers_for_every_slot(trained, start, small_sample):
  folder, _ = trained
  start(
    "infer",
    "infer",
    "--gin.PART='combine'",
    "--gin.MIXTURE_OR_TASK_NAME='sample_sgpdst_combine_sgdx_v3'",
    f"--gin.CHECKPOINT_PATH='{folder / 'runs/combine'}/checkpoint_{STEPS}'",
    f"--gin.INFER_OUTPUT_DIR='{folder / 'answers'}'",
    "--gin.utils.DatasetConfig.split='test'",
    f"--tfds_data_dir={small_sample / 'data'}",
  )
  (file,) = (folder / "answers").glob("*.jsonl-00000-of-00001")
  rows = [json.loads(line) for line in file.read_text().splitlines()]
  assert len(rows) > 100
  answer = read_slot(rows[0]["prediction"])
  assert 0 < answer.first <= answer.last
  assert 0 <= answer.requested <= 1


def test_four_checkpoints_track_and_are_scored(trained, small_sample, capsys):
  folder, _ = trained
  corpus, out = small_sample / "sample", folder / "tracked"
  options = ("--corpus", corpus, "--split", "dev", "--variant", "v3", "--out", out)
  assert sgdx("track", folder / "runs", *options) == 0
  capsys.readouterr()
  predictions = ("--predictions", f"v3={out / 'v3'}")
  assert sgdx("score", "--corpus", corpus, "--split", "dev", *predictions) == 0
  assert "JGA" in capsys.readouterr().out


def test_gold_history_marks_predictions_and_scores(trained, small_sample, capsys):
  folder, _ = trained
  corpus, out = small_sample / "sample", folder / "oracle"
  options = ("--corpus", corpus, "--split", "dev", "--limit", 4, "--out", out)
  assert sgdx("track", folder / "runs", *options, "--history", "gold") == 0
  score = ("score", "--corpus", corpus, "--split", "dev", "--allow-missing", "--predictions")
  assert sgdx(*score, f"original={out / 'original'}") == 0
  printed = " ".join(capsys.readouterr().out.split())
  assert "|history:gold|" in printed.replace(" ", "")
  assert "original: oracle scores, tracked with the gold states of earlier turns" in printed


def test_sub_models_that_are_missing_or_there_twice(trained, small_sample, capsys):
  runs = trained[0] / "runs"
  options = ("--corpus", small_sample / "sample", "--out", trained[0] / "none")
  assert sgdx("track", runs / "intent", runs / "copy", *options) == 1
  err = " ".join(capsys.readouterr().err.split())
  assert "copy/checkpoint_" in err
  assert "one checkpoint for each of its sub-models" in err
  assert sgdx("track", runs / "intent", runs / "intent", *options) == 1
  assert "(intent)" in " ".join(capsys.readouterr().err.split())
