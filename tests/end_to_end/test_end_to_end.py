"""The main job through the command line: train, kill, resume, evaluate, score."""

import dataclasses
import functools
import json
import shutil
import time

import pytest
from commands import sgdx, sgdx_process
from event_names import names_of_page, not_written
from places import ROOT

from sgdx_t5x import weights
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.metrics.frames import gold_frames
from sgdx_t5x.scoring.predictions import read_predictions
from sgdx_t5x.scoring.predictions.files import Selection

pytestmark = pytest.mark.slow
GIN = "gin/sample/{}.gin"
# Prompt styles of the tiny_* tasks, as in docs/formats.md.
TINY = {"d3st": ("values=none", "slots=tracked", "order=schema", "lowercase=false")}
SMALL = (  # compilation takes most of the time
  "--gin.network.T5Config.num_encoder_layers=1",
  "--gin.network.T5Config.num_decoder_layers=1",
)


def train_arguments(model_dir, records, steps):
  return [
    f"--gin.MODEL_DIR='{model_dir}'",
    f"--gin.TRAIN_STEPS={steps}",
    "--gin.BATCH_SIZE=4",
    "--gin.EVAL_PERIOD=10",
    "--gin.EVAL_STEPS=1",
    "--gin.EVALUATOR_NUM_EXAMPLES=48",  # the first frames, original and v1 to v5
    f"--tfds_data_dir={records}",
    *SMALL,
  ]


@pytest.fixture(scope="module")
def start(fork_server):
  """Starts t5x.SCRIPT with a gin file and further arguments, in the repository."""
  return functools.partial(fork_server.start, cwd=ROOT)


def test_dry_run_from_the_command_line(start):
  arguments = ("--run_mode=train", "--dry_run", "--gin.MODEL_DIR='/nowhere'")
  code, err = start("main", "gin/t5dst_backtrans.gin", *arguments).wait()
  assert code == 0, err


def test_unset_macros_are_all_named(start):
  code, err = start("eval", "gin/eval.gin").wait()
  assert code == 1
  for name in ("MIXTURE_OR_TASK_NAME", "CHECKPOINT_PATH", "EVAL_OUTPUT_DIR"):
    assert name in err


@pytest.fixture(scope="module")
def model(tmp_path_factory, start, small_sample):
  """A model trained for 30 steps; its process was killed after step 10 and started again."""
  folder = tmp_path_factory.mktemp("model")
  command = ("train", GIN.format("t5dst_backtrans"))
  arguments = train_arguments(folder, small_sample / "data", 30)
  run = start(*command, *arguments)
  while not (folder / "checkpoint_10").exists():
    assert run.poll() is None, run.err()
    time.sleep(0.05)
  run.kill()
  run.wait()
  code, again = start(*command, *arguments).wait()
  assert code == 0, again[-3000:]
  assert "step 10" in again or "checkpoint_10" in again
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
  assert not not_written(model, names_of_page(names))


def run_to_the_end(start, script, *arguments):
  split = "--gin.utils.DatasetConfig.split='dev'"
  command = (script, GIN.format(script), split, *SMALL, *arguments)
  code, err = start(*command).wait()
  assert code == 0, err[-3000:]


@pytest.mark.long
def test_evaluation_is_scored_as_the_library_scores_it(model, start, small_sample, tmp_path):
  run_to_the_end(
    start,
    "eval",
    f"--gin.CHECKPOINT_PATH='{model}/checkpoint_30'",
    f"--gin.EVAL_OUTPUT_DIR='{tmp_path}'",
    "--gin.TASK_FEATURE_LENGTHS={'inputs': 224, 'targets': 20}",  # fewer lengths to compile for
    f"--tfds_data_dir={small_sample}/data",
  )
  assert not not_written(tmp_path, names_of_page(r"inference_eval/t5dst_sgd(?:x_v1)?/"))
  predictions = tmp_path / "inference_eval"
  found = sgdx_process(
    *("score", "--corpus", small_sample / "sample", "--split", "dev"),
    *("--predictions", f"all={predictions}", "--json", tmp_path / "scores.json", "--all"),
  )
  assert found.returncode == 0, found.stderr
  assert "SS_JGA" in found.stdout
  assert "predict nothing" in found.stdout
  scores = json.loads((tmp_path / "scores.json").read_text())
  assert scores["complete"] is True
  # SeqIO's metrics per task equal the scorer's official JGA.
  for variant, task in [("original", "sgd"), *((f"v{k}", f"sgdx_v{k}") for k in range(1, 6))]:
    text = (predictions / f"sample_t5dst_{task}-metrics.jsonl").read_text()
    seqio_jga = json.loads(text.splitlines()[-1])["jga"]
    official = scores["variants"][variant]["#ALL_SERVICES"]["joint_goal_accuracy"]
    assert seqio_jga == pytest.approx(official, abs=1e-9)


@pytest.fixture(scope="module")
def talkative(model, tmp_path_factory):
  """The model with negated logits: after 30 steps, the original's best answers are "none"."""
  found = weights.read_checkpoint(model / "checkpoint_30")
  name = "decoder/decoder_norm/scale"
  arrays = {**found.arrays, name: -found.arrays[name]}
  folder = tmp_path_factory.mktemp("talkative")
  shutil.copy(model / "config.gin", folder)
  return weights.write_checkpoint(dataclasses.replace(found, arrays=arrays), folder, step=30)


@pytest.mark.long
def test_infer_writes_rows_that_can_be_scored(
  talkative, start, fork_server, small_sample, tmp_path
):
  run_to_the_end(
    start,
    "infer",
    "--gin.MIXTURE_OR_TASK_NAME='sample_t5dst_sgdx_v3'",
    f"--gin.CHECKPOINT_PATH='{talkative}'",
    f"--gin.INFER_OUTPUT_DIR='{tmp_path}'",
    "--gin.TASK_FEATURE_LENGTHS={'inputs': 224, 'targets': 20}",
    f"--tfds_data_dir={small_sample}/data",
  )
  assert not sgdx(
    *("score", "--corpus", small_sample / "sample", "--split", "dev"),
    *("--predictions", f"v3={tmp_path}", "--json", tmp_path / "scores.json"),
  )
  scores = json.loads((tmp_path / "scores.json").read_text())
  assert scores["sgdx"]["all"]["jga_v3"] is not None
  assert scores["sgdx"]["all"]["ss_jga"] is None  # needs v1 to v5
  # `sgdx track` detects what was trained, and its states are those of the same answers.
  run = fork_server.start_module(
    *("sgdx_t5x.cli", "track", talkative, "--corpus", small_sample / "sample", "--split", "dev"),
    *("--variant", "v3", "--lengths", "inputs=224", "--out", tmp_path / "tracked"),
    cwd=ROOT,
  )
  code, err = run.wait()
  assert code == 0, err[-3000:]
  assert "tracker: T5DST" in err
  corpus = open_corpus(small_sample / "sample")
  selection = Selection(corpus, "dev", gold_frames(corpus.dialogues("dev")))
  inferred, tracked = (
    {
      k: {slot: list(values) for slot, values in frame.slot_values.items()}
      for k, frame in read_predictions(place, "v3", selection).frames.items()
    }
    for place in (tmp_path, tmp_path / "tracked/v3")
  )
  assert inferred == tracked
  assert sum(map(len, tracked.values())) > len(tracked)


@pytest.mark.long
@pytest.mark.parametrize("name", ["d3st"])
def test_formats_of_whole_frames_train_evaluate_infer_and_score(
  start, fork_server, small_sample, tmp_path, name
):
  """Uses the README's commands; the outputs of eval, infer and track score the same."""
  family, style = f"tiny_{name}", TINY[name]
  records, frames = small_sample / "data", f"--gin_file=gin/sample/formats/{name}.gin"
  short = "--gin.TASK_FEATURE_LENGTHS={'inputs': 448, 'targets': 24}"  # fewer steps to decode
  model = tmp_path / "model"
  run = start("train", GIN.format(name), *train_arguments(model, records, 10))
  code, err = run.wait()
  assert code == 0, err[-3000:]
  metrics = model / "inference_eval" / f"{family}_sgd_sgdx-metrics.jsonl"
  logged = json.loads(metrics.read_text().splitlines()[-1])
  assert {"jga_v1_5", "ss_jga", "active_intent_accuracy_v1_5", "requested_slots_f1_v1_5"} <= {
    *logged
  }
  task = f"--gin.MIXTURE_OR_TASK_NAME='{family}_sgdx_v3'"
  common = (frames, short, task, f"--gin.CHECKPOINT_PATH='{model}/checkpoint_10'")
  found = {}
  for script in ("eval", "infer"):
    out = f"--gin.{script.upper()}_OUTPUT_DIR='{tmp_path / script}'"
    run_to_the_end(start, script, *common, out, f"--tfds_data_dir={records}")
    assert not sgdx(
      *("score", "--corpus", small_sample / "sample", "--split", "dev"),
      *("--prompt-style", f"format={name}", *style, "--predictions", f"v3={tmp_path / script}"),
      *("--json", tmp_path / f"{script}.json"),
    )
    scores = json.loads((tmp_path / f"{script}.json").read_text())
    found[script] = scores["variants"]["v3"]["#ALL_SERVICES"]
  run = fork_server.start_module(
    *("sgdx_t5x.cli", "track", model, "--corpus", small_sample / "sample", "--split", "dev"),
    *("--lengths", "inputs=448", "targets=24", "--variant", "v3", "--out", tmp_path / "track"),
    cwd=ROOT,
  )
  code, err = run.wait()
  assert code == 0, err[-3000:]
  assert not sgdx(
    *("score", "--corpus", small_sample / "sample", "--split", "dev"),
    *("--predictions", f"v3={tmp_path / 'track/v3'}", "--json", tmp_path / "track.json"),
  )
  scores = json.loads((tmp_path / "track.json").read_text())
  found["track"] = scores["variants"]["v3"]["#ALL_SERVICES"]
  assert found["eval"] == found["infer"] == found["track"]
  last = (tmp_path / "eval/inference_eval" / f"{family}_sgdx_v3-metrics.jsonl").read_text()
  seqios = json.loads(last.splitlines()[-1])
  for ours, official in (
    ("jga", "joint_goal_accuracy"),
    ("active_intent_accuracy", "active_intent_accuracy"),
    ("requested_slots_f1", "requested_slots_f1"),
  ):
    assert seqios[ours] == pytest.approx(found["eval"][official], abs=1e-9)


def test_the_structured_start_is_t5_with_other_numbers():
  """Same tree, same shapes; only attention's biases, queries, keys and outputs are set."""
  import jax
  import numpy as np

  from sgdx_t5x.errors import SgdxError
  from sgdx_t5x.t5.structured_init import restructure
  from t5x.examples.t5 import network

  config = network.T5Config(
    vocab_size=32, emb_dim=8, num_heads=3, head_dim=4, mlp_dim=16,
    num_encoder_layers=1, num_decoder_layers=1, dropout_rate=0.0, logits_via_embedding=True,
  )  # fmt: skip
  tokens = np.ones((1, 4), np.int32)
  init = functools.partial(network.Transformer(config).init, enable_dropout=False)
  quickly = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
  init = jax.jit(init, compiler_options=quickly)
  params = init(jax.random.PRNGKey(0), tokens, tokens, tokens)["params"]
  new = restructure(params, neighbour=6.0, match=9.0, earlier=5.0)
  assert jax.tree.map(np.shape, new) == jax.tree.map(np.shape, jax.tree.map(lambda x: x, params))
  bias = new["encoder"]["relpos_bias"]["rel_embedding"]
  assert np.argmax(bias[0]) == 1  # the previous token
  assert np.argmax(bias[1]) == 17  # the next one
  noise = params["encoder"]["relpos_bias"]["rel_embedding"]
  too_few = jax.tree.map(lambda x: x[:2] if x.shape == noise.shape else x, params)
  with pytest.raises(SgdxError, match="at least 3"):
    restructure(too_few, earlier=5.0)
  assert np.allclose(bias[0, 1] - 0.1 * noise[0, 1], 6.0)
  assert np.allclose(bias[2] - 0.1 * noise[2], [5.0 if 2 <= i <= 5 else 0.0 for i in range(32)])
  cross = new["decoder"]["layers_0"]["encoder_decoder_attention"]
  assert np.array_equal(cross["key"]["kernel"], cross["query"]["kernel"])
  query = params["decoder"]["layers_0"]["encoder_decoder_attention"]["query"]["kernel"]
  # A token's attention logit with itself, 1 on average in T5, is multiplied by 9.
  assert np.allclose(cross["query"]["kernel"], 3 * query)
  assert np.array_equal(cross["out"]["kernel"], cross["value"]["kernel"].T)
  same = params["encoder"]["layers_0"]["mlp"]["wi"]["kernel"]
  assert np.array_equal(new["encoder"]["layers_0"]["mlp"]["wi"]["kernel"], same)
