"""Pinned checkpoints, and detecting a checkpoint's type."""

import pytest
from flax import serialization

from t5x import checkpoint_utils
from t5x.checkpoint_utils import CheckpointTypes


@pytest.fixture
def folder(tmp_path):
  path = tmp_path / "checkpoint_1"
  path.mkdir()
  (path / "checkpoint").write_bytes(serialization.msgpack_serialize({"version": 3}))
  (path / "train_ds-000-of-001").write_text("")
  return path


def test_pins(folder):
  assert not checkpoint_utils.is_pinned_checkpoint(folder)
  checkpoint_utils.pin_checkpoint(folder, "the best one")
  assert checkpoint_utils.is_pinned_checkpoint(folder)
  assert (folder / "PINNED").read_text() == "the best one"
  assert checkpoint_utils.pinned_checkpoint_filepath(str(folder)) == f"{folder}/PINNED"
  checkpoint_utils.unpin_checkpoint(folder)
  assert not checkpoint_utils.is_pinned_checkpoint(folder)
  checkpoint_utils.unpin_checkpoint(folder.parent / "missing")


@pytest.mark.parametrize("pinned", [True, False])
def test_what_is_pinned_stays(folder, pinned, capsys):
  if pinned:
    checkpoint_utils.pin_checkpoint(folder)
  checkpoint_utils.remove_dataset_checkpoint(folder, "train_ds")
  assert (folder / "train_ds-000-of-001").exists() == pinned
  assert (folder / "checkpoint").exists()
  checkpoint_utils.remove_checkpoint_dir(folder)
  assert folder.exists() == pinned
  assert ("is pinned" in capsys.readouterr().err) == pinned
  assert [p.name for p in folder.parent.iterdir()] == (["checkpoint_1"] if pinned else [])


def test_what_wrote_a_checkpoint(folder, capsys):
  def detect(path, expected=None):
    return checkpoint_utils.detect_checkpoint_type(path, expected)

  assert detect(folder / "checkpoint", CheckpointTypes.T5X) is CheckpointTypes.T5X
  assert capsys.readouterr().err == ""
  (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-0"')
  assert detect(folder / "checkpoint", CheckpointTypes.ORBAX) is CheckpointTypes.T5X_TF
  assert "was written as T5X_TF, not as ORBAX" in capsys.readouterr().err
  orbax = folder.parent / "checkpoint_2"
  (orbax / "state").mkdir(parents=True)
  (orbax / "commit_success.txt").write_text("")
  assert detect(orbax / "checkpoint") is CheckpointTypes.ORBAX
  (orbax / "state" / "_METADATA").write_text("{}")
  assert detect(orbax / "state" / "checkpoint") is CheckpointTypes.ORBAX
