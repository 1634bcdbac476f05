"""Data, model and 2D parallel training on 8 devices against one device, through `t5x.train`."""

import json
import types

import jax
import numpy as np
import pytest
from events import scalars
from run_scripts import EIGHT_DEVICES

from t5x import partitioning
from t5x._process.devices import find_devices
from t5x.errors import T5XError

STEPS = 6
LAYOUTS = {
  "data": ["--gin.SUBMESH=(1, 1, 1, 1)"],
  "model": ["--gin.SUBMESH=(1, 1, 1, 8)"],
  # 4 x 2; parameters and activations are divided along both.
  "2d": ["--gin.SUBMESH=(1, 1, 1, 2)", "--gin.DIMS=2"],
}


MESHES = {"one": "1 data x 1 model", "data": "8 data x 1 model", "model": "1 data x 8 model"}


@pytest.fixture(scope="module")
def runs(server, tmp_path_factory):
  """Returns {layout: MODEL_DIR}; 'one' is the run on one device."""
  root = tmp_path_factory.mktemp("devices")
  folders = {name: root / name for name in ["one", *LAYOUTS]}
  for name, folder in folders.items():
    err = server.run(
      "train",
      "run_devices.gin",
      f"--gin.MODEL_DIR='{folder}'",
      f"--gin.TRAIN_STEPS={STEPS}",
      *LAYOUTS.get(name, ["--gin.SUBMESH=(1, 1, 1, 1)"]),
      env=EIGHT_DEVICES if name in LAYOUTS else None,
    )
    assert err.startswith(f"t5x: devices: {8 if name in LAYOUTS else 1} x cpu\n")
    what = "float32 activations; 16 rows a step (inputs 48, targets 8)\n"
    assert f"t5x: mesh {MESHES.get(name, '4 data x 2 model')}; {what}" in err
  return folders


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS)
def test_losses_are_those_of_one_device(runs, layout):
  for tag in ("loss", "z_loss"):
    want, got = (scalars(runs[name] / "train", tag) for name in ("one", layout))
    assert want.keys() == got.keys() == set(range(1, STEPS + 1))
    for step, values in want.items():
      assert got[step] == pytest.approx(values, rel=1e-5), (step, tag)


@pytest.mark.long
def test_each_device_draws_its_share_and_the_embedding_is_summed_once(server):
  """2 of 16 rows per device. T5X's devices draw all 16, and sum the embedding once per use."""
  found = json.loads(server.run_file("run_partitioned.py", env=EIGHT_DEVICES))
  # Residual stream, MLP, attention, and the end of the encoder, where each position is drawn.
  assert sorted(found["drawn"]) == [[2, 1, 40], [2, 1, 48], [2, 2, 1, 24], [2, 24, 40]]
  assert found["different_partitions"] == 8
  assert abs(found["kept"] - 0.5) < 4 * 0.5 / (16 * 24) ** 0.5  # four standard deviations
  assert found["sums_of_the_embedding"] == 1


# ---------------------------------------------------------------------------- what does not fit


def _refused(server, folder, *args, env=EIGHT_DEVICES):
  args = (f"--gin.MODEL_DIR='{folder}'", f"--gin.TRAIN_STEPS={STEPS}", *args)
  err = server.run("train", "run_devices.gin", *args, env=env, code=1)
  assert "Traceback" not in err
  assert "initialised" not in err  # nothing was compiled for it
  return err.partition("t5x: error: ")[2]


def test_heads_that_do_not_divide(server, tmp_path):
  """6 heads do not divide by 4; their joint width 96, the MLP's 64 and the vocabulary's 384 do."""
  heads = "--gin.network.T5Config.num_heads=6"
  error = _refused(server, tmp_path, "--gin.SUBMESH=(1, 1, 1, 4)", heads)
  assert "Parameters do not divide evenly over the mesh of 2 data x 4 model." in error
  assert "found:     heads 6 over 'model' (decoder/relpos_bias/rel_embedding)\n" in error
  assert "available: model partitions that divide all: 1, 2\n" in error
  assert "set partitioning.PjitPartitioner.model_parallel_submesh = (1, 1, 1, 2)" in error


def test_batch_that_does_not_divide(server, tmp_path):
  error = _refused(server, tmp_path, "--gin.SUBMESH=(1, 1, 1, 1)", "--gin.BATCH_SIZE=6")
  assert "batch size 6 on 8 data partitions (8 devices)" in error
  assert "available: batch sizes 8; model partitions for 6: 4, 8\n" in error
  assert "BATCH_SIZE = 8, or partitioning.PjitPartitioner.model_parallel_submesh" in error


def test_microbatches_that_do_not_divide(server, tmp_path):
  args = ("--gin.SUBMESH=(1, 1, 1, 1)", "--gin.trainer.Trainer.num_microbatches=4")
  args = (f"--gin.MODEL_DIR='{tmp_path}'", f"--gin.TRAIN_STEPS={STEPS}", *args)
  err = server.run("train", "run_devices.gin", *args, env=EIGHT_DEVICES, code=1)
  assert "batch size 16 in 4 microbatches on 8 data partitions" in err
  assert "available: microbatches 1, 2\n" in err
  assert "compiled the training step" not in err


@pytest.mark.parametrize(
  ("platform", "expected"),
  [
    ("rocm", "an AMD GPU, and AMD's JAX plugin for it"),
    ("cpuu", "cpu, tpu, cuda, gpu, rocm"),
  ],
)
def test_no_device_of_the_kind_asked_for(server, tmp_path, platform, expected):
  """No machine that runs these tests has an AMD GPU with JAX's plugin."""
  args = ("--gin.SUBMESH=(1, 1, 1, 1)", f"--jax_platforms={platform}")
  error = _refused(server, tmp_path, *args, env=None)
  found = f"No device of the requested kind is available.\n  found:     {platform}: "
  assert error.startswith(found)
  assert f"  expected:  {expected}\n  fix:       " in error
  assert not list(tmp_path.iterdir())


def test_no_nvidia_gpu(monkeypatch):
  """JAX 0.10 raises an empty AssertionError in this case."""

  def devices(backend=None):
    raise AssertionError

  monkeypatch.setattr(jax, "devices", devices)
  with pytest.raises(T5XError) as e:
    find_devices("cuda")
  assert "found:     cuda: " in e.value.text
  assert "pip install 'jax[cuda" in e.value.text


class _Device:
  def __init__(self, i, platform):
    self.id, self.process_index, self.platform = i, 0, platform


@pytest.mark.parametrize(
  ("batch", "num_partitions", "available", "fix"),
  [
    (16, 1, "32; model partitions for 16: 2, 4, 8, 16, 32", "BATCH_SIZE = 32, or"),
    (30, 2, "16, 32; model partitions for 30: 16, 32", "BATCH_SIZE = 32, or"),
    (33, 1, "32, 64; model partitions for 33: 32", "BATCH_SIZE = 32, or"),
  ],
)
def test_batches_named_for_32_tpu_devices(batch, num_partitions, available, fix):
  """By hand: a batch of b divides over 32 devices if b is a multiple of 32 / partitions."""
  partitioner = partitioning.PjitPartitioner(num_partitions=num_partitions)
  grid = np.array([_Device(i, "tpu") for i in range(32)], object)
  grid = grid.reshape(32 // num_partitions, num_partitions)
  partitioner.__dict__["mesh"] = jax.sharding.Mesh(grid, ("data", "model"))
  with pytest.raises(T5XError) as e:
    partitioner.get_data_layout(batch)
  assert f"available: batch sizes {available}\n" in e.value.text
  count = available.partition(": ")[2].split(",")[0]
  assert f"set {fix} partitioning.PjitPartitioner.num_partitions = {count}" in e.value.text


def test_compiler_options_are_for_a_v5e_and_yield_to_the_users(monkeypatch):
  def options(kind):
    partitioner = partitioning.PjitPartitioner(num_partitions=1)
    device = types.SimpleNamespace(device_kind=kind)
    partitioner.__dict__["mesh"] = types.SimpleNamespace(devices=np.array([[device]]))
    return partitioner.training_options()

  assert options("TPU v3") == {}
  assert options("cpu") == {}
  assert options("TPU v5 lite") == {"xla_tpu_scoped_vmem_limit_kib": "32768"}
  monkeypatch.setenv("LIBTPU_INIT_ARGS", "--xla_tpu_scoped_vmem_limit_kib=65536")
  assert options("TPU v5 lite") == {}
