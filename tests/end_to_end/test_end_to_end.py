"""The main job through the command line: train, kill, resume, evaluate, score."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest
from places import ROOT

pytestmark = pytest.mark.slow


def t5x(script, *arguments, **kwargs):
  found = subprocess.run(
    [sys.executable, "-m", f"t5x.{script}", *arguments],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=False,
    **kwargs,
  )
  assert found.returncode == 0, found.stderr[-3000:]
  return found


def train_arguments(model_dir, records, steps):
  return [
    "--gin_file=gin/sample/t5dst_backtrans.gin",
    f"--gin.MODEL_DIR='{model_dir}'",
    f"--gin.TRAIN_STEPS={steps}",
    "--gin.EVAL_PERIOD=10",
    "--gin.EVAL_STEPS=1",
    "--gin.EVALUATOR_NUM_EXAMPLES=48",  # the first frames, original and v1 to v5
    f"--tfds_data_dir={records}",
  ]


def not_written(folder, pattern):
  """Names in docs/tensorboard.md that match a pattern and are in no event file of a folder."""
  from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

  text = (ROOT / "docs/tensorboard.md").read_text()
  names = re.findall(rf"^({pattern}\S+)(?: |$)", text, re.MULTILINE)
  assert names
  written = {
    f"{file.parent.relative_to(folder)}/{value.tag}"
    for file in folder.rglob("events.*")
    for event in EventFileLoader(str(file)).Load()
    for value in event.summary.value
  }
  return {name.replace("/t5dst", "/sample_t5dst") for name in names} - written


@pytest.fixture(scope="module")
def model(tmp_path_factory, sample_records):
  """A model trained for 30 steps; its process was killed after step 10 and started again."""
  folder = tmp_path_factory.mktemp("model")
  arguments = train_arguments(folder, sample_records, 30)
  process = subprocess.Popen(
    [sys.executable, "-m", "t5x.train", *arguments],
    cwd=ROOT,
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
  )
  deadline = time.time() + 300
  while not (folder / "checkpoint_10").exists() and time.time() < deadline:
    assert process.poll() is None
    time.sleep(0.05)
  process.send_signal(signal.SIGKILL)
  process.wait()
  assert (folder / "checkpoint_10").exists()
  again = t5x("train", *arguments)
  assert "step 10" in again.stderr or "checkpoint_10" in again.stderr
  return folder


def test_a_killed_run_is_resumed_to_the_end(model):
  assert (model / "checkpoint_30").exists()
  metrics = "sample_t5dst_sgd_sgdx-metrics.jsonl"
  rows = [
    json.loads(line) for line in (model / "inference_eval" / metrics).read_text().splitlines()
  ]
  assert rows[-1]["step"] == 30
  assert {"jga_orig", "jga_v1_5", "ss_jga", "num_frames"} <= set(rows[-1])


def test_tensorboard_has_the_documented_names(model):
  names = r"(?:train|training_eval/t5dst_sgd|inference_eval/t5dst_sgd_sgdx)/"
  assert not not_written(model, names)


def test_evaluation_is_scored_as_the_library_scores_it(model, sample_records, tmp_path):
  t5x(
    "eval",
    "--gin_file=gin/sample/eval.gin",
    f"--gin.CHECKPOINT_PATH='{model}/checkpoint_30'",
    f"--gin.EVAL_OUTPUT_DIR='{tmp_path}'",
    "--gin.utils.DatasetConfig.split='dev'",
    f"--tfds_data_dir={sample_records}",
  )
  assert not not_written(tmp_path, r"inference_eval/t5dst_sgd(?:x_v1)?/")
  predictions = tmp_path / "inference_eval"
  found = subprocess.run(
    [sys.executable, "-m", "sgdx_t5x.cli", "score", "--corpus", "sample", "--split", "dev",
     "--predictions", f"all={predictions}", "--json", str(tmp_path / "scores.json")],
    capture_output=True, text=True, check=False,
  )  # fmt: skip
  assert found.returncode == 0, found.stderr
  assert "SS_JGA" in found.stdout
  assert "predict nothing" in found.stdout
  scores = json.loads((tmp_path / "scores.json").read_text())
  assert scores["complete"] is True
  # SeqIO's own metrics, per task, are the official JGA of the scorer.
  for variant, task in [("original", "sgd"), *((f"v{k}", f"sgdx_v{k}") for k in range(1, 6))]:
    text = (predictions / f"sample_t5dst_{task}-metrics.jsonl").read_text()
    seqio_jga = json.loads(text.splitlines()[-1])["jga"]
    official = scores["variants"][variant]["#ALL_SERVICES"]["joint_goal_accuracy"]
    assert seqio_jga == pytest.approx(official, abs=1e-9)


def test_infer_writes_rows_that_can_be_scored(model, sample_records, tmp_path):
  t5x(
    "infer",
    "--gin_file=gin/sample/infer.gin",
    "--gin.MIXTURE_OR_TASK_NAME='sample_t5dst_sgdx_v3'",
    f"--gin.CHECKPOINT_PATH='{model}/checkpoint_30'",
    f"--gin.INFER_OUTPUT_DIR='{tmp_path}'",
    "--gin.utils.DatasetConfig.split='dev'",
    f"--tfds_data_dir={sample_records}",
  )
  from sgdx_t5x.cli import main

  arguments = ["score", "--corpus", "sample", "--split", "dev", "--predictions", f"v3={tmp_path}"]
  assert main([*arguments, "--json", str(tmp_path / "scores.json")]) == 0
  scores = json.loads((tmp_path / "scores.json").read_text())
  assert scores["sgdx"]["all"]["jga_v3"] is not None
  assert scores["sgdx"]["all"]["ss_jga"] is None  # needs v1 to v5


def test_the_structured_start_is_t5_with_other_numbers():
  """Same tree, same shapes; only biases, keys and outputs of attention are set."""
  import jax
  import numpy as np

  from sgdx_t5x.from_scratch.structured_init import restructure
  from t5x.examples.t5 import network

  config = network.T5Config(
    vocab_size=32, emb_dim=8, num_heads=2, head_dim=4, mlp_dim=16,
    num_encoder_layers=1, num_decoder_layers=1, dropout_rate=0.0, logits_via_embedding=True,
  )  # fmt: skip
  tokens = np.ones((1, 4), np.int32)
  params = network.Transformer(config).init(
    jax.random.PRNGKey(0), tokens, tokens, tokens, enable_dropout=False
  )["params"]
  new = restructure(params, neighbour=6.0, match=9.0)
  assert jax.tree.map(np.shape, new) == jax.tree.map(np.shape, jax.tree.map(lambda x: x, params))
  bias = new["encoder"]["relpos_bias"]["rel_embedding"]
  assert np.argmax(bias[0]) == 1  # the previous token
  assert np.argmax(bias[1]) == 17  # the next one
  noise = params["encoder"]["relpos_bias"]["rel_embedding"]
  assert np.allclose(bias[0, 1] - 0.1 * noise[0, 1], 6.0)
  cross = new["decoder"]["layers_0"]["encoder_decoder_attention"]
  assert np.array_equal(cross["key"]["kernel"], cross["query"]["kernel"])
  query = params["decoder"]["layers_0"]["encoder_decoder_attention"]["query"]["kernel"]
  # The logit of a token with itself, T5's being 1 on average, is 9 times what it was.
  assert np.allclose(cross["query"]["kernel"], 3 * query)
  assert np.array_equal(cross["out"]["kernel"], cross["value"]["kernel"].T)
  same = params["encoder"]["layers_0"]["mlp"]["wi"]["kernel"]
  assert np.array_equal(new["encoder"]["layers_0"]["mlp"]["wi"]["kernel"], same)
