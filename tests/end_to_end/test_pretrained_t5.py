"""T5's decoder on a BERT through the scripts: trained, evaluated and tracked on the sample.

The encoder is a small stand-in with random weights in the vocabulary of the sample's encoder.
"""

import json

import pytest
from places import ROOT

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", ["t5dst", "d3st"])
def test_it_is_trained_and_tracks(name, fork_server, small_sample, tmp_path):
  task = f"'wordpiece_{name}_sgd'"
  settings = {
    "TRAIN_STEPS": 2,
    "BATCH_SIZE": 2,
    "EVAL_STEPS": 1,
    "EVAL_PERIOD": 1000,
    "EVALUATOR_NUM_EXAMPLES": 4,
    "MODEL_DIR": f"'{tmp_path}/model'",
    "MIXTURE_OR_TASK_NAME": task,
    "train_eval/utils.DatasetConfig.mixture_or_task_name": task,
    "infer_eval/utils.DatasetConfig.mixture_or_task_name": task,
  }
  files = ("gin/models/minilm_t5.gin", "tests/support/wordpiece_model.gin")
  options = [f"--gin_file={file}" for file in files]
  options += [f"--gin.{key}={value}" for key, value in settings.items()]
  data = f"--tfds_data_dir={small_sample}/data"
  fork_server.run("train", f"gin/sample/{name}.gin", *options, data, cwd=ROOT)
  metrics = (tmp_path / "model/inference_eval").iterdir()
  assert any("metrics" in path.name for path in metrics)
  out = tmp_path / "tracked"
  arguments = ["--corpus", small_sample / "sample", "--split", "dev", "--limit", 3, "--out", out]
  arguments += ["--allow-module", "tests.support.wordpiece_tasks"]
  tracked = fork_server.start_module(
    "sgdx_t5x.cli", "track", tmp_path / "model", *arguments, cwd=ROOT
  )
  code, err = tracked.wait()
  assert code == 0, err[-3000:]
  (file,) = (out / "original").iterdir()
  assert len(json.loads(file.read_bytes())) == 3
