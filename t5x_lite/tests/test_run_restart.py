"""A killed `t5x.infer` or `t5x.eval` continues where it was."""

import json
import os
import time

import jax
import pytest
from tiny_model import tiny_model

from t5x import checkpoints, decoding, partitioning, utils

RUNS = {
  "infer": ("run_infer.gin", "INFER_OUTPUT_DIR", "run_many-predict.jsonl-00000-of-00001"),
  "eval": ("run_eval.gin", "EVAL_OUTPUT_DIR", "inference_eval/run_many-000000.jsonl"),
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
  """A checkpoint of run_model.gin's model with random weights."""
  model = tiny_model(
    decoding.beam_search,
    emb_dim=32,
    head_dim=16,
    mlp_dim=64,
    mlp_activations=("gelu", "linear"),
  )
  state = utils.TrainStateInitializer(
    model.optimizer_def,
    model.get_initial_variables,
    {"encoder_input_tokens": (1, 8), "decoder_input_tokens": (1, 8)},
    partitioning.PjitPartitioner(num_partitions=1),
  ).from_scratch(jax.random.PRNGKey(0))
  folder = tmp_path_factory.mktemp("model")
  checkpointer = checkpoints.Checkpointer(str(folder))
  checkpointer.save(state)
  checkpointer.close()
  return folder / "checkpoint_0"


@pytest.mark.long
def test_a_split_that_no_task_has(server, checkpoint, tmp_path):
  split = "utils.DatasetConfig.split='tset'"
  args = ("run_eval.gin", f"--gin.CHECKPOINT_PATH='{checkpoint}'", f"--gin.{split}")
  err = server.run("eval", *args, "--gin.EVAL_OUTPUT_DIR='e'", code=1, cwd=tmp_path)
  assert "No task of 'run_last3' can be evaluated." in err
  args = ("run_train.gin", "--gin.MODEL_DIR='m'", "--gin.TRAIN_STEPS=1", "--gin.EVAL_STEPS=0")
  err = server.run("train", *args, f"--gin.infer_eval/{split}", cwd=tmp_path)
  assert "no inference_eval: no task has split 'tset' and metrics" in err
  assert "done at step 1" in err


def _wait_for_lines(folder, number, process):
  """Waits until the files in `folder` have `number` lines."""
  while sum(len(f.read_text().splitlines()) for f in folder.glob("*.jsonl")) < number:
    assert process.poll() is None, process.err()[-2000:]
    time.sleep(0.1)


@pytest.mark.long
@pytest.mark.parametrize("script", RUNS)
def test_a_killed_run_goes_on(server, tmp_path, checkpoint, script):
  gin_file, macro, result = RUNS[script]
  out = tmp_path / "out"
  args = (
    gin_file,
    f"--gin.{macro}='{out}'",
    f"--gin.CHECKPOINT_PATH='{checkpoint}'",
    "--gin.MIXTURE_OR_TASK_NAME='run_many'",
    "--gin.utils.DatasetConfig.split='test'",
  )
  if script == "infer":
    # The data blocks after 700 examples: only the first window of 64 batches of 8 is run, and its
    # last batch would be fetched when the next one is started.
    block, wanted = "RUN_TASKS_BLOCK_AT", 504
  else:  # the evaluator reads everything before it starts; the metric comes last
    block, wanted = "RUN_TASKS_BLOCK_METRIC", 1000
  process = server.start(script, *args, env={block: "700"})
  try:
    _wait_for_lines(out / "partial", wanted, process)
  finally:
    process.kill()
    process.wait()
  assert not (out / result).exists()
  err = server.run(script, *args)
  assert f"{wanted} results of an earlier run" in err
  assert f"{wanted} already known" in err
  rows = [json.loads(line) for line in (out / result).read_text().splitlines()]
  assert len(rows) == 1000
  assert not (out / "partial").exists()
  if script == "infer":
    assert [row["inputs"]["targets_pretokenized"] for row in rows] == [str(i) for i in range(1000)]
    before = os.stat(out / result).st_mtime_ns
    err = server.run(script, *args)
    assert "is complete with these settings: skipped" in err
    assert os.stat(out / result).st_mtime_ns == before
    server.run(script, *args, env={"RUN_TASKS_MANY": "7"})  # the data have changed
    assert len((out / result).read_text().splitlines()) == 7
    (out / f"{result}.COMPLETED").write_text("of version 0.1")
    every = (
      "--gin.utils.RestoreCheckpointConfig.mode='all'",
      f"--gin.CHECKPOINT_PATH='{checkpoint.parent}'",
    )
    assert "single checkpoint" in server.run(script, *args, *every, code=1)
  else:
    err = server.run(script, *args, env={"RUN_TASKS_MANY": "0"}, code=1)
    assert "There are no examples of 'run_many' to evaluate" in err
