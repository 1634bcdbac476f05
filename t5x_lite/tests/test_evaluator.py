"""`utils.InferenceEvaluator` for models that users write: other predictions, or no vocabularies."""

import functools

import jax
import jax.numpy as jnp
import pytest
import seqio
import tensorflow as tf
from run_tasks import FEATURES
from tiny_model import tiny_model

from t5x import decoding, models, optimizers, partitioning, utils

LENGTHS = {"inputs": 48, "targets": 8}
BATCH = 8
SAID = [75, 76, 1]  # "HI", and EOS


def register(name, metric_fns):
  """Registers a task of three examples."""

  def dataset(split, shuffle_files=False, seed=None):
    rows = {"inputs": ["a", "b", "c"], "targets": ["HI", "HI", "no"]}
    return tf.data.Dataset.from_tensor_slices(rows)

  seqio.TaskRegistry.add(
    name,
    source=seqio.FunctionDataSource(dataset, splits=("test",)),
    preprocessors=[seqio.preprocessors.tokenize, seqio.preprocessors.append_eos],
    output_features=FEATURES,
    metric_fns=metric_fns,
  )


def evaluator_of(task, model, axes=None):
  config = utils.DatasetConfig(task, LENGTHS, "test", BATCH, False, 42)
  make = functools.partial(seqio.Evaluator, logger_cls=[])
  return utils.InferenceEvaluator(
    config, make, model, partitioning.PjitPartitioner(num_partitions=1), axes
  )


def accuracy(targets, predictions):
  return {"accuracy": sum(map(str.__eq__, targets, predictions)) / len(targets)}


def number_of_values(targets, predictions, aux_values):
  return {"values": len(aux_values["scores"])}


@pytest.fixture
def says_hi():
  """A model that answers "HI", whatever its network would decode."""
  base = tiny_model(decoding.temperature_sample)

  class SaysHi(models.EncoderDecoderModel):
    def predict_batch(self, params, batch, rng=None):
      num_rows = batch["encoder_input_tokens"].shape[0]
      return jnp.tile(jnp.array([*SAID, 0], jnp.int32), (num_rows, 1))

  return SaysHi(
    base.module, base.input_vocabulary, base.output_vocabulary, optimizer_def=base.optimizer_def
  )


def test_a_model_that_predicts_in_another_way_is_asked_for_both(says_hi):
  """T5X calls `predict_batch` and `predict_batch_with_aux`, each for its metrics."""
  register("evaluator_both", [accuracy, number_of_values])
  shapes = {"encoder_input_tokens": (BATCH, 48), "decoder_input_tokens": (BATCH, 8)}
  partitioner = partitioning.PjitPartitioner(num_partitions=1)
  initializer = utils.TrainStateInitializer(
    says_hi.optimizer_def, says_hi.get_initial_variables, shapes, partitioner
  )
  state = initializer.from_scratch(jax.random.PRNGKey(0))
  evaluator = evaluator_of("evaluator_both", says_hi, initializer.train_state_axes)
  metrics = evaluator.finish(evaluator.evaluate(state))["evaluator_both"]
  assert {key: float(value) for key, value in metrics.items()} == {"accuracy": 2 / 3, "values": 3}


def test_a_model_may_have_no_vocabularies():
  register("evaluator_plain", [accuracy])

  class Plain(models.BaseModel):
    FEATURE_CONVERTER_CLS = seqio.EncDecFeatureConverter

    def get_initial_variables(self, rng, input_shapes, input_types=None):
      return {"params": {"w": jnp.zeros(2)}}

    def loss_fn(self, params, batch, dropout_rng):
      return jnp.sum(params["w"]), {}

    def predict_batch_with_aux(self, params, batch, rng=None):
      return batch["encoder_input_tokens"], {}

    def score_batch(self, params, batch, return_intermediates=False):
      return batch["encoder_input_tokens"].sum(-1)

  assert len(evaluator_of("evaluator_plain", Plain(optimizers.sgd(0.1))).eval_tasks) == 1
