"""The span tracker in T5X's scripts, on made-up frames; its encoder's weights make a round trip."""

import json
import re

import numpy as np
import pytest
from commands import sgdx
from places import FIXTURES, SUPPORT

from sgdx_t5x import weights
from sgdx_t5x.spandst import answers

pytestmark = pytest.mark.long
STEPS = 200


@pytest.fixture(scope="module")
def run(fork_server):
  """Runs t5x.SCRIPT to its end and returns what it wrote."""

  def to_its_end(script, gin, code=0, **bindings):
    flags = [f"--gin.{name}={value!r}" for name, value in bindings.items()]
    flags.append(f"--gin_search_paths={SUPPORT}")
    return fork_server.run(script, gin, *flags, code=code, cwd=SUPPORT)

  return to_its_end


@pytest.fixture(scope="module")
def trained(tmp_path_factory, run):
  """The folder of a run from random weights, and what it printed."""
  folder = tmp_path_factory.mktemp("spans")
  bound = {"MODEL_DIR": str(folder / "run"), "TRAIN_STEPS": STEPS, "EVAL_PERIOD": STEPS}
  return folder, run("train", "span_train.gin", **bound)


def test_training_learns_and_shows_its_loss(trained):
  _, err = trained
  losses = [float(x) for x in re.findall(r"training_eval made_up_spans: loss ([\d.]+)", err)]
  assert losses
  assert losses[-1] < 5.0  # 6.5 at the start
  assert "loss nan" not in err
  assert re.search(r"step \d+/200 .* loss [\d.]+", err)


def test_evaluation_and_inference(trained, run):
  folder, _ = trained
  checkpoint = str(folder / f"run/checkpoint_{STEPS}")
  places = {"CHECKPOINT_PATH": checkpoint, "EVAL_OUTPUT_DIR": str(folder / "eval")}
  err = run("eval", "span_eval.gin", **places)
  assert re.search(r"made_up_spans: .*slots 0\.\d+", err)
  places = {"CHECKPOINT_PATH": checkpoint, "INFER_OUTPUT_DIR": str(folder / "answers")}
  run("infer", "span_infer.gin", **places)
  (file,) = (folder / "answers").glob("*.jsonl-00000-of-00001")
  rows = [json.loads(line) for line in file.read_text().splitlines()]
  assert len(rows) == 60
  found = answers.read_answer(rows[0]["prediction"])
  assert len(found.slots) == 4
  assert found.slots[3].kind == answers.KEEP
  assert found.slots[3].keep == 1.0


def test_weights_of_the_encoder_there_and_back_start_another_run(trained, run, capsys):
  folder, _ = trained
  config = json.loads((FIXTURES / "hf_bert/bert/config.json").read_text())
  sizes = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64}
  config |= {**sizes, "max_position_embeddings": 128}
  (folder / "config.json").write_text(json.dumps(config))
  checkpoint, hf = folder / f"run/checkpoint_{STEPS}", folder / "hf"
  options = ["--checkpoint", checkpoint, "--config", folder / "config.json", "--out", hf]
  assert sgdx("weights", "export", *options) == 0
  assert "arrays of heads" in capsys.readouterr().out
  assert sgdx("weights", "import", "--hf", hf, "--out", folder / "start") == 0
  start = str(folder / "start/checkpoint_0")
  bound = {"MODEL_DIR": str(folder / "again"), "TRAIN_STEPS": 1, "INITIAL_CHECKPOINT_PATH": start}
  err = run("train", "span_train.gin", **bound)
  assert f"restored {start}" in err
  begun = weights.read_checkpoint(folder / "again/checkpoint_0")
  expected = weights.read_huggingface(hf)
  for name, array in expected.arrays.items():
    np.testing.assert_array_equal(begun.arrays[name], array)
  # An encoder of another size is refused, and the arrays that differ are named.
  bound = {**bound, "MODEL_DIR": str(folder / "other"), "encoder.BertConfig.num_layers": 3}
  err = run("train", "span_train.gin", code=1, **bound)
  for words in ("encoder/layers_2/key/bias", "missing", "INITIAL_CHECKPOINT_PATH"):
    assert words in err
