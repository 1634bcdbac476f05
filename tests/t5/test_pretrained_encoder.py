"""T5's decoder on a BERT: packing, padding, decoding with a cache, gradients."""

import functools

import flax.core
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import seqio
from commands import assert_four_parts

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.spandst.encoder import BertConfig
from sgdx_t5x.t5 import pretrained_encoder
from sgdx_t5x.t5.pretrained_encoder import BertToT5, BertToT5Model, start_copying
from sgdx_t5x.tasks import sample_encoder_vocabulary
from t5x import decoding
from t5x.examples.t5 import network

ROWS, LENGTH, TARGET = 512, 12, 6


def module(width=16, **changes):
  of_decoder = {"vocab_size": ROWS, "emb_dim": width, "num_heads": 2, "head_dim": width // 2}
  of_decoder |= {"num_encoder_layers": 0, "num_decoder_layers": 2, "dropout_rate": 0.0}
  of_decoder["mlp_dim"] = 32
  of_encoder = BertConfig(ROWS, width, 2, 2, 32, 32, dropout_rate=0.0, freeze_embeddings=True)
  config = network.T5Config(**{**of_decoder, "logits_via_embedding": True, **changes})
  return BertToT5(config, of_encoder)


def model(vocabulary=None, **changes):
  vocabulary = vocabulary or sample_encoder_vocabulary()
  decode = functools.partial(decoding.temperature_sample, topk=1)
  return BertToT5Model(module(**changes), vocabulary, vocabulary, None, decode_fn=decode)


def shapes(length=LENGTH):
  return {"encoder_input_tokens": (2, length), "decoder_input_tokens": (2, TARGET)}


def initial_params(width=16):
  init = functools.partial(model(width=width).get_initial_variables, input_shapes=shapes())
  return lambda key: init(key)["params"]


@functools.cache
def params(seed=0):
  rng = np.random.default_rng(seed)

  def random(path, leaf):  # large enough for tokens to matter
    mean = "scale" in jax.tree_util.keystr(path)
    return rng.normal(mean, 0.4, leaf.shape).astype(np.float32)

  # Of the network's own initial parameters only the shapes: they take seconds to compile.
  shapes_of_params = jax.eval_shape(initial_params(), jax.random.key(0))
  return jax.tree_util.tree_map_with_path(random, shapes_of_params)


@functools.cache
def network_of(width=16):
  """The network as a compiled function of its variables and features."""
  return jax.jit(functools.partial(module(width).apply, enable_dropout=False))


def logits(inputs, targets, seed=0):
  before = np.pad(targets, ((0, 0), (1, 0)))[:, :-1]
  return network_of()({"params": params(seed)}, inputs, before, targets)


def examples():
  rng = np.random.default_rng(1)
  return rng.integers(5, ROWS, (2, LENGTH)), rng.integers(5, ROWS, (2, TARGET))


def test_a_packed_row_has_the_logits_of_its_examples():
  inputs, targets = examples()
  inputs[0, 5:] = inputs[1, 6:] = 0
  alone = logits(inputs, targets)
  row = np.concatenate([inputs[0, :5], inputs[1, :6], [0]])[None]
  number = np.array([[1] * 5 + [2] * 6 + [0]])
  position = np.array([[*range(5), *range(6), 0]])
  answers = np.repeat([[1, 2]], TARGET, axis=-1)
  before = np.pad(targets, ((0, 0), (1, 0)))[:, :-1].reshape(1, -1)
  packed = network_of()(
    {"params": params()}, row, before, targets.reshape(1, -1), number, answers, position
  )
  # The relative positions of a packed decoder are those of the row, as in T5: within an example
  # they are the same.
  np.testing.assert_allclose(packed.reshape(2, TARGET, -1), alone, atol=1e-4)


def test_padding_changes_nothing():
  inputs, targets = examples()
  padded = np.pad(inputs, ((0, 0), (0, 4)))
  np.testing.assert_allclose(logits(padded, targets), logits(inputs, targets), atol=1e-4)


def test_cached_decoding_is_greedy_by_the_logits():
  inputs, _ = examples()
  batch = {"encoder_input_tokens": inputs, "decoder_input_tokens": np.zeros((2, TARGET), int)}
  ends, tokens = model().output_vocabulary.eos_id, set()
  predict = jax.jit(model().predict_batch)
  for seed in range(4):
    decoded = np.asarray(predict(params(seed), batch))
    best = np.asarray(logits(inputs, np.where(decoded > 0, decoded, 1), seed).argmax(axis=-1))
    for ours, expected in zip(decoded.tolist(), best.tolist(), strict=True):
      length = ours.index(ends) + 1 if ends in ours else TARGET
      assert ours[:length] == expected[:length]
      tokens |= set(ours)
  assert len(tokens) > 3  # otherwise little was compared


def test_gradients():
  """By finite differences along the gradient; the embeddings have none."""
  inputs, targets = examples()

  @jax.jit
  @jax.value_and_grad
  def loss(weights):
    before = np.pad(targets, ((0, 0), (1, 0)))[:, :-1]
    scores = network_of()({"params": weights}, inputs, before, targets)
    chosen = jnp.take_along_axis(jax.nn.log_softmax(scores), targets[..., None], axis=-1)
    return -chosen.mean()

  _, gradients = loss(params())
  norms = {
    jax.tree_util.keystr(path): float(jnp.linalg.norm(x))
    for path, x in jax.tree_util.tree_leaves_with_path(gradients)
  }
  still = {name for name, norm in norms.items() if norm == 0}
  assert still == {name for name in norms if "_embedder" in name or "pooler" in name}
  size = jnp.sqrt(sum(norm**2 for norm in norms.values()))
  step = jax.tree.map(lambda x: 0.004 * x / size, gradients)
  ahead, behind = (
    loss(jax.tree.map(lambda p, s, sign=sign: p + sign * s, params(), step))[0] for sign in (1, -1)
  )
  np.testing.assert_allclose((ahead - behind) / 0.008, size, rtol=0.02)


def test_it_starts_from_copying_and_the_encoder_as_it_is(monkeypatch):
  """Of a text of distinct tokens, an untrained network writes the one after the last."""

  def both(plain):
    return {"plain": plain, "started": start_copying(plain)}

  monkeypatch.setattr(pretrained_encoder, "start_copying", both)
  plain, started = jax.jit(initial_params(128))(jax.random.key(0)).values()
  text = np.random.default_rng(2).permutation(np.arange(5, ROWS))[:24].reshape(2, LENGTH)
  before, after = text[:, 3:9], text[:, 4:10]
  scores = network_of(128)({"params": started}, text, before, after)
  assert (scores.argmax(axis=-1) == after).mean() > 0.8  # below .2 with T5's own weights
  encoders = (flax.core.unfreeze(x["encoder"]) for x in (plain, started))
  assert all(jax.tree.leaves(jax.tree.map(lambda a, b: bool((a == b).all()), *encoders)))


@pytest.mark.parametrize(
  ("make", "words"),
  [
    (lambda: model(seqio.PassThroughVocabulary(ROWS)), "with a pretrained BERT"),
    (lambda: model(emb_dim=24).get_initial_variables(jax.random.key(0), shapes()), "emb_dim = 24"),
    (lambda: model().get_initial_variables(jax.random.key(0), shapes(40)), "8 more than"),
  ],
)
def test_what_does_not_fit(make, words):
  with pytest.raises(SgdxError) as error:
    make()
  assert_four_parts(error.value.text, words)


def test_either_vocabulary_with_the_other_network(monkeypatch, tmp_path):
  from sgdx_t5x import tasks

  (tmp_path / "vocab.txt").write_text("[PAD]\n")
  (tmp_path / "sentencepiece.model").write_bytes(b"")
  for name, vocabulary, words in (
    ("vocab.txt", tasks.vocabulary, "of a BERT, and a T5"),
    ("sentencepiece.model", tasks.wordpiece_vocabulary, "sentencepiece.model"),
  ):
    monkeypatch.setenv("SGDX_VOCAB", str(tmp_path / name))
    with pytest.raises(SgdxError) as error:
      vocabulary()
    assert_four_parts(error.value.text, words)
