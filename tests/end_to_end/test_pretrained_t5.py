"""T5's decoder on a BERT through the scripts: imported, trained, evaluated, tracked on the sample.

The BERT is a small stand-in for a pretrained one, in the vocabulary of the sample's encoder.
"""

import json

import numpy as np
import pytest
from places import FIXTURES, ROOT

from sgdx_t5x import weights
from sgdx_t5x.cli import main
from sgdx_t5x.weights import bert_huggingface, bert_layout

pytestmark = pytest.mark.long
VOCABULARY = ROOT / "sgdx_t5x/corpus/sample/vocab.txt"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
  """The checkpoint that `sgdx weights import` makes of the BERT in Hugging Face's layout."""
  folder, rng = tmp_path_factory.mktemp("encoder"), np.random.default_rng(0)
  sizes = weights.BertSizes(1024, 32, 2, 1, 64, 512, 2)
  arrays = {tensor.t5x: rng.normal(0, 0.1, tensor.shape) for tensor in bert_layout.tensors(sizes)}
  config = json.loads((FIXTURES / "hf_bert/bert/config.json").read_text())
  config |= {"vocab_size": 1024, "hidden_size": 32, "num_attention_heads": 2}
  config |= {"num_hidden_layers": 1, "intermediate_size": 64, "max_position_embeddings": 512}
  bert = weights.Weights(sizes, arrays)
  bert_huggingface.write(bert, folder / "hf", config, vocabulary=VOCABULARY)
  assert main(["weights", "import", "--hf", f"{folder}/hf", "--out", f"{folder}/start"]) == 0
  return folder / "start/checkpoint_0"


def options(data, **settings):
  files = ("gin/models/minilm_t5.gin", "tests/support/wordpiece_model.gin")
  bindings = [f"--gin.{key}={value!r}" for key, value in settings.items()]
  return [*(f"--gin_file={file}" for file in files), *bindings, f"--tfds_data_dir={data}"]


@pytest.mark.parametrize("name", ["t5dst", "d3st"])
def test_it_is_trained_evaluated_and_tracks(name, encoder, fork_server, small_sample, tmp_path):
  task, data = f"wordpiece_{name}_sgd", small_sample / "data"
  few = {"MIXTURE_OR_TASK_NAME": task, "EVALUATOR_NUM_EXAMPLES": 4}
  settings = {
    **few,
    "TRAIN_STEPS": 2,
    "BATCH_SIZE": 2,
    "EVAL_STEPS": 1,
    "EVAL_PERIOD": 1000,
    "MODEL_DIR": f"{tmp_path}/model",
    "INITIAL_CHECKPOINT_PATH": str(encoder),
    "train_eval/utils.DatasetConfig.mixture_or_task_name": task,
    "infer_eval/utils.DatasetConfig.mixture_or_task_name": task,
  }
  fork_server.run("train", f"gin/sample/{name}.gin", *options(data, **settings), cwd=ROOT)
  metrics = (tmp_path / "model/inference_eval").iterdir()
  assert any("metrics" in path.name for path in metrics)
  check_start(encoder, tmp_path / "model/checkpoint_2")

  frames = [] if name == "t5dst" else [f"--gin_file=gin/formats/{name}.gin"]
  places = {"EVAL_OUTPUT_DIR": f"{tmp_path}/eval", "utils.DatasetConfig.split": "dev"}
  for checkpoint, code in ((tmp_path / "model/checkpoint_2", 0), (encoder, 1)):
    evaluation = options(data, CHECKPOINT_PATH=str(checkpoint), **few, **places)
    err = fork_server.run("eval", "gin/eval.gin", *frames, *evaluation, code=code, cwd=ROOT)
  assert "arrays are missing from the checkpoint" in err  # a decoder: the last one has none
  row = (tmp_path / f"eval/inference_eval/{task}-metrics.jsonl").read_text()
  assert "jga" in json.loads(row)

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


def check_start(encoder, trained):
  """Training began with the encoder: two steps change little, and its embeddings not at all."""
  begun, found = (weights.read_checkpoint(path).arrays for path in (encoder, trained))
  for path, array in begun.items():
    changed = 0 if "_embedder" in path else 1e-3
    np.testing.assert_allclose(found[path], array, rtol=0, atol=changed, err_msg=path)
