"""The SGD baseline through the command line: train, evaluate, infer, track, score."""

import functools
import json
import re

import pytest
from commands import sgdx
from places import ROOT

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.papers.sgd_baseline import tasks
from sgdx_t5x.papers.sgd_baseline.baseline_features import BaselineReader
from sgdx_t5x.spandst.span_tracking import span_prediction
from sgdx_t5x.spandst.walk import walk
from sgdx_t5x.tasks.vocabularies import sample_encoder_vocabulary
from sgdx_t5x.tracking.protocol import tracked

pytestmark = pytest.mark.long
GIN = "gin/papers/sgd_baseline/sample/{}.gin"
STEPS = 20


@pytest.fixture(scope="module")
def start(fork_server):
  """Runs t5x.SCRIPT with a gin file and further arguments to its end; returns what it printed."""

  def run(script, gin, *arguments):
    return fork_server.run(script, GIN.format(gin), *arguments, cwd=ROOT)

  return functools.cache(run)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, start, small_sample):
  folder = tmp_path_factory.mktemp("baseline")
  arguments = [
    f"--gin.MODEL_DIR='{folder / 'run'}'",
    f"--gin.TRAIN_STEPS={STEPS}",
    "--gin.BATCH_SIZE=8",
    f"--gin.EVAL_PERIOD={STEPS}",
    "--gin.EVAL_STEPS=1",
    "--gin.EVALUATOR_NUM_EXAMPLES=48",
    f"--tfds_data_dir={small_sample / 'data'}",
  ]
  return folder, start("train", "baseline", *arguments)


def test_training_shows_losses_and_metrics_of_turns(trained):
  _, err = trained
  assert "loss nan" not in err
  assert re.search(r"training_eval sample_baseline_sgd: loss [\d.]+", err)
  assert re.search(r"sample_baseline_sgd_sgdx: slot_accuracy 0\.\d+", err)


def test_answers_of_infer_give_the_states_of_track(trained, start, small_sample, capsys):
  folder, _ = trained
  start(
    "infer",
    "baseline_infer",
    "--gin.MIXTURE_OR_TASK_NAME='sample_baseline_sgdx_v3'",
    f"--gin.CHECKPOINT_PATH='{folder / 'run'}/checkpoint_{STEPS}'",
    f"--gin.INFER_OUTPUT_DIR='{folder / 'answers'}'",
    "--gin.utils.DatasetConfig.split='test'",
    f"--tfds_data_dir={small_sample / 'data'}",
  )
  (file,) = (folder / "answers").glob("*.jsonl-00000-of-00001")
  rows = [json.loads(line) for line in file.read_text().splitlines()]
  answers = {row["inputs"]["example_id_pretokenized"]: row["prediction"] for row in rows}
  corpus = open_corpus(small_sample / "sample")
  dialogues, original = list(corpus.dialogues("test")), corpus.schema("test")
  table, vocabulary = tasks.sample_schema_embeddings(), sample_encoder_vocabulary()
  reader = BaselineReader(corpus.schema("test", "v3"), vocabulary, table.row)

  def predict(questions):
    found = []
    for question in questions:
      vector = answers[f"v3/test/{question.context.frame_id}/*"]
      example = reader.example(question.context)
      found.append(span_prediction(original, question, example, vector))
    return found

  expected = {}
  for turn in walk(dialogues, original, predict):
    expected |= {context.frame_id: prediction for context, prediction in turn}
  out = folder / "tracked"
  options = ("--corpus", small_sample / "sample", "--variant", "v3", "--out", out)
  assert sgdx("track", folder / "run", *options) == 0
  (file,) = (out / "v3").iterdir()
  frames = 0
  for dialogue in json.loads(file.read_text()):
    for number, turn in enumerate(dialogue["turns"]):
      for frame in turn["frames"] if turn["speaker"] == "USER" else ():
        one = expected[f"{dialogue['dialogue_id']}-{number:03}-{frame['service']}"]
        service = original[frame["service"]]
        known = tracked(one, original, original.names.index(service.name))
        state = frame["state"]
        assert {k: list(v) for k, v in known.slot_values.items()} == state["slot_values"]
        assert known.active_intent == state["active_intent"]
        assert list(known.requested_slots) == state["requested_slots"]
        frames += 1
  assert frames == len(expected)
  capsys.readouterr()
  scored = ("score", "--corpus", small_sample / "sample", "--predictions", f"v3={out / 'v3'}")
  assert sgdx(*scored) == 0
  assert "JGA" in capsys.readouterr().out
