"""Data, model and 2D parallel training on 8 devices against one device, through `t5x.train`."""

import pytest
from events import scalars
from fork_server import ForkServer

STEPS = 6
LAYOUTS = {
  "data": ["--gin.SUBMESH=(1, 1, 1, 1)"],
  "model": ["--gin.SUBMESH=(1, 1, 1, 8)"],
  # 4 x 2; parameters and activations are divided along both.
  "2d": ["--gin.SUBMESH=(1, 1, 1, 2)", "--gin.DIMS=2"],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
  """Returns ({layout: MODEL_DIR}); 'one' is one device."""
  root = tmp_path_factory.mktemp("devices")
  folders = {name: root / name for name in ["one", *LAYOUTS]}
  eight = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
  with ForkServer(tmp_path_factory.getbasetemp() / "jax_cache") as server:
    for name, folder in folders.items():
      err = server.run(
        "train",
        "run_devices.gin",
        f"--gin.MODEL_DIR='{folder}'",
        f"--gin.TRAIN_STEPS={STEPS}",
        *LAYOUTS.get(name, ["--gin.SUBMESH=(1, 1, 1, 1)"]),
        env=eight if name in LAYOUTS else None,
      )
      assert f"parameters on {8 if name in LAYOUTS else 1} x cpu" in err
  return folders


@pytest.mark.parametrize("layout", LAYOUTS)
def test_losses_are_those_of_one_device(runs, layout):
  for tag in ("loss", "z_loss"):
    want, got = (scalars(runs[name] / "train", tag) for name in ("one", layout))
    assert want.keys() == got.keys() == set(range(1, STEPS + 1))
    for step, values in want.items():
      assert got[step] == pytest.approx(values, rel=1e-5), (step, tag)
