"""The legacy layout we write is, file by file, the one Google's T5X wrote (shared/golden/A)."""

import json
import pathlib
import shutil

import jax
import jax.numpy as jnp
import msgpack
import numpy as np
import pytest
from goldens import GoldenModel

from t5x import adafactor, checkpoints, partitioning, train_state, utils
from t5x._checkpoint.read import flatten
from t5x.errors import T5XError


@pytest.fixture(scope="module")
def written(tmp_path_factory, golden_set):
  """The golden train state, restored from Google's legacy checkpoint and saved again."""
  golden = golden_set.root
  optimizer = adafactor.Adafactor(
    min_dim_size_to_factor=8, logical_factor_rules=adafactor.standard_logical_factor_rules()
  )
  model = GoldenModel(golden, "t5_1_1").model(optimizer_def=optimizer)
  initializer = utils.TrainStateInitializer(
    optimizer,
    model.get_initial_variables,
    {"encoder_input_tokens": (6, 13), "decoder_input_tokens": (6, 14)},
    partitioning.PjitPartitioner(num_partitions=1),
  )
  source = golden / "ckpt_legacy" / "checkpoint_3"
  choice = checkpoints.CheckpointChoice(str(source), "a test")
  state = initializer.from_choice(choice)
  assert isinstance(state, train_state.FlaxOptimTrainState)
  folder = tmp_path_factory.mktemp("legacy")
  checkpointer = checkpoints.Checkpointer(str(folder))
  assert checkpointer.save(state)
  checkpointer.close()
  return source, folder / "checkpoint_3", initializer


def _files(folder: pathlib.Path) -> set[str]:
  return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_same_files_and_array_metadata(written):
  source, folder, _ = written
  assert _files(folder) == _files(source)
  metadata = [name for name in _files(source) if name.endswith(".zarray")]
  assert len(metadata) > 60
  for name in metadata:
    assert json.loads((folder / name).read_text()) == json.loads((source / name).read_text()), name


def test_same_index(written):
  """Specs, inline arrays and their msgpack types are equal byte by byte."""

  def index(folder):
    content = msgpack.unpackb((folder / "checkpoint").read_bytes(), strict_map_key=False)
    assert set(content) == {"version", "optimizer"}
    assert content["version"] == 3
    return _flat(content["optimizer"])

  source, folder, _ = written
  ours, theirs = index(folder), index(source)
  assert ours.keys() == theirs.keys()
  assert {k: v for k, v in ours.items() if v != theirs[k]} == {}


def _flat(tree, prefix=""):
  flat = {}
  for key, value in tree.items():
    if isinstance(value, dict) and "driver" not in value:
      flat.update(_flat(value, f"{prefix}{key}/"))
    else:
      flat[prefix + key] = value
  return flat


def test_restores_bitwise(written):
  source, folder, initializer = written
  ours = flatten(checkpoints.load_checkpoint(str(folder)))
  theirs = flatten(checkpoints.load_checkpoint(str(source)))
  assert ours.keys() == theirs.keys()
  jax.tree.map(np.testing.assert_array_equal, ours, theirs)
  choice = checkpoints.choose_checkpoint(str(folder.parent))
  restored = flatten(initializer.from_choice(choice).state_dict())
  assert restored.keys() == theirs.keys()
  jax.tree.map(np.testing.assert_array_equal, restored, theirs)


class _State:
  """The part of a train state that checkpoints use."""

  def __init__(self, step, value):
    self.step = jnp.int32(step)
    self.value = value

  def state_dict(self):
    return {"target": {"w": self.value}, "state": {"step": self.step}}

  def restore_state(self, tree):
    return _State(tree["state"]["step"], tree["target"]["w"])


def test_bfloat16_and_keep(tmp_path):
  checkpointer = checkpoints.Checkpointer(str(tmp_path), keep=2, save_dtype="bfloat16")
  for step in (1, 2, 3):
    checkpointer.save(_State(step, jnp.arange(6.0).reshape(2, 3) + step))
  (tmp_path / "checkpoint_2" / "PINNED").touch()
  checkpointer.save(_State(4, jnp.ones((2, 3))))
  checkpointer.close()
  assert checkpoints.checkpoint_steps(tmp_path) == [2, 3, 4]  # 2 is pinned, 3 and 4 are kept
  assert [p.name for p in tmp_path.glob("*tmp*")] == []
  zarray = json.loads((tmp_path / "checkpoint_3/target.w/.zarray").read_text())
  assert zarray["dtype"] == "bfloat16"
  loaded = checkpoints.load_checkpoint(str(tmp_path / "checkpoint_3"))
  assert loaded["target"]["w"].dtype == jnp.bfloat16
  np.testing.assert_array_equal(loaded["target"]["w"].astype(np.float32), [[3, 4, 5], [6, 7, 8]])
  restored = checkpoints.restore(
    checkpoints.choose_checkpoint(str(tmp_path)), _State(0, jnp.zeros((2, 3)))
  )
  np.testing.assert_array_equal(restored.value, np.ones((2, 3)))
  assert restored.value.dtype == jnp.float32


def test_orbax_layout_is_googles(written, golden_set, tmp_path):
  """The tree that Orbax's metadata describes is the one Google's T5X wrote, key by key."""
  state = written[2].from_choice(checkpoints.CheckpointChoice(str(written[0]), "a test"))
  checkpointer = checkpoints.OrbaxCheckpointManagerInterface(str(tmp_path))
  checkpointer.save(state)
  checkpointer.close()
  source, folder = golden_set.root / "ckpt_orbax/checkpoint_3", tmp_path / "checkpoint_3"
  ours, theirs = (json.loads((p / "state/_METADATA").read_text()) for p in (folder, source))
  assert ours == theirs
  dataset = {name for name in _files(source) if name.startswith("dataset/")}
  data = ("state/d/", "state/ocdbt.process_0/")  # OCDBT chooses these names
  names = [{f for f in _files(p) if not f.startswith(data)} for p in (folder, source)]
  assert names[0] == names[1] - dataset


@pytest.mark.parametrize("sharded", [False, True])
def test_a_missing_chunk_is_said(written, tmp_path, sharded):
  """Regression: TensorStore reads it as zeros."""
  source, _, initializer = written
  folder = shutil.copytree(source, tmp_path / source.name)
  next(folder.glob("target.*/0.0")).unlink()
  choice = checkpoints.CheckpointChoice(str(folder), "a test")
  with pytest.raises(T5XError, match=r"(?s)cannot be read.*missing"):
    initializer.from_choice(choice) if sharded else checkpoints.load_checkpoint(choice.path)
