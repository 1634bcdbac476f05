"""Forward pass, scores and gradients against Google's T5X (golden set A)."""

import functools

import jax
import numpy as np
import pytest
from flax import traverse_util
from packed_goldens import assert_close

from t5x.errors import T5XError
from t5x.examples.t5 import blocked_attention, layers

pytestmark = pytest.mark.usefixtures("compiled_as_for_users")


@pytest.mark.parametrize("batch_name", ["unpacked", "packed"])
def test_encoder_logits_and_scores(golden, batch_name):
  model, batch = golden.model(), golden.batches[batch_name]

  @jax.jit
  def run(params, batch):
    encoded = golden.module.apply(
      {"params": params},
      batch["encoder_input_tokens"],
      batch.get("encoder_segment_ids"),
      enable_dropout=False,
      method="encode",
    )
    return {
      "encoder_output": encoded,
      "logits": model._compute_logits(params, batch),
      "score": model.score_batch(params, batch),
    }

  for name, value in run(golden.params, batch).items():
    np.testing.assert_allclose(
      value, golden.expected[f"{name}/{batch_name}"], rtol=0, atol=golden.atol(name), err_msg=name
    )


def test_gradients(golden):
  grads = golden.packed_grads(golden.params)
  for path, grad in traverse_util.flatten_dict(grads, sep="/").items():
    assert_close(
      grad, golden.expected[f"grads/{path}"], rtol=0, atol=golden.atol("grads"), err_msg=path
    )


@pytest.mark.long
@pytest.mark.parametrize("how", ["on a TPU", "with attention in blocks"])
def test_gradients_computed_in_other_ways(golden, monkeypatch, how):
  """Some sums, lookups and products are computed differently there; the numbers are the same."""
  if how == "on a TPU":
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
  else:
    monkeypatch.setattr(blocked_attention, "_WHOLE", 0)
  grads = type(golden).packed_grads.func(golden)(golden.params)  # traced anew
  for path, grad in traverse_util.flatten_dict(grads, sep="/").items():
    assert_close(
      grad, golden.expected[f"grads/{path}"], rtol=0, atol=golden.atol("grads"), err_msg=path
    )


def test_parameter_tree(golden):
  shapes = {name: golden.batches["unpacked"][name].shape for name in golden.batches["unpacked"]}
  init = functools.partial(golden.model().get_initial_variables, input_shapes=shapes)
  params = jax.eval_shape(init, jax.random.PRNGKey(0))["params"]
  flat = traverse_util.flatten_dict(dict(params.unfreeze()), sep="/")
  assert {k: v.shape for k, v in flat.items()} == {
    k: v.shape for k, v in golden.flat_params.items()
  }


def test_relative_position_buckets(golden_set):
  arrays = golden_set.arrays("relpos.npz")
  position = arrays.pop("relative_position")
  for key, expected in arrays.items():
    setting, direction = key.split("/")
    _, num_buckets, max_distance = setting.split("_")
    buckets = layers.relative_position_bucket(
      position, direction == "bidirectional", int(num_buckets), int(max_distance)
    )
    np.testing.assert_array_equal(buckets, expected, err_msg=key)


@pytest.mark.parametrize(
  ("num_buckets", "max_distance", "bidirectional", "position", "bucket"),
  [  # as T5X cc342d4 computes them: offsets on an edge, where its rounding decides
    (64, 50, False, -40, 48),
    (128, 100, False, -80, 96),
    (256, 100, True, 80, 224),
    (32, 18, True, 12, 28),
    (32, 81, False, -24, 20),
    (32, 289, False, -68, 23),
  ],
)
def test_offsets_on_the_edge_of_a_bucket(
  num_buckets, max_distance, bidirectional, position, bucket
):
  offsets = np.array([position])
  found = layers.relative_position_bucket(offsets, bidirectional, num_buckets, max_distance)
  assert found[0] == bucket


@pytest.mark.parametrize(("num_buckets", "max_distance"), [(16, 8), (1, 8), (32, 2)])
def test_buckets_that_leave_none_to_share(num_buckets, max_distance):
  with pytest.raises(T5XError, match=f"{num_buckets} buckets and a maximum distance of"):
    layers.relative_position_bucket(np.arange(3), False, num_buckets, max_distance)


@pytest.mark.parametrize(
  "lengths",
  [
    (1, 5),
    (7, 3),
    *(pytest.param(x, marks=pytest.mark.long) for x in ((1, 1), (5, 1), (4, 4), (3, 7))),
  ],
)
def test_relative_bias_equals_lookup_per_pair(lengths):
  num_queries, num_keys = lengths
  module = layers.RelativePositionBiases(num_heads=2)
  offsets = np.arange(num_keys)[None, :] - np.arange(num_queries)[:, None]

  @jax.jit
  def run(key):
    bias, variables = module.init_with_output(key, *lengths, True)
    table = variables["params"]["rel_embedding"]
    return bias[0], table[:, layers.relative_position_bucket(offsets, True)]

  np.testing.assert_array_equal(*run(jax.random.PRNGKey(0)))
