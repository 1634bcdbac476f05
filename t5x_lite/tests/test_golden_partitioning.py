"""Logical axes and PartitionSpecs against Google's T5X (golden set A); a sharded step."""

import jax
import pytest
from flax import traverse_util
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec
from run_scripts import EIGHT_DEVICES

from t5x import adafactor, partitioning
from t5x.errors import T5XError
from t5x.train_state import FlaxOptimTrainState

pytestmark = pytest.mark.usefixtures("compiled_as_for_users")


@pytest.fixture(scope="module")
def recorded(golden_set):
  return golden_set.json("logical_axes.json")


def _state(golden, **kwargs):
  optimizer_def = adafactor.Adafactor(
    logical_factor_rules=adafactor.standard_logical_factor_rules(), **kwargs
  )
  shapes = {k: v.shape for k, v in golden.batches["unpacked"].items()}

  def make(rng):
    variables = golden.model().get_initial_variables(rng, shapes)
    return FlaxOptimTrainState.create(optimizer_def, variables)

  return jax.eval_shape(make, jax.random.PRNGKey(0))


def _rules(name):
  activation, parameter = (int(part[-1]) for part in name.split("_"))
  return partitioning.standard_logical_axis_rules(activation, parameter)


def test_rules(recorded):
  for name, rules in recorded["rules"].items():
    assert [list(rule) for rule in _rules(name)] == rules, name


def test_parameters(golden, recorded):
  state = _state(golden)
  axes = traverse_util.flatten_dict(state.as_logical_axes().params, sep="/")
  expected = recorded["models"][golden.name]["params"]
  assert set(axes) == set(expected)
  for name in recorded["rules"]:
    partitioner = partitioning.PjitPartitioner(
      model_parallel_submesh=(1, 1, 1, 1), logical_axis_rules=_rules(name)
    )
    specs = traverse_util.flatten_dict(partitioner.get_mesh_axes(state).params, sep="/")
    for path, entry in expected.items():
      assert list(axes[path]) == entry["logical_axes"], path
      assert list(specs[path]) == entry["partition_spec"][name], (name, path)


def test_shard_shapes(golden, recorded):
  mesh = AbstractMesh((4, 2), ("data", "model"))
  for path, entry in recorded["models"][golden.name]["params"].items():
    spec = PartitionSpec(*entry["partition_spec"]["activation1_parameter1"])
    if entry["shard_shape_on_4x2"] is not None:
      shape = NamedSharding(mesh, spec).shard_shape(tuple(entry["shape"]))
      assert list(shape) == entry["shard_shape_on_4x2"], path


@pytest.mark.parametrize(
  ("setting", "kwargs"),
  [
    ("default", {}),
    ("min_dim_size_to_factor=8", {"min_dim_size_to_factor": 8}),
  ],
)
def test_slots(golden, recorded, setting, kwargs):
  model = recorded["models"][golden.name]
  expected = model["optimizer_state_partition_spec_activation1_parameter1"][setting]
  axes = partitioning.PjitPartitioner(num_partitions=1).get_mesh_axes(_state(golden, **kwargs))
  assert axes.step == PartitionSpec()
  slots = traverse_util.flatten_dict(axes.param_states, sep="/")
  for path, spec in expected.items():
    parameter, slot = path.rsplit("/", 1)
    # Google's T5X says None for a leaf without logical axes; here that is the empty spec.
    assert list(getattr(slots[parameter], slot)) == (spec or []), path


def test_unknown_axis_is_named():
  partitioner = partitioning.PjitPartitioner(num_partitions=1)
  with pytest.raises(T5XError, match="logical axis 'colour'"):
    partitioner.logical_to_mesh(PartitionSpec("colour"))


def test_a_rule_may_name_several_mesh_axes():
  """Regression: a KeyError."""
  partitioner = partitioning.PjitPartitioner(
    model_parallel_submesh=(1, 1, 1, 1),
    logical_axis_rules=[("mine", ("data", "model")), ("mlp", None)],
  )
  axes = PartitionSpec("mine", "mlp")
  assert partitioner.logical_to_mesh(axes) == PartitionSpec(("data", "model"), None)
  partitioner.mesh = AbstractMesh((4, 2), ("data", "model"))
  partitioner._check_divides({"w": axes}, {"w": jax.ShapeDtypeStruct((16, 8), "float32")})
  with pytest.raises(T5XError, match=r"mine 12 over \('data', 'model'\) \(w\)"):
    partitioner._check_divides({"w": axes}, {"w": jax.ShapeDtypeStruct((12, 8), "float32")})


def test_batch_has_to_divide():
  partitioner = partitioning.PjitPartitioner(num_partitions=1)
  assert partitioner.get_data_layout(6) == partitioning.DataLayout(6, 0, 1, True)
  devices = jax.devices()
  with pytest.raises(T5XError, match="divisor"):
    partitioning.default_mesh(model_parallel_submesh=(1, 1, 1, len(devices) + 1))


@pytest.mark.long
def test_sharded_step_on_8_devices(server):
  out = server.run_file("run_sharded_step.py", env=EIGHT_DEVICES)
  assert "sharded equals single" in out
