"""Decodes and scores against Google's T5X (golden set A), and when decoding stops."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5x import decoding
from t5x._decode.sample_token import keep_nucleus
from t5x.errors import T5XError

GREEDY = functools.partial(decoding.temperature_sample, topk=1)
RAW = functools.partial(decoding.temperature_sample, topk=1, rescale_log_probs=False)
SAMPLE = functools.partial(decoding.temperature_sample, topk=0, temperature=0.7)
ALL = {"return_all_decodes": True}

# name: (decode_fn, batch, arguments of predict_batch_with_aux)
CASES = {
  "beam1": (decoding.beam_search, "unpacked", ALL),
  "beam4": (decoding.beam_search, "unpacked", ALL | {"num_decodes": 4}),
  "beam4_alpha": (
    decoding.beam_search,
    "unpacked",
    ALL | {"num_decodes": 4, "decoder_params": {"alpha": 0.0}},
  ),
  "beam2_prompt": (
    decoding.beam_search,
    "prompt",
    ALL | {"num_decodes": 2, "prompt_with_targets": True},
  ),
  "sample_topk1": (GREEDY, "unpacked", ALL),
  "sample_topk1_raw": (RAW, "unpacked", ALL),
  "sample_topk1_prompt": (RAW, "prompt", ALL | {"prompt_with_targets": True}),
  "sample_rng": (SAMPLE, "unpacked", ALL | {"num_decodes": 3, "rng": jax.random.PRNGKey(7)}),
}


SHORT = ("beam4", "sample_topk1", "sample_topk1_prompt", "sample_rng")


@pytest.mark.parametrize(
  "case", [pytest.param(k, marks=() if k in SHORT else pytest.mark.long) for k in CASES]
)
def test_decodes(golden, case):
  decode_fn, batch_name, kwargs = CASES[case]
  model = golden.model(decode_fn=decode_fn)
  predict = jax.jit(functools.partial(model.predict_batch_with_aux, **kwargs))
  decodes, aux = predict(golden.params, golden.batches[batch_name])
  np.testing.assert_array_equal(decodes, golden.expected[f"predict/{case}/decodes"])
  np.testing.assert_allclose(
    aux["scores"],
    golden.expected[f"predict/{case}/scores"],
    rtol=1e-6,
    atol=golden.atol("logits"),
  )


@pytest.mark.parametrize("case", ["beam2_prompt", "sample_topk1"])
def test_decodes_as_computed_on_a_tpu(golden, case, monkeypatch):
  """Its caches have a different layout; the numbers are the same."""
  monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
  test_decodes(golden, case)


@pytest.mark.long
@pytest.mark.parametrize("case", ["beam1", "beam2_prompt", "sample_topk1_prompt"])
def test_decodes_in_segments_are_the_same(golden, case):
  decode_fn, batch_name, kwargs = CASES[case]
  model = golden.model(decode_fn=decode_fn)
  batch, rows, outputs = golden.batches[batch_name], None, {}
  for start, stop in ((0, 2), (2, 5), (5, 14)):

    @jax.jit
    def predict(params, batch, rows, start=start, stop=stop):
      segment = decoding.Segment(start, stop, rows)
      return model.predict_batch_with_aux(params, batch, segment=segment, **kwargs)

    paused = predict(golden.params, batch, rows)
    decodes, aux = paused.outputs
    for row in np.flatnonzero(paused.finished):  # a row that is done stays as it is
      outputs.setdefault(int(row), (decodes[row], aux["scores"][row]))
    rows, batch = paused.rows, {}
  decodes, scores = (np.stack([outputs[i][k] for i in range(6)]) for k in (0, 1))
  np.testing.assert_array_equal(decodes, golden.expected[f"predict/{case}/decodes"])
  np.testing.assert_allclose(
    scores, golden.expected[f"predict/{case}/scores"], rtol=1e-6, atol=golden.atol("logits")
  )


def test_sampling_cannot_be_cut_into_segments(golden):
  model = golden.model(decode_fn=SAMPLE)
  with pytest.raises(decoding.CannotPauseError):
    model.predict_batch(
      golden.params, golden.batches["unpacked"], segment=decoding.Segment(0, 2, None)
    )


def test_best_decode_is_the_last(golden):
  # The recorded top 1 is the last of all: predict_batch_with_aux only slices.
  for key in ("decodes", "scores"):
    np.testing.assert_array_equal(
      golden.expected[f"predict/beam4_top1/{key}"],
      golden.expected[f"predict/beam4/{key}"][:, -1],
    )


def _scripted(script, vocab=8):
  """A model that predicts `script[row]`, and counts its steps in the cache."""
  script = jnp.asarray(script)

  def tokens_to_logits(state):
    wanted = jnp.repeat(script, state.cur_token.shape[0] // script.shape[0], axis=0)
    token = jax.lax.dynamic_index_in_dim(wanted, state.cur_index, axis=1, keepdims=False)
    logits = 20.0 * jax.nn.one_hot(token, vocab)
    return logits, {"steps": state.cache["steps"] + 1}

  return tokens_to_logits


def test_greedy_stops_when_all_rows_have_eos():
  steps = []

  model = _scripted([[3, 1, 5, 5], [4, 5, 1, 5]])

  def observed(state):
    jax.debug.callback(lambda i: steps.append(int(i)), state.cur_index)
    return model(state)

  decodes, scores = decoding.temperature_sample(
    inputs=jnp.zeros((2, 10), jnp.int32),
    cache={"steps": jnp.zeros(())},
    tokens_to_logits=observed,
    eos_id=1,
  )
  jax.effects_barrier()
  assert sorted(steps) == [0, 1, 2]
  assert decodes[:, 0, :4].tolist() == [[3, 1, 0, 0], [4, 5, 1, 0]]
  assert scores.shape == (2, 1)


def test_nucleus_keeps_the_fewest_tokens():
  logits = jnp.log(jnp.asarray([[0.5, 0.3, 0.15, 0.05]]))
  masked = [keep_nucleus(logits, topp) for topp in (1e-9, 0.4, 0.6, 0.9, 0.999)]
  assert [int((x > decoding.NEG_INF / 2).sum()) for x in masked] == [1, 1, 2, 3, 4]


def test_topk_and_topp_together_are_refused():
  with pytest.raises(T5XError, match=r"topk = 1 and topp = 0\.5"):
    decoding.temperature_sample(jnp.zeros((1, 2)), {}, _scripted([[1, 1]]), 1, topp=0.5)
