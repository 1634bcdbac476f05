"""Beam search against every possible decode, for length penalties of either sign.

A model is a random table of log probabilities: of a token, given its position and the token before.
All decodes are listed and ranked in float64 here; the beams are wide enough to lose none:
  2 tokens   one decode per length: each beam has an end and one way on
  3 tokens   8 prefixes before the 4th token, and 15 decodes of up to 4 tokens, in 16 beams
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5x import decoding
from t5x._settings.model import _DECODING
from t5x.errors import T5XError

EOS = 1
ALPHAS = (-20.0, -1.0, -0.01, 0.0, 0.6, 1.0)  # at -20, possible decodes score below -1e7
ROWS, NO_END = 6, 5  # the last row of a table can never end


def random_table(length, vocab, seed=0):
  """Returns log probabilities, `[ROWS, length, vocab, vocab]`: row, position, token before, token.

  The rows differ in how likely an end is, so that the best decodes are short in some, long in
  others.
  """
  logits = np.random.default_rng(seed).normal(size=(ROWS, length, vocab, vocab))
  logits[..., EOS] += np.linspace(-4, 2, ROWS)[:, None, None]
  logits[NO_END, ..., EOS] = -1e10
  return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def model_of(table):
  """Returns the `tokens_to_logits` that looks logits up in a table, one row per example."""
  table = jnp.asarray(table, jnp.float32)

  def tokens_to_logits(state):
    token_before = state.cur_token[:, 0]
    rows = jnp.repeat(jnp.arange(len(table)), len(token_before) // len(table))
    return table[rows, state.cur_index, token_before], state.cache

  return tokens_to_logits


def log_probability(table_of_row, tokens):
  return sum(
    table_of_row[position, before, token]
    for position, (before, token) in enumerate(zip((0, *tokens), tokens, strict=False))
  )


def all_decodes(table_of_row, alpha):
  """Returns [(score, tokens)] of all decodes that end, the best last."""
  length, vocab, _ = table_of_row.shape
  others = [token for token in range(vocab) if token != EOS]
  ranked = []
  for n in range(length):
    penalty = ((5 + n + 1) / 6) ** alpha
    for start in itertools.product(others, repeat=n):
      tokens = (*start, EOS)
      ranked.append((log_probability(table_of_row, tokens) / penalty, tokens))
  return sorted(ranked)


def all_unfinished(table_of_row):
  """Returns [(log probability, tokens)] of all decodes of full length without an end."""
  length, vocab, _ = table_of_row.shape
  others = [token for token in range(vocab) if token != EOS]
  return sorted(
    (log_probability(table_of_row, tokens), tokens)
    for tokens in itertools.product(others, repeat=length)
  )


def assert_best(decodes, scores, expected, length):
  """Compares the beams of a row, ascending, with the best of `expected`."""
  count = min(len(expected), len(decodes))
  best = expected[-count:]
  padded = [list(tokens) + [0] * (length - len(tokens)) for _, tokens in best]
  assert decodes[-count:].tolist() == padded
  np.testing.assert_allclose(scores[-count:], [score for score, _ in best], rtol=1e-4, atol=1e-6)


def beam_search(table, num_decodes, alpha, **kwargs):
  inputs = jnp.zeros((len(table), table.shape[1]), jnp.int32)
  model = kwargs.pop("model", model_of(table))
  return decoding.beam_search(
    inputs, {}, model, EOS, num_decodes=num_decodes, alpha=alpha, **kwargs
  )


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(
  ("length", "vocab", "num_decodes"), [(8, 2, 1), (8, 2, 4), (8, 2, 8), (4, 3, 16)]
)
def test_the_best_of_all_decodes_are_returned(length, vocab, num_decodes, alpha):
  table = random_table(length, vocab)
  decodes, scores = map(np.asarray, beam_search(table, num_decodes, alpha))
  for row in range(ROWS):
    expected = all_unfinished(table[row]) if row == NO_END else all_decodes(table[row], alpha)
    assert_best(decodes[row], scores[row], expected, length)
    if row != NO_END:
      empty = num_decodes - len(expected)
      assert (scores[row, : max(empty, 0)] == decoding.NEG_INF).all()
      assert not decodes[row, : max(empty, 0)].any()


def test_the_search_ends_when_nothing_better_can_follow():
  """Every decode of two tokens or more loses to [EOS] at alpha -1: one step is enough."""
  table = np.log(np.full((1, 8, 2, 2), 0.5))
  positions = []

  def watched(state):
    jax.debug.callback(lambda index: positions.append(int(index)), state.cur_index)
    return model_of(table)(state)

  decodes, scores = beam_search(table, 1, -1.0, model=watched)
  jax.effects_barrier()
  assert positions == [0]
  assert decodes[0, 0].tolist() == [EOS] + [0] * 7
  np.testing.assert_allclose(scores, [[np.log(0.5)]], rtol=1e-6)


@pytest.mark.parametrize("alpha", [-1.0, -0.01, 0.6])
def test_a_search_in_segments_returns_the_same(alpha):
  table = random_table(8, 2)
  decodes, scores = beam_search(table, 4, alpha)
  rows, cache = None, {}
  for start in range(0, 8, 3):
    paused = decoding.beam_search(
      jnp.zeros((ROWS, 8), jnp.int32), cache, model_of(table), EOS, num_decodes=4, alpha=alpha,
      segment=decoding.Segment(start, start + 3, rows),
    )  # fmt: skip
    rows, cache = paused.rows, paused.cache
  np.testing.assert_array_equal(paused.outputs[0], decodes)
  np.testing.assert_array_equal(paused.outputs[1], scores)
  assert paused.finished.all()


@pytest.mark.parametrize("alpha", [-1.0, 0.6])
def test_alpha_may_be_an_array(alpha):
  """Regression: below 0, it was compared with 0 while tracing."""
  table = random_table(8, 2)
  expected = beam_search(table, 4, alpha)
  decoded = jax.jit(lambda a: beam_search(table, 4, a))(jnp.float32(alpha))
  for array, expected_array in zip(decoded, expected, strict=True):
    np.testing.assert_allclose(array, expected_array, rtol=1e-6)


@pytest.mark.parametrize("alpha", [-1000.0, 10, float("nan"), "0.6", True])
def test_a_penalty_beyond_float32_is_refused(alpha):
  """Regression: at 1000, all decodes scored alike, and the first beam was the prediction."""
  with pytest.raises(T5XError, match="alpha is not a valid number"):
    _DECODING["alpha"](alpha, "beam_search.alpha")
