"""SGP-DST's models: attention mask, positions, losses by hand, answers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import seqio

from sgdx_t5x.papers.sgpdst import sgpdst_answers as a
from sgdx_t5x.papers.sgpdst import sgpdst_model
from sgdx_t5x.papers.sgpdst.sgpdst_model import SgpModel, SgpTracker, best_pair, visible
from sgdx_t5x.spandst.encoder import BertConfig

CONFIG = BertConfig(64, 16, 2, 1, 32, 64, dropout_rate=0.0)
# [CLS] s u u null [SEP] text [SEP] option [SEP] option option [SEP]; the text is at position 12.
SEGMENTS = [a.FIRST, a.SYSTEM, a.USER, a.USER, a.NULL, a.FIRST, a.SECOND, a.SECOND]
SEGMENTS += [a.OPTION] * 2 + [a.OPTION + 1] * 3
POSITIONS = [0, 1, 2, 3, 4, *range(11, 19)]
LENGTH = 20


@functools.cache
def model(part):
  return SgpModel(
    module=SgpTracker(CONFIG, part),
    input_vocabulary=seqio.PassThroughVocabulary(size=64),
    output_vocabulary=seqio.PassThroughVocabulary(size=64),
    optimizer_def=None,
  )


@functools.cache
def params(part):
  shapes = dict.fromkeys(sgpdst_model.SgpFeatureConverter.FEATURES, (2, LENGTH))
  start = functools.partial(model(part).get_initial_variables, input_shapes=shapes)
  shapes = jax.eval_shape(start, jax.random.key(0))["params"]
  rng = np.random.default_rng(0)  # large enough for answers to differ
  return jax.tree.map(lambda x: (rng.normal(size=x.shape) * 0.5).astype("f4"), shapes)


def batch(targets=(0, 0, 0, 0, 0), rows=3, context=6):
  rng = np.random.default_rng(1)
  tokens = rng.integers(1, 64, (rows, LENGTH))
  tokens[:, len(SEGMENTS) :] = 0
  found = {
    "encoder_input_tokens": tokens,
    "encoder_segments": [SEGMENTS + [0] * (LENGTH - len(SEGMENTS))] * rows,
    "encoder_positions": [POSITIONS + [0] * (LENGTH - len(POSITIONS))] * rows,
    "encoder_context": np.where(tokens > 0, context, 0),
    "targets": [list(targets)] * rows,
  }
  return {name: np.array(array, np.int32) for name, array in found.items()}


def padded_inside(one):
  """The same examples with padding between "null" and [SEP], and consecutive positions."""
  rows, between = len(one["targets"]), 6
  zeros = np.zeros((rows, between), np.int32)
  wide = {
    name: np.concatenate([array[:, :5], zeros, array[:, 5:]], axis=1)
    for name, array in one.items()
    if name != "targets"
  }
  wide["encoder_positions"] = np.tile(np.arange(LENGTH + between, dtype=np.int32), (rows, 1))
  return wide | {"targets": one["targets"]}


@functools.cache
def compiled(part):
  return jax.jit(functools.partial(model(part).scores, params(part)))


def scores(part, one):
  return jax.device_get(compiled(part)(one))


def test_tokens_without_padding_give_what_they_give_with_it():
  found, padded = (scores("combine", one) for one in (batch(), padded_inside(batch())))
  np.testing.assert_allclose(found["options"], padded["options"], atol=1e-5)
  np.testing.assert_allclose(found["requested"], padded["requested"], atol=1e-5)
  for name in ("starts", "ends"):
    np.testing.assert_allclose(found[name][:, :5], padded[name][:, :5], atol=1e-5)
    assert (found[name][:, 5:] < -1e8).all()
    assert (found[name][:, 0] < -1e8).all()  # no span starts or ends at [CLS]


def test_an_option_sees_no_other_option():
  seen = jax.device_get(visible(np.array([[*SEGMENTS, 0]])))[0]
  options = [i for i, s in enumerate(SEGMENTS) if s >= a.OPTION]
  for query in range(len(SEGMENTS)):
    for key in range(len(SEGMENTS)):
      of_two = query in options and key in options and SEGMENTS[query] != SEGMENTS[key]
      assert seen[query, key] == (not of_two)


def test_options_change_only_by_their_own_tokens():
  """With one layer: in a second one, information flows between options through the utterance."""
  one, other = batch(), batch()
  other["encoder_input_tokens"][:, 10:13] += 1  # tokens of the second option
  states = []
  for x in (one, other):
    _, variables = jax.jit(
      lambda x: model("combine").module.apply(
        {"params": params("combine")}, x, capture_intermediates=True
      )
    )(x)
    states.append(variables["intermediates"]["encoder"]["__call__"][0])
  np.testing.assert_array_equal(states[0][:, 8:10], states[1][:, 8:10])
  assert np.abs(states[0] - states[1])[:, :8].max() > 1e-3


def test_the_loss_is_the_sum_of_those_of_the_heads():
  one = batch(targets=(2, 3, 2, 1, 2))
  found = scores("combine", one)
  by_hand = found["starts"][:, 2] + found["ends"][:, 3] + found["options"][:, 1]
  by_hand = by_hand + found["requested"][:, 0]
  losses = model("combine").losses(found, one)
  assert set(losses) == {"starts", "ends", "options", "requested"}
  np.testing.assert_allclose(sum(losses.values()), -by_hand.mean(), rtol=1e-5)
  one["encoder_segments"][2] = one["targets"][2] = 0  # a padding row does not count
  losses = model("combine").losses(found, one)
  np.testing.assert_allclose(sum(losses.values()), -by_hand[:2].mean(), rtol=1e-5)


@pytest.mark.parametrize("part", ["intent", "copy"])
def test_losses_and_answers_of_other_parts(part):
  one = batch(targets=(2, 0, 0, 0, 0))
  found = scores(part, one)["options" if part == "intent" else "copied"]
  np.testing.assert_allclose(np.exp(found).sum(axis=-1), 1, rtol=1e-5)
  (likelihood,) = model(part).likelihoods({"options": found, "copied": found}, one).values()
  np.testing.assert_allclose(likelihood, found[:, 1], rtol=1e-5)
  vectors = jax.device_get(model(part).answers({"options": found, "copied": found}, one))
  assert vectors.dtype == np.int32
  for vector, row in zip(vectors, found, strict=True):
    if part == "copy":
      assert a.read_copy(vector) == pytest.approx(np.exp(row[1]), abs=1e-6)
    else:
      option, probability = a.read_intent(vector)
      assert option == row.argmax()
      assert probability == pytest.approx(np.exp(row.max()), abs=1e-6)


def test_answers_of_combine():
  one = batch()
  found = scores("combine", one)
  vectors = jax.device_get(model("combine").answers(found, one))
  assert vectors.shape == (3, 6)
  for i, vector in enumerate(vectors):
    answer = a.read_slot(vector)
    starts, ends = np.exp(found["starts"][i]), np.exp(found["ends"][i])
    pairs = [(starts[j] + ends[k], j, k) for k in range(5) for j in range(k + 1)]
    score, first, last = max(pairs)
    assert (answer.first, answer.last) == (first, last)
    assert answer.span == pytest.approx(score, abs=2e-6)
    assert answer.option == found["options"][i].argmax()
    assert answer.requested == pytest.approx(np.exp(found["requested"][i, 1]), abs=1e-6)


def test_best_pairs():
  rng = np.random.default_rng(2)
  starts, ends = (jnp.array(rng.random((20, 9)), jnp.float32) for _ in range(2))
  first, last, score = jax.device_get(best_pair(starts, ends))
  for i in range(20):
    pairs = [(float(starts[i, j] + ends[i, k]), j, k) for k in range(9) for j in range(k + 1)]
    assert (first[i], last[i]) == max(pairs)[1:]
    assert score[i] == pytest.approx(max(pairs)[0], abs=1e-6)
