"""From a checkpoint on MiniLM to a packed tracker, which answers as the checkpoint does."""

import json

import numpy as np
import pytest
from commands import assert_four_parts
from minilm import minilm
from places import ROOT
from run_scripts import NO_EVAL

from sgdx_t5x.cli import main
from sgdx_t5x.spandst import packed

pytestmark = pytest.mark.long
SHORT = "{'inputs': 128, 'segments': 128, 'slots': 24, 'slot_context': 24, 'values': 64,"
SHORT += " 'value_slots': 64, 'memory': 12, 'intents': 8, 'intent_context': 8, 'targets': 128}"


@pytest.fixture(scope="module")
def encoder():
  """The environment that names the encoder."""
  return {"SGDX_ENCODER": str(minilm())}


@pytest.fixture(scope="module")
def trained(tmp_path_factory, fork_server, small_sample, encoder):
  """MODEL_DIR of a SpanDST after one and two steps on MiniLM; what it learned does not matter."""
  folder = tmp_path_factory.mktemp("packed")
  assert main(["weights", "import", "--hf", str(minilm()), "--out", str(folder / "start")]) == 0
  settings = {
    "TRAIN_STEPS": 2,
    "utils.SaveCheckpointConfig.period": 1,
    "utils.SaveCheckpointConfig.keep": 2,
    "BATCH_SIZE": 1,
    "PACKED_LENGTHS": SHORT,
    "INITIAL_CHECKPOINT_PATH": f"'{folder}/start/checkpoint_0'",
    "MODEL_DIR": f"'{folder}/model'",
    "MIXTURE_OR_TASK_MODULE": "'tests.support.minilm_tasks'",
    "MIXTURE_OR_TASK_NAME": "'minilm_sample'",
  }
  options = [f"--gin.{name}={value}" for name, value in settings.items()]
  options += [*NO_EVAL, f"--tfds_data_dir={small_sample}/data"]
  fork_server.run("train", "gin/spandst.gin", *options, env=encoder, cwd=ROOT)
  # The checkpoint of a user, who trains on all of SGD, names a task that the package registers.
  config = folder / "model/config.gin"
  text = config.read_text().replace("'minilm_sample'", "'plain_spandst_sgd'")
  config.write_text(text.replace("'tests.support.minilm_tasks'", "None"))
  return folder / "model"


def test_a_packed_tracker_answers_as_its_checkpoint(
  trained, small_sample, tmp_path, encoder, monkeypatch
):
  monkeypatch.setenv(*next(iter(encoder.items())))
  out = tmp_path / "tracker"
  assert main(["weights", "pack", str(trained), "--out", str(out), "--bits", "16"]) == 0
  states = {}
  for name, tracker in (("checkpoint", trained), ("packed", out)):
    options = ["--corpus", str(small_sample / "sample"), "--split", "dev"]
    assert main(["track", str(tracker), *options, "--out", str(tmp_path / name)]) == 0
    (file,) = (tmp_path / name / "original").iterdir()
    states[name] = [
      frame["state"]
      for dialogue in json.loads(file.read_bytes())
      for turn in dialogue["turns"]
      for frame in turn["frames"]
      if turn["speaker"] == "USER"
    ]
  assert len(states["packed"]) == len(states["checkpoint"]) > 20
  # Weights are rounded, so that close answers of an untrained network may change places.
  same = [a == b for a, b in zip(states["packed"], states["checkpoint"], strict=True)]
  assert sum(same) >= 0.9 * len(same)


def test_the_mean_of_checkpoints(trained, tmp_path, encoder, monkeypatch):
  monkeypatch.setenv(*next(iter(encoder.items())))
  one, two = (str(trained / f"checkpoint_{step}") for step in (1, 2))
  arrays = []
  for name, checkpoints in (("one", [one]), ("two", [two]), ("both", [one, two])):
    out = tmp_path / name
    assert main(["weights", "pack", *checkpoints, "--out", str(out), "--bits", "16"]) == 0
    config, own = packed.read(out)
    arrays.append(own)
  assert config.step == 2
  changed = 0
  for name, mean in arrays[2].items():
    np.testing.assert_allclose(mean, (arrays[0][name] + arrays[1][name]) / 2, atol=1e-3, rtol=1e-3)
    changed += not np.array_equal(arrays[0][name], arrays[1][name])
  assert changed > 100


def test_checkpoints_with_other_settings_have_no_mean(
  trained, tmp_path, encoder, monkeypatch, capsys
):
  monkeypatch.setenv(*next(iter(encoder.items())))
  other = tmp_path / "other"
  other.mkdir()
  (other / "checkpoint_2").symlink_to(trained / "checkpoint_2")
  config = (trained / "config.gin").read_text()
  (other / "config.gin").write_text(config.replace("'plain_spandst_sgd'", "'spandst_sgd'"))
  out = tmp_path / "packed"
  assert main(["weights", "pack", str(other), str(trained), "--out", str(out)]) == 1
  assert_four_parts(capsys.readouterr().err, f"{other}/checkpoint_2: not the tracker of")
  assert not out.exists()


def test_another_encoder_is_not_packed(trained, tmp_path, capsys, monkeypatch):
  wrong = tmp_path / "weights"
  assert main(["weights", "pack", str(tmp_path), "--out", str(wrong)]) == 1
  assert_four_parts(capsys.readouterr().err, "no checkpoint")
  assert not wrong.exists()
