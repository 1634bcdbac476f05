"""Invalid settings of models and of decoding raise errors in four parts."""

import numpy as np
import pytest
from tiny_model import tiny_model
from valid_settings import assert_four_parts

from t5x import decoding, models
from t5x._settings.model import check_model
from t5x.errors import T5XError
from t5x.examples.t5 import network


@pytest.mark.parametrize(
  "wrong",
  [
    {"num_heads": 0},
    {"emb_dim": -3},
    {"head_dim": 0},
    {"vocab_size": 0},
    {"num_encoder_layers": -1},
    {"dropout_rate": 1.5},
    {"dropout_rate": "x"},
    {"logits_via_embedding": "False"},
    {"dtype": "int32"},
  ],
)
def test_sizes_of_a_model(wrong):
  with pytest.raises(T5XError) as e:
    network.T5Config(**{"vocab_size": 384, **wrong})
  (name, value) = next(iter(wrong.items()))
  assert f"network.T5Config.{name}" in e.value.message
  assert e.value.found == repr(value)


@pytest.mark.parametrize(
  ("name", "value", "expected"),
  [
    ("label_smoothing", "x", "a number of at least 0 and below 1"),
    ("label_smoothing", 1.0, "a number of at least 0 and below 1"),
    ("label_smoothing", None, "a number of at least 0 and below 1"),
    ("z_loss", "x", "a number of at least 0"),
    ("z_loss", float("inf"), "a number of at least 0"),
    ("loss_normalizing_factor", 0, "a number above 0"),
    ("loss_normalizing_factor", [1], "a number of at least 0, or None"),
  ],
)
def test_numbers_of_a_loss(name, value, expected):
  with pytest.raises(T5XError) as e:
    models.EncoderDecoderModel(None, None, None, None, **{name: value})
  assert_four_parts(e.value, repr(value), name, expected)


def test_a_vocabulary_that_the_model_has_no_embedding_for():
  """It used to end as a NaN loss, with the advice to lower the learning rate."""
  with pytest.raises(T5XError) as e:
    check_model(tiny_model(decoding.beam_search, vocab_size=100))
  found = "network.T5Config.vocab_size = 100, 259 tokens in the input vocabulary"
  assert_four_parts(e.value, found, "at least 259", "network.T5Config.vocab_size = 384")
  check_model(tiny_model(decoding.beam_search, vocab_size=259))


def test_what_is_passed_to_a_decode_function_is_a_parameter_of_it():
  """It ended in a traceback at the first evaluation."""
  model = tiny_model(decoding.beam_search)
  for wrong, found in (
    ({"topk": 5}, "DecoderParams.topk is passed to beam_search"),
    ({"num_decodes": "4"}, "DecoderParams.num_decodes"),
    *(({"alpha": float(text)}, "DecoderParams.alpha") for text in ("nan", "inf", "-inf")),
  ):
    model._default_decoder_params = models.DecoderParams(**wrong)
    with pytest.raises(T5XError) as e:
      check_model(model)
    assert found in e.value.text
    assert e.value.fix
  model._default_decoder_params = models.DecoderParams(alpha=-0.5)
  check_model(model)


@pytest.fixture
def bound(monkeypatch):
  """A function that binds settings of a function or method, as gin would."""

  def bind(function, settings):
    monkeypatch.setattr("t5x._settings.model.bound_to", lambda x: settings if x is function else {})

  return bind


@pytest.mark.parametrize(
  ("name", "value"),
  [
    ("max_decode_steps", "10"),
    ("max_decode_steps", -1),
    ("rescale_log_probs", "False"),  # text is true
    ("decode_rng", 5),
    ("temperature", "hot"),
    ("topk", 2.5),
  ],
)
def test_settings_of_sampling(bound, name, value):
  """They ended in tracebacks at the first evaluation."""
  model = tiny_model(decoding.temperature_sample)
  bound(decoding.temperature_sample, {name: value})
  with pytest.raises(T5XError) as e:
    check_model(model)
  assert_four_parts(e.value, repr(value), f"temperature_sample.{name}")
  bound(models.EncoderDecoderModel.predict_batch_with_aux, {"decoder_params": {name: value}})
  with pytest.raises(T5XError) as e:
    check_model(model)
  assert_four_parts(e.value, repr(value), f"predict_batch_with_aux.decoder_params.{name}")


def test_sampling_is_by_number_or_by_probability(bound):
  model = tiny_model(decoding.temperature_sample)
  bound(decoding.temperature_sample, {"topp": 0.9})  # the default of topk is 1
  with pytest.raises(T5XError, match=r"topk = 1 and topp = 0\.9") as e:
    check_model(model)
  assert e.value.fix
  bound(decoding.temperature_sample, {"topk": 0, "topp": 1.5})
  with pytest.raises(T5XError, match="topp is not a probability") as e:
    check_model(model)
  assert_four_parts(e.value, "1.5", "from 0 to 1")
  for topp in (0.9, 1.0):
    bound(decoding.temperature_sample, {"topk": 0, "topp": topp, "decode_rng": np.zeros(2)})
    check_model(model)


@pytest.mark.parametrize(
  "wrong", [{"prompt_with_targets": "False"}, {"return_all_decodes": 2}, {"decoder_params": 0.6}]
)
def test_settings_of_predictions(bound, wrong):
  bound(models.EncoderDecoderModel.predict_batch_with_aux, wrong)
  with pytest.raises(T5XError) as e:
    check_model(tiny_model(decoding.beam_search))
  (name, value) = next(iter(wrong.items()))
  assert_four_parts(e.value, repr(value), f"predict_batch_with_aux.{name}")


def test_a_decode_function_is_a_function_or_none():
  check_model(tiny_model(None))
  with pytest.raises(T5XError) as e:
    check_model(tiny_model("beam_search"))
  assert_four_parts(e.value, "'beam_search'", "decode_fn")
