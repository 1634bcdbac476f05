"""Structured initialization of a small encoder: what its heads attend to before any training."""

import functools

import jax
import numpy as np
import pytest
import seqio
import span_frames

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.spandst import features, span_model, structured_encoder
from sgdx_t5x.spandst.encoder import BertConfig

WIDTH, HEADS, LENGTH, VOCAB_SIZE = 128, 4, 64, 200
CONFIG = BertConfig(VOCAB_SIZE, WIDTH, HEADS, 2, 32, LENGTH, dropout_rate=0.0)


def make(config=CONFIG, **options):
  return structured_encoder.StructuredSpanModel(
    module=span_model.SpanTracker(config, lexical=True),
    input_vocabulary=seqio.PassThroughVocabulary(size=64),
    output_vocabulary=seqio.PassThroughVocabulary(size=64),
    optimizer_def=None,
    **options,
  )


@functools.cache
def params():
  shapes = features.SpanFeatureConverter(pack=False).get_model_feature_lengths(span_frames.LENGTHS)
  shapes = {name: (2, length) for name, length in shapes.items()}
  return jax.jit(lambda key: make().get_initial_variables(key, shapes)["params"])(jax.random.key(0))


def attention(head):
  """Attention weights of a head of the first layer, for the same 32 words twice: `[64, 64]`."""
  bert = params()["encoder"]
  words = np.tile(np.arange(100, 132), 2)
  x = bert["token_embedder"]["embedding"][words] + bert["type_embedder"]["embedding"][0]
  x = x + bert["position_embedder"]["embedding"]
  x = (x - x.mean(axis=-1, keepdims=True)) / x.std(axis=-1, keepdims=True)
  size = WIDTH // HEADS
  columns = slice(head * size, (head + 1) * size)
  query, key = (x @ bert["layers_0"][name]["kernel"][:, columns] for name in ("query", "key"))
  return np.asarray(jax.nn.softmax(query @ key.T / np.sqrt(size), axis=-1))


@pytest.mark.parametrize(("head", "step"), [pytest.param(0, -1, marks=pytest.mark.long), (1, 1)])
def test_two_heads_attend_to_the_token_before_and_to_the_one_after(head, step):
  weights = attention(head)
  inner = np.arange(1, LENGTH - 1)
  assert (weights.argmax(axis=-1)[inner] == inner + step).all()
  assert weights[inner, inner + step].mean() > 0.5


def test_a_third_head_attends_to_the_same_word():
  weights = attention(2)
  places = np.arange(LENGTH)
  same = weights[places, places] + weights[places, (places + LENGTH // 2) % LENGTH]
  assert same.mean() > 0.5  # of 64 tokens, 2 of which are the same


def test_what_layers_add_leaves_positions_alone():
  for layer in ("layers_0", "layers_1"):
    for name in ("out", "wo"):
      kernel = np.asarray(params()["encoder"][layer][name]["kernel"])
      assert not kernel[:, : WIDTH // 4].any()
      assert kernel[:, WIDTH // 4 :].std() > 0


def test_two_heads_are_too_few():
  config = BertConfig(VOCAB_SIZE, WIDTH, 2, 2, 32, LENGTH)
  with pytest.raises(SgdxError, match="num_heads = 2"):
    make(config)


def test_narrow_encoders_have_no_fourth_head_of_neighbours():
  """Regression: a ZeroDivisionError, since they have too few sinusoids for it."""
  model = make(BertConfig(VOCAB_SIZE, 32, 4, 1, 32, LENGTH))
  shapes = features.SpanFeatureConverter(pack=False).get_model_feature_lengths(span_frames.LENGTHS)
  shapes = {name: (2, length) for name, length in shapes.items()}
  found = jax.eval_shape(lambda key: model.get_initial_variables(key, shapes), jax.random.key(0))
  assert found["params"]["encoder"]["layers_0"]["query"]["kernel"].shape == (32, 32)


def test_pointers_point_to_what_is_alike():
  states = np.random.default_rng(0).normal(size=(5, WIDTH))
  for name in ("starts", "ends"):
    dense = params()[name]["query"]
    logits = (states @ np.asarray(dense["kernel"]) + np.asarray(dense["bias"])) @ states.T
    assert (logits.argmax(axis=-1) == np.arange(5)).all()
