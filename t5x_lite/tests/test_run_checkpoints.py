"""Checkpoints of Google's T5X (both layouts) load as the arrays they were made from."""

import flax.serialization
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from packed_goldens import assert_equal

from t5x import checkpoints, optimizers, utils
from t5x._checkpoint.read import flatten, open_checkpoint
from t5x._train import loop
from t5x.errors import T5XError


def _expected(golden_set):
  arrays = golden_set.arrays("t5_1_1/adafactor.npz")
  expected = {"state/step": np.int32(3)}
  for key, value in arrays.items():
    if key.startswith("factored8/params_3/"):
      expected["target/" + key.split("/", 2)[2]] = value
    elif key.startswith("factored8/slots_3/"):
      expected["state/param_states/" + key.split("/", 2)[2]] = value
  return expected


@pytest.mark.parametrize("layout", ["ckpt_orbax", "ckpt_legacy"])
def test_golden_checkpoints(layout, golden_set):
  golden = golden_set.root
  expected = _expected(golden_set)
  path = golden / layout / "checkpoint_3"
  assert checkpoints.checkpoint_steps(golden / layout) == [3]
  loaded = flatten(checkpoints.load_checkpoint(path))
  assert loaded.keys() == expected.keys()
  for name, value in expected.items():
    assert_equal(loaded[name], value, err_msg=name)


class _State:
  """The part of a train state that checkpoints use."""

  def __init__(self, tree):
    self._tree = tree
    self.step = tree["state"]["step"]

  def state_dict(self):
    return self._tree

  def restore_state(self, tree):
    return _State(tree)


def _state(step=5, width=4):
  return _State(
    {
      "target": {"a": {"kernel": jnp.full((3, width), 2.5, jnp.bfloat16)}},
      "state": {"step": jnp.int32(step), "param_states": {"a": {"kernel": {"v": jnp.ones(3)}}}},
    }
  )


def test_save_restore_and_keep(tmp_path):
  checkpointer = checkpoints.OrbaxCheckpointManagerInterface(str(tmp_path), keep=2)
  for step in (5, 6, 7):
    assert checkpointer.save(_state(step))
  assert not checkpointer.save(_state(7))
  checkpointer.close()
  assert checkpoints.checkpoint_steps(tmp_path) == [6, 7]
  folder = tmp_path / "checkpoint_7"
  names = ("_CHECKPOINT_METADATA", "commit_success.txt", "state/_METADATA", "state/manifest.ocdbt")
  assert all((folder / name).exists() for name in names)
  loaded = checkpoints.load_checkpoint(str(folder))
  assert loaded["target"]["a"]["kernel"].dtype == np.float32  # saved in float32
  choice = checkpoints.choose_checkpoint(str(tmp_path))
  restored = checkpoints.restore(choice, _state(0))
  assert int(restored.step) == 7
  kernel = restored.state_dict()["target"]["a"]["kernel"]
  assert kernel.dtype == jnp.bfloat16
  np.testing.assert_array_equal(kernel, np.full((3, 4), 2.5))


def test_a_run_goes_on_from_its_own_parameters_as_they_are(tmp_path):
  """RestoreCheckpointConfig.dtype is that of the checkpoint to begin with."""
  checkpointer = checkpoints.OrbaxCheckpointManagerInterface(str(tmp_path))
  checkpointer.save(_state(5))
  checkpointer.close()
  cfg = utils.RestoreCheckpointConfig(path=str(tmp_path), mode="latest", dtype="float16")
  found = [
    checkpoints.restore(checkpoints.choose_checkpoint(folder, cfg), _state(0), restore_cfg=cfg)
    for folder in (str(tmp_path), str(tmp_path / "new"))
  ]
  dtypes = [x.state_dict()["target"]["a"]["kernel"].dtype for x in found]
  assert dtypes == [jnp.bfloat16, jnp.float16]


def test_unfinished_saves_are_not_chosen(tmp_path):
  checkpointer = checkpoints.OrbaxCheckpointManagerInterface(str(tmp_path))
  checkpointer.save(_state(5))
  checkpointer.close()
  (tmp_path / "checkpoint_9.orbax-checkpoint-tmp-1/state").mkdir(parents=True)
  (tmp_path / "checkpoint_8/state").mkdir(parents=True)  # as on an object store
  assert checkpoints.checkpoint_steps(tmp_path) == [5]
  with pytest.raises(T5XError, match="unfinished save"):
    checkpoints.open_checkpoint(str(tmp_path / "checkpoint_8"))


def test_bfloat16_as_integers_is_refused(tmp_path):
  """T5X does, too: checkpoints of before June 2021."""
  spec = {"driver": "zarr", "kvstore": {"driver": "file", "path": "target.w/"}, "dtype": "uint16"}
  leaf = {**spec, "metadata": {"shape": [2], "dtype": "<u2"}}
  content = {"version": 2, "optimizer": {"state": {}, "target": {"w": leaf}}}
  folder = tmp_path / "checkpoint_5"
  folder.mkdir()
  (folder / "checkpoint").write_bytes(flax.serialization.msgpack_serialize(content))
  with pytest.raises(T5XError, match="target/w was stored as integers"):
    open_checkpoint(str(folder))


def test_mismatch_names_everything(tmp_path):
  checkpointer = checkpoints.OrbaxCheckpointManagerInterface(str(tmp_path))
  checkpointer.save(_state(5))
  checkpointer.close()
  other = _state(0, width=6)
  other.state_dict()["target"]["b"] = jnp.zeros(2)
  with pytest.raises(T5XError) as e:
    checkpoints.restore(checkpoints.choose_checkpoint(str(tmp_path)), other)
  text = str(e.value)
  assert "target/a/kernel: checkpoint (3, 4), model (3, 6)" in text
  assert "1 arrays are missing from the checkpoint:" in text
  assert "target/b" in text
  assert "the latest checkpoint in MODEL_DIR takes precedence over INITIAL_CHECKPOINT_PATH" in text


def test_assignment_map(tmp_path, capsys):
  checkpointer = checkpoints.OrbaxCheckpointManagerInterface(str(tmp_path))
  checkpointer.save(_state(5))
  checkpointer.close()

  class Config:
    path, mode, dtype, fallback_to_scratch = str(tmp_path), "latest", None, False
    strict, state_transformation_fns = True, ()
    assignment_map = (
      (r"target/(new|twin)/(.*)", r"target/a/\2"),
      (r"state/param_states.*", None),
    )

  wanted = _State(
    {
      "target": {name: {"kernel": jnp.zeros((3, 4))} for name in ("new", "twin")},
      "state": {"step": jnp.int32(0), "param_states": {"new": {"v": jnp.zeros(7)}}},
    }
  )
  choice = checkpoints.choose_checkpoint(None, Config)
  restored = checkpoints.restore(choice, wanted, restore_cfg=Config).state_dict()
  kernels = [restored["target"][name]["kernel"] for name in ("new", "twin")]
  for kernel in kernels:
    np.testing.assert_array_equal(kernel, np.full((3, 4), 2.5))
  # A training step donates its state: two names must not share a buffer.
  jax.block_until_ready(jax.jit(lambda xs: [x + 1 for x in xs], donate_argnums=0)(kernels))
  assert restored["state"]["param_states"]["new"]["v"].shape == (7,)
  assert int(restored["state"]["step"]) == 5
  # As in T5X, a wrong replacement is an error, also where missing arrays may start from scratch.
  Config.fallback_to_scratch = True
  Config.assignment_map = (("target/twin/(.*)", r"target/a/\1"), (".*/v", None))
  restored = checkpoints.restore(choice, wanted, restore_cfg=Config).state_dict()
  assert not restored["target"]["new"]["kernel"].any()
  said = capsys.readouterr().err
  assert f"1 arrays that {choice.path} lacks keep their initial values: target/new/kernel\n" in said
  Config.assignment_map = (("target/new/(.*)", r"target/typo/\1"),)
  with pytest.raises(T5XError, match=r"are missing from the checkpoint:\n +target/new/ker"):
    checkpoints.restore(choice, wanted, restore_cfg=Config)


def test_optax_states_without_arrays_survive_a_checkpoint():
  """clip_by_global_norm has an empty state, for which no array is on disk."""
  optimizer_def = optimizers.chain([optax.clip_by_global_norm(1.0), optax.scale_by_adam()])
  optimizer = optimizer_def.create({"w": jnp.ones(3)}).apply_gradient({"w": jnp.ones(3)}, None)
  on_disk = optimizer.state_dict()
  assert set(on_disk["state"]["param_states"]) == {"1"}
  of_old_times = jax.tree.map(lambda x: x, on_disk)
  of_old_times["state"]["param_states"]["0"] = {}  # formerly in the dictionary
  for tree in (on_disk, of_old_times):
    restored = optimizer.restore_state(tree)
    assert jax.tree.structure(restored) == jax.tree.structure(optimizer)
    jax.tree.map(np.testing.assert_array_equal, restored, optimizer)


@pytest.mark.parametrize(("step", "is_noted"), [(0, False), (5, True)])
def test_an_optimizer_that_is_new_at_a_later_step_is_noted(tmp_path, capsys, step, is_noted):
  """Its schedule begins anew, whatever the logged learning rate says."""
  optimizer_def = optimizers.chain([optax.scale_by_schedule(optax.linear_schedule(0, 1, 10))])
  optimizer = optimizer_def.create({"w": jnp.ones(3)}).state_dict()
  trained = _State({"target": optimizer["target"], "state": {"step": jnp.int32(step)}})
  checkpointer = checkpoints.OrbaxCheckpointManagerInterface(str(tmp_path))
  checkpointer.save(trained)
  checkpointer.close()
  cfg = utils.RestoreCheckpointConfig(path=str(tmp_path), mode="latest", fallback_to_scratch=True)
  choice = checkpoints.choose_checkpoint(None, cfg)
  restored = checkpoints.restore(choice, _State(optimizer), restore_cfg=cfg)
  assert int(restored.step) == step
  said = capsys.readouterr().err
  assert "param_states/0/count" in said
  assert (f"counts from 0, not from {step}" in said) == is_noted


def test_states_are_changed_before_they_are_saved_also_by_functions_written_for_t5x():
  """Those of T5X take and return a second tree, which has the same structure."""

  def half(tree, infos):
    return jax.tree.map(lambda x: x / 2, tree)

  def without_b(tree, infos):
    kept = [{k: v for k, v in t.items() if k != "b"} for t in (tree, infos)]
    return tuple(kept)

  change = loop._chain([half, without_b, half])
  assert change({"a": 8.0, "b": 1.0}) == {"a": 2.0}
  assert loop._chain([]) is None
