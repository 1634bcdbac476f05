"""Bucketed, merged inference gives what the plain path gives; batches are planned as promised."""

import pathlib
import sys

import jax
import numpy as np
import pytest

from t5x import _inference, models, optimizers, partitioning, utils
from t5x.examples.t5 import network

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run_tasks

LENGTH, TARGETS = 64, 6


@pytest.fixture(scope="module")
def setup():
  config = network.T5Config(
    vocab_size=384,
    dtype="float32",
    emb_dim=16,
    num_heads=2,
    num_encoder_layers=1,
    num_decoder_layers=1,
    head_dim=8,
    mlp_dim=16,
    mlp_activations=("relu",),
    dropout_rate=0.0,
  )
  model = models.EncoderDecoderModel(
    module=network.Transformer(config),
    input_vocabulary=run_tasks.VOCAB,
    output_vocabulary=run_tasks.VOCAB,
    optimizer_def=optimizers.sgd(0.1),
  )
  partitioner = partitioning.PjitPartitioner(num_partitions=1)
  names = (
    "encoder_input_tokens",
    "decoder_input_tokens",
    "decoder_target_tokens",
    "decoder_loss_weights",
  )
  lengths = (LENGTH, TARGETS, TARGETS, TARGETS)
  initializer = utils.TrainStateInitializer(
    optimizer_def=None,
    init_fn=model.get_initial_variables,
    input_shapes={n: (2, k) for n, k in zip(names, lengths, strict=True)},
    partitioner=partitioner,
  )
  state = initializer.from_scratch(jax.random.PRNGKey(3))
  rng = np.random.default_rng(0)
  examples = []
  for i in range(23):
    inputs = np.zeros(LENGTH, np.int32)
    size = int(rng.integers(1, LENGTH + 1)) if i % 3 else int(rng.integers(1, 12))
    inputs[:size] = rng.integers(3, 200, size)
    targets = np.zeros(TARGETS, np.int32)
    targets[: 1 + i % TARGETS] = rng.integers(3, 200, 1 + i % TARGETS)
    examples.append(
      {
        "encoder_input_tokens": inputs,
        "decoder_input_tokens": np.concatenate([[0], targets[:-1]]).astype(np.int32),
        "decoder_target_tokens": targets,
        "decoder_loss_weights": (targets > 0).astype(np.int32),
      }
    )
  examples[20] = examples[4]
  return model, partitioner, initializer, state, list(enumerate(examples))


class _Dataset(list):
  """An enumerated dataset, with the element_spec that names its features."""

  @property
  def element_spec(self):
    return None, self[0][1]


@pytest.mark.parametrize("batch_size", [3, 8, 32])
@pytest.mark.parametrize("kind", ["predict_batch_with_aux", "score_batch"])
def test_equal_to_the_plain_path(setup, kind, batch_size):
  model, partitioner, initializer, state, examples = setup
  step = getattr(model, kind)

  def run(size, **kwargs):
    fn = utils.get_infer_fn(step, size, initializer.train_state_axes, partitioner, **kwargs)
    return fn(_Dataset(examples), state), fn.inference.stats

  plain, plain_stats = run(23, buckets=False, merge_equal=False)
  fast, stats = run(batch_size)
  assert (plain_stats["rows_run"], stats["rows_run"]) == (23, 22)
  if kind == "score_batch":
    assert [i for i, _ in fast] == list(range(23))
    np.testing.assert_allclose([s for _, s in fast], [s for _, s in plain], rtol=1e-5)
    return
  assert fast[0] == plain[0]
  np.testing.assert_allclose(fast[1]["scores"], plain[1]["scores"], rtol=1e-5)
  if batch_size == 3:
    assert 1 < stats["shapes"] <= 4


def test_plan_batches():
  lengths = np.array([5, 60, 7, 33, 20, 18, 3, 64, 40, 9])
  planned = _inference.plan_batches(lengths, 64, 2)
  assert [list(map(int, lengths[rows])) for rows, _ in planned] == [
    [64, 60],
    [40, 33],
    [20, 18],
    [9, 7],
    [5, 3],
  ]
  # A length of its own needs two batches before and after it.
  assert [bucket for _, bucket in planned] == [64, 64, 32, 32, 32]
  assert all(lengths[rows].max() <= bucket for rows, bucket in planned)


def test_buckets_never_exceed_the_full_length():
  for length in range(0, 41):
    planned = _inference.plan_batches(np.array([length] * 4), 40, 1)
    assert all(length <= bucket <= 40 for _, bucket in planned)


def test_no_copies_of_padding_for_small_sets():
  assert _inference._rows_per_batch(50, 128, 1) == 64
  assert _inference._rows_per_batch(500, 128, 1) == 128
  assert _inference._rows_per_batch(3, 128, 8) == 8
