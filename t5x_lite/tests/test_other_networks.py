"""A network of one's own, with the methods that T5X's model calls, and no cache of the encoder."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import run_tasks
from flax import linen as nn
from jax import lax

from t5x import decoding, models, optimizers

SIZE, WIDTH = 384, 8


class Bag(nn.Module):
  """Predicts a token from the means of the inputs and of the tokens before it."""

  def setup(self):
    self.embed, self.out = nn.Embed(SIZE, WIDTH), nn.Dense(SIZE)

  def encode(self, tokens, enable_dropout=True):
    del enable_dropout
    return self.embed(tokens)

  @nn.compact
  def decode(
    self,
    encoded,
    encoder_input_tokens,
    decoder_input_tokens,
    decoder_target_tokens,
    enable_dropout=True,
    decode=False,
    max_decode_length=None,
  ):
    del decoder_target_tokens, enable_dropout, max_decode_length
    said = self.embed(decoder_input_tokens)
    count = jnp.arange(1, said.shape[1] + 1)[:, None]
    if decode:
      first = not self.has_variable("cache", "total")
      total = self.variable("cache", "total", jnp.zeros, said[:, :1].shape)
      number = self.variable("cache", "cache_index", jnp.zeros, (), jnp.int32)
      if not first:
        total.value, number.value = total.value + said, number.value + 1
        said, count = total.value, number.value
    else:
      said = jnp.cumsum(said, axis=1)
    real = (encoder_input_tokens > 0)[..., None]
    read = jnp.sum(encoded * real, axis=1, keepdims=True) / jnp.sum(real, axis=1, keepdims=True)
    return self.out(jnp.tanh(3 * read) + said / count)

  def __call__(self, encoder_input_tokens, *tokens, enable_dropout=True, decode=False, **_):
    encoded = self.encode(encoder_input_tokens)
    return self.decode(encoded, encoder_input_tokens, *tokens, decode=decode)


@pytest.fixture(scope="module")
def batch():
  tokens = np.random.default_rng(0).integers(3, 100, (3, 6))
  tokens[1, 4:] = 0
  return {"encoder_input_tokens": tokens, "decoder_input_tokens": np.zeros((3, 5), np.int32)}


def _model(decode_fn):
  vocabulary = run_tasks.VOCAB
  return models.EncoderDecoderModel(Bag(), vocabulary, vocabulary, optimizers.sgd(0.1), decode_fn)


def _params(model):
  shapes = {"encoder_input_tokens": (3, 6), "decoder_input_tokens": (3, 5)}
  init = jax.jit(functools.partial(model.get_initial_variables, input_shapes=shapes))
  return jax.tree.map(lambda x: 4 * x, init(jax.random.PRNGKey(0))["params"])


@pytest.mark.parametrize(
  "decode_fn",
  [
    functools.partial(decoding.beam_search, alpha=0.0),
    functools.partial(decoding.temperature_sample, topk=0, decode_rng=jax.random.PRNGKey(0)),
  ],
)
def test_decodes_have_the_scores_of_teacher_forcing(batch, decode_fn):
  model = _model(decode_fn)
  params = _params(model)
  settings = {"rng": None, "num_decodes": 2, "return_all_decodes": True}
  predict = jax.jit(functools.partial(model.predict_batch_with_aux, **settings))
  score = jax.jit(model.score_batch)
  decodes, aux = predict(params, batch)
  assert decodes.shape == (3, 2, 5)
  assert len({tuple(row) for row in np.asarray(decodes[:, 1])}) == 3  # the inputs matter
  for i in range(2):
    targets = decodes[:, i]
    rows = {
      "encoder_input_tokens": batch["encoder_input_tokens"],
      "decoder_input_tokens": jnp.pad(targets[:, :-1], [(0, 0), (1, 0)]),
      "decoder_target_tokens": targets,
      "decoder_loss_weights": (targets > 0).astype(jnp.int32),
    }
    np.testing.assert_allclose(aux["scores"][:, i], score(params, rows), rtol=1e-4)


def test_a_decode_function_of_ones_own_gets_what_t5x_passes(batch):
  got = {}

  def mine(*, inputs, cache, tokens_to_logits, eos_id, num_decodes, cache_offset, **kwargs):
    got.update(kwargs, eos_id=eos_id, num_decodes=num_decodes, cache_offset=cache_offset)
    state = decoding.DecodingState(0, None, jnp.zeros((6, 1), jnp.int32), None)
    logits, _ = tokens_to_logits(state.replace(cache=decoding.cache_map(_twice, cache)))
    got["logits"] = logits.shape
    return jnp.zeros((3, 2, 5), jnp.int32), jnp.zeros((3, 2))

  def _twice(x):
    return lax.concatenate([x, x], 0)

  model = _model(mine)
  model.predict_batch(_params(model), batch, num_decodes=2)
  assert got == {"eos_id": 1, "num_decodes": 2, "cache_offset": 0, "logits": (6, SIZE)}
