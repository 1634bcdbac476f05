"""CoCo's generator and classifier through the command line: train, goals, infer, perturb."""

import json

import pytest
from commands import sgdx
from places import ROOT

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.papers.coco.coco_words import read_candidates

pytestmark = pytest.mark.long
STEPS = (
  *("--gin.TRAIN_STEPS=1", "--gin.BATCH_SIZE=2", "--gin.EVAL_PERIOD=1", "--gin.EVAL_STEPS=1"),
  "--gin.train.inference_evaluator_cls=None",
)
SHORT = "--gin.TASK_FEATURE_LENGTHS={'inputs': 200, 'targets': 8}"  # it has not learned to stop
ANSWERS = "sample_sgd_user_turn_goals-predict{}.jsonl-00000-of-00001"


@pytest.fixture(scope="module")
def run(fork_server):
  def run(script, gin, *arguments, **settings):
    gin = f"gin/papers/coco/sample/{gin}.gin"
    fork_server.run(script, gin, *arguments, cwd=ROOT, **settings)

  return run


def _answer(run, gin, model, asked, out, *settings):
  checkpoint = f"--gin.CHECKPOINT_PATH='{model}/checkpoint_1'"
  places = (checkpoint, f"--gin.INFER_OUTPUT_DIR='{out}'")
  run("infer", gin, *places, SHORT, *settings, env={"SGDX_GOALS": str(asked)})


def test_the_whole_way_of_a_trained_generator_and_classifier(run, small_sample, tmp_path, capsys):
  """One model after one step plays both and says no values: CoCo+ substitutes nearly all."""
  model = tmp_path / "model"
  run("train", "coco_classifier", f"--gin.MODEL_DIR='{model}'", *STEPS)
  command = ("coco", "perturb", "--corpus", small_sample / "sample")
  goals, asked = tmp_path / "goals.jsonl", tmp_path / "utterances.jsonl"
  assert sgdx(*command, "--goals-out", goals) == 0
  lines = [json.loads(line) for line in goals.read_text().splitlines()]
  with_scores = "--gin.infer.mode='predict_with_aux'"
  _answer(run, "coco_infer", model, goals, tmp_path / "answers", with_scores)
  answers = tmp_path / "answers" / ANSWERS.format("_with_aux")
  texts, inputs = read_candidates(answers)
  assert inputs == {line["id"]: line["inputs"] for line in lines}
  for row in map(json.loads, answers.read_text().splitlines()):
    assert len(row["prediction"]) == 5
    assert row["aux"]["scores"] == sorted(row["aux"]["scores"])  # the best is the last
    assert texts[row["inputs"]["id_pretokenized"]] == row["prediction"][::-1]

  given = (*command, "--generator", "file", "--candidates", answers, "--plus")
  assert sgdx(*given, "--out", tmp_path / "coco") == 0
  counts = open_corpus(tmp_path / "coco").manifest("test").counts
  assert counts["source"]["vs"] > 0.8 * counts["generated"]
  assert sgdx(*given, "--classify-out", asked) == 0
  _answer(run, "coco_classify", model, asked, tmp_path / "slots")
  classified = (*given, "--classifier", tmp_path / "slots" / ANSWERS.format(""))
  capsys.readouterr()
  assert sgdx(*classified, "--out", tmp_path / "classified") == 0
  assert "classifier: precision 0." in capsys.readouterr().out
