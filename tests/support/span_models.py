"""A small SpanDST with random weights, and batches for it."""

import functools

import jax
import numpy as np
import seqio
import span_frames
import tensorflow as tf

from sgdx_t5x.spandst import features, span_model
from sgdx_t5x.spandst.encoder import BertConfig

CONFIG = BertConfig(span_frames.VOCAB_SIZE, 16, 2, 1, 32, 64, dropout_rate=0.0)


@functools.cache
def model(worded=False, **settings):
  return span_model.SpanModel(
    module=span_model.SpanTracker(CONFIG, lexical=worded, pooled=worded),
    input_vocabulary=seqio.PassThroughVocabulary(size=64),
    output_vocabulary=seqio.PassThroughVocabulary(size=64),
    optimizer_def=None,
    **settings,
  )


@functools.cache
def params(worded=False, seed=0):
  shapes = features.SpanFeatureConverter(pack=False).get_model_feature_lengths(span_frames.LENGTHS)
  shapes = {name: (2, length) for name, length in shapes.items()}
  init = functools.partial(model(worded).get_initial_variables, input_shapes=shapes)
  variables = jax.eval_shape(init, jax.random.key(0))
  rng = np.random.default_rng(seed)  # large enough for answers to differ
  return jax.tree.map(
    lambda x: (rng.normal(size=x.shape) * 0.5).astype(np.float32), variables["params"]
  )


def dataset(frames, pack, lengths=None):
  lengths = lengths or span_frames.LENGTHS
  signature = {name: tf.TensorSpec([None], tf.int32) for name in features.TASK_FEATURES}
  ds = tf.data.Dataset.from_generator(lambda: iter(frames), output_signature=signature)
  return features.SpanFeatureConverter(pack=pack)(ds, lengths)


def batch_of(frames, pack=False, lengths=None):
  rows = list(dataset(frames, pack, lengths).as_numpy_iterator())
  return {name: np.stack([row[name] for row in rows]) for name in rows[0]}
