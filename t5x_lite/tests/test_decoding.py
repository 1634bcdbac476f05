"""Decoding with models of a few numbers, and results computed by hand.

The rules are those that Google's T5X documents for `temperature_sample` and `beam_search`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import seqio
from tiny_model import tiny_model

from t5x import decoding
from t5x._decode.sample_token import sample_token
from t5x.errors import T5XError

EOS = 1
NEVER = -1e7


def _constant(*rows):
  """A model that gives row i of the batch the logits `rows[i]`, whatever came before."""
  logits = jnp.asarray(rows, jnp.float32)

  def tokens_to_logits(state):
    repeats = state.cur_token.shape[0] // len(rows)
    return jnp.repeat(logits, repeats, axis=0), state.cache

  return tokens_to_logits


def _says(*tokens, vocab=10):
  """A model that always predicts `tokens[i]` in row i."""
  return _constant(*np.where(np.arange(vocab) == np.array(tokens)[:, None], 0.0, NEVER))


def _sample(inputs, model, **kwargs):
  decodes, scores = decoding.temperature_sample(
    jnp.asarray(inputs), kwargs.pop("cache", {}), model, EOS, **kwargs
  )
  return np.asarray(decodes)[:, 0].tolist(), np.asarray(scores)[:, 0]


@pytest.mark.parametrize("none", [0, 0.0])
def test_no_nucleus_keeps_all_tokens(none):
  logits, keys = jnp.zeros((1, 8)), jax.random.split(jax.random.PRNGKey(0), 64)
  tokens = {int(sample_token(key, logits, 1.0, 0, none, False)[0][0]) for key in keys}
  assert tokens == set(range(8))


def test_an_eos_of_the_prompt_does_not_end_a_decode():
  decodes, _ = _sample([[0, 5, EOS, 0, 0], [0, 8, 9, EOS, 0]], _says(4, EOS))
  assert decodes == [[5, EOS, 4, 4, 4], [8, 9, EOS, EOS, 0]]


def test_a_vocabulary_without_an_eos_has_t5xs():
  """seqio.PassThroughVocabulary names none; without one, a decode never ends."""
  model, seen = tiny_model(None), {}

  def decode(inputs, cache, tokens_to_logits, eos_id, num_decodes, **kwargs):
    seen["eos_id"] = eos_id
    return jnp.zeros((1, 1, 4), jnp.int32), jnp.zeros((1, 1))

  model = type(model)(
    model.module,
    model.input_vocabulary,
    seqio.PassThroughVocabulary(384),
    model.optimizer_def,
    decode_fn=decode,
  )
  batch = {f"{k}_tokens": jnp.ones((1, 4), jnp.int32) for k in ("encoder_input", "decoder_input")}
  shapes = {key: value.shape for key, value in batch.items()}

  def predict(key):
    params = model.get_initial_variables(key, shapes)["params"]
    return model.predict_batch_with_aux(params, batch)

  jax.eval_shape(predict, jax.random.PRNGKey(0))
  assert seen == {"eos_id": 1}


def test_a_prompt_is_without_the_vocabularys_eos():
  """As in T5X, also where decodes are to end with another token."""
  model = tiny_model(None)

  def prompts(*, inputs, eos_id, **kwargs):
    return inputs[:, None], jnp.full((1, 1), eos_id)

  model = type(model)(
    model.module, *[model.output_vocabulary] * 2, model.optimizer_def, decode_fn=prompts
  )
  batch = {
    "encoder_input_tokens": jnp.ones((1, 4), jnp.int32),
    "decoder_input_tokens": jnp.array([[0, 5, 7, EOS]]),
  }
  shapes = {key: value.shape for key, value in batch.items()}

  @jax.jit  # which leaves out the network, whose results are not used
  def predict(key):
    params = model.get_initial_variables(key, shapes)["params"]
    settings = {"decoder_params": {"eos_id": 7}, "prompt_with_targets": True}
    return model.predict_batch_with_aux(params, batch, **settings)

  decodes, aux = predict(jax.random.PRNGKey(0))
  assert (decodes.tolist(), aux["scores"].tolist()) == ([[0, 5, 7, 0]], [7])


def test_steps_are_counted_after_the_prompt():
  inputs = [[0, 2, 0, 0, 0, 0], [0, 2, 2, 0, 0, 0]]
  want = [[2, 3, 3, 0, 0, 0], [2, 2, 3, 3, 0, 0]]
  assert _sample(inputs, _says(3, 3), max_decode_steps=2)[0] == want


def test_temperature_zero_is_greedy():
  near = [[9.50, 9.51, 9.52, 9.49], [3.0, 0.0, 2.9, 2.8]]
  inputs = np.zeros((2, 3), np.int32)
  model = _constant(*near)
  decodes, scores = _sample(inputs, model, topk=4, temperature=0.0)
  assert decodes == [[2, 2, 2], [0, 0, 0]]
  np.testing.assert_array_equal(scores, 0)


def test_topk_may_exceed_the_vocabulary():
  model, seed = _constant([0.0, -9.0, 1.0, 1.0]), jax.random.PRNGKey(0)
  inputs = np.zeros((1, 5), np.int32)
  some, every = (_sample(inputs, model, topk=k, decode_rng=seed) for k in (9, 4))
  assert some[0] == every[0]


def test_the_first_token_of_a_prompt_is_not_read():
  def says_its_input(state):
    return jnp.where(jnp.arange(10) == state.cur_token + 2, 0.0, NEVER), state.cache

  assert _sample([[7, 0, 0]], says_its_input, topk=1)[0] == [[2, 4, 6]]


# Logits of tokens 2 and 3 in two examples; all other tokens are impossible.
TWO = ([NEVER, -1e10, -0.1, -0.9], [NEVER, -1e10, -0.9, -0.1])


def _beam(inputs, model=None, **kwargs):
  decodes, scores = decoding.beam_search(
    jnp.asarray(inputs), {}, model or _constant(*TWO), EOS, num_decodes=2, **kwargs
  )
  return decodes.tolist(), np.asarray(scores)


def test_equal_beams_come_in_the_order_of_google_t5x():
  """Of equal beams, the one with the lower token comes last in the first step, then first.

  By hand: after a step the better half is reversed, so beams [2] and [3] are kept as [3], [2].
  """
  model = _constant([NEVER, -1e10, 0.0, 0.0])
  steps = {n: _beam(np.zeros((1, 4), np.int32), model, max_decode_len=n)[0][0] for n in (1, 2)}
  assert [row[:1] for row in steps[1]] == [[3], [2]]
  # Candidates in order: 32, 33, 22, 23; all equal, the first two are kept, reversed.
  assert [row[:2] for row in steps[2]] == [[3, 3], [3, 2]]


def test_forced_tokens_start_a_beams_score_anew():
  """As in Google's T5X; by hand: log softmax of (-0.1, -0.9) is (-0.371, -1.171)."""
  model = _constant([NEVER, -1e10, -0.1, -0.9])
  decodes, scores = _beam([[9, 3, 0, 3, 0]], model, max_decode_len=4)  # 9: a BOS is not read
  assert decodes[0] == [[3, 2, 3, 3, 0], [3, 2, 3, 2, 0]]
  np.testing.assert_allclose(scores[0], [-1.1711, -0.3711], atol=1e-4)


def test_a_prompt_that_fills_the_length_ends_with_its_last_token():
  decodes, _ = _beam([[0, 2, 3]], _constant([NEVER, -1e10, -0.1, -0.9]))
  assert decodes[0][-1] == [2, 3, 3]


@pytest.mark.parametrize("topp", [1, 0.5])
def test_tokens_are_kept_by_number_or_by_probability(topp):
  with pytest.raises(T5XError, match="at most one of them"):
    decoding.temperature_sample(jnp.zeros((1, 4), jnp.int32), {}, _says(3), EOS, topp=topp)


def test_cache_map_leaves_what_rows_share():
  names = ("cached_key", "cache_index", "cached_bias", "position_embedder_index")
  cache = {"layer": {name: jnp.zeros(2) for name in names}}
  changed = decoding.cache_map(lambda x: x + 1, cache)["layer"]
  assert [float(changed[n][0]) for n in names] == [1, 0, 0, 0]
