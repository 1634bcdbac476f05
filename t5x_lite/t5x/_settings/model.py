"""Checks of a model as gin configures it, before data is read or anything is compiled."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import gin
import jax
import jax.numpy as jnp
import seqio

from t5x import adafactor, decoding, optimizers
from t5x._model.base import BaseTransformerModel
from t5x.errors import T5XError, check_flag, check_number, check_whole, first_line
from t5x.examples.t5 import network

_DECODING: Mapping[str, Callable[[Any, str], None]] = {
  "topk": lambda value, name: check_whole(value, name, 0),
  "topp": lambda value, name: check_number(value, name, 0),
  "temperature": lambda value, name: check_number(value, name, 0),
  "num_decodes": lambda value, name: check_whole(value, name),
  # Beyond, the penalty of long decodes is no float32: all of them would score alike.
  "alpha": lambda value, name: check_number(value, name, -10, below=10),
  "max_decode_len": lambda value, name: check_whole(value, name, optional=True),
  "max_decode_steps": lambda value, name: check_whole(value, name, 0, optional=True),
  "rescale_log_probs": check_flag,
  "decode_rng": lambda value, name: _check_key(value, name),
}
_CHOICES = ("return_all_decodes", "prompt_with_targets")  # of predict_batch_with_aux


def check_model(model: Any, trains: bool = False) -> None:
  """Raises T5XError for parts of a model that are invalid or incompatible.

  Args:
    model: what MODEL is bound to.
    trains: whether it needs an optimizer.
  """
  if isinstance(model, type) or not hasattr(model, "FEATURE_CONVERTER_CLS"):
    raise T5XError(
      "MODEL is not a model.",
      found=repr(model)[:200],
      expected="a model; append () to a class to create one",
      fix="MODEL = @models.EncoderDecoderModel()",
    )
  if not isinstance(model, BaseTransformerModel):  # other models check their own needs
    return
  _check_decoding(model)
  if isinstance(model.module, network.Transformer):
    _check_network(model)
  if trains:
    check_optimizer(model.optimizer_def)


def bound_to(configurable: Any) -> Mapping[str, Any]:
  """Returns what gin binds to a class or function that it configured; {} if it did not."""
  # A reference is to a subclass that gin makes, or to a function around the one it knows.
  original = [inspect.unwrap(configurable)] if callable(configurable) else []
  for candidate in getattr(configurable, "__mro__", original):
    try:
      gin.get_bindings(candidate, resolve_references=False)
    except ValueError:  # not configurable
      continue
    return gin.get_bindings(candidate)
  return {}


def _check_decoding(model: BaseTransformerModel) -> None:
  """Checks what gin binds to the decode function, and what the model passes to it."""
  if model.decode_fn is None:  # as in T5X, a model need not decode
    return
  if not callable(model.decode_fn):
    raise T5XError(
      "The model's decode_fn is no function.",
      found=repr(model.decode_fn),
      expected="a function, not its name in quotes",
      fix="models.EncoderDecoderModel.decode_fn = @decoding.temperature_sample",
    )
  function = getattr(model.decode_fn, "__name__", "decode_fn")
  bound = {f"{function}.{key}": value for key, value in bound_to(model.decode_fn).items()}
  default = getattr(model, "_default_decoder_params", None)
  passed = {f"DecoderParams.{k}": v for k, v in (default.as_kwargs() if default else {}).items()}
  method = _bound_to_predictions(model)
  for choice in _CHOICES:
    if method.get(choice) is not None:
      check_flag(method[choice], f"predict_batch_with_aux.{choice}")
  passed |= _decoder_params(method.get("decoder_params"))
  if method.get("num_decodes") is not None:
    passed["predict_batch_with_aux.num_decodes"] = method["num_decodes"]
  parameters = inspect.signature(model.decode_fn).parameters
  takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
  settings = {key: p.default for key, p in parameters.items()}
  for name, value in {**bound, **passed}.items():
    key = name.rpartition(".")[2]
    settings[key] = value
    if key in _DECODING:
      _DECODING[key](value, name)
    if name in passed and key not in parameters and not takes_any:
      raise T5XError(
        f"{name} is passed to {function}, which has no such parameter.",
        found=f"{name} = {value!r}",
        expected=f"a parameter of {function}",
        available=", ".join(parameters),
        fix="correct the name, or set the model's decode_fn: decoding.temperature_sample samples, "
        "decoding.beam_search does not",
      )
  original = getattr(model.decode_fn, "func", model.decode_fn)
  if inspect.unwrap(original) is decoding.temperature_sample:
    decoding.check_kept_tokens(settings["topk"], settings["topp"])


def _bound_to_predictions(model: BaseTransformerModel) -> Mapping[str, Any]:
  """Returns what gin binds to predict_batch_with_aux; raises T5XError if that does not reach it.

  Gin wraps the methods of the class that a binding names. A subclass made in Python inherits from
  the class as it was.
  """
  cls, name = type(model), "predict_batch_with_aux"
  method = getattr(cls, name)
  bound = bound_to(method)
  if not bound or name in vars(cls):
    return bound
  named = method.__qualname__
  own = f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}.{name}"
  raise T5XError(
    f"Gin's settings of {named} do not reach {cls.__name__}, which inherits it.",
    found=", ".join(f"{named}.{key} = {value!r}" for key, value in bound.items()),
    expected=f"settings of {own}, as gin sets the methods of the class that is named alone",
    fix=f"write {own} in their place, in all gin files of the run",
  )


def _decoder_params(settings: Any) -> dict[str, Any]:
  """Returns what predict_batch_with_aux.decoder_params passes to the decode function, by name."""
  name = "predict_batch_with_aux.decoder_params"
  if isinstance(settings or {}, Mapping):
    return {f"{name}.{key}": value for key, value in (settings or {}).items()}
  raise T5XError(
    f"{name} has no values of parameters.",
    found=repr(settings),
    expected="parameter -> value, of the decode function",
    fix=name + " = {'alpha': 0.6}",
  )


def _check_key(value: Any, name: str) -> None:
  """Raises T5XError unless `value` is a random key, or None."""
  if value is None or hasattr(value, "dtype"):
    return
  raise T5XError(
    f"{name} is no random key.",
    found=repr(value),
    expected="a key of JAX, or None",
    fix=f"{name} = @jax.random.PRNGKey(), with jax.random.PRNGKey.seed = 0",
  )


def _check_network(model: BaseTransformerModel) -> None:
  """Raises T5XError if the embedding has no row for some token of a vocabulary."""
  config = model.module.config
  for part in ("input_vocabulary", "output_vocabulary"):
    vocabulary = getattr(model, part)
    size = _size(vocabulary, part)
    if config.vocab_size < size:
      raise T5XError(
        "The model's vocab_size is smaller than its vocabulary: some tokens have no embedding, "
        "and losses would be NaN.",
        found=f"network.T5Config.vocab_size = {config.vocab_size}, {size} tokens in the "
        f"{part.replace('_', ' ')}",
        expected=f"at least {size}",
        available=str(vocabulary),
        fix=f"network.T5Config.vocab_size = {-(-size // 128) * 128}, or another VOCABULARY",
      )


def _size(vocabulary: seqio.Vocabulary, part: str) -> int:
  """Size of a vocabulary, which is read from its file."""
  try:
    return int(vocabulary.vocab_size)
  except Exception as e:
    if "gs://" in str(vocabulary):  # the scripts explain what Google's storage says
      raise
    raise T5XError(
      f"The {part.replace('_', ' ')} cannot be read.",
      found=f"{vocabulary}: {str(e) or type(e).__name__}"[:300],
      expected="a non-empty SentencePiece model",
      fix="set VOCABULARY",
    ) from e


def check_optimizer(optimizer: optimizers.OptimizerDef) -> None:
  """Raises T5XError for settings with which an optimizer could not take a step.

  Adafactor and optax notice a setting of the wrong type at the first step only.
  """
  if not isinstance(optimizer, (adafactor.Adafactor, optimizers.OptaxWrapper)):
    return

  def step(params: Any) -> Any:
    settings = optimizer.update_hyper_params(learning_rate=1.0)
    return optimizer.apply_gradient(settings, params, optimizer.init_state(params), params)

  try:
    jax.eval_shape(step, {"kernel": jax.ShapeDtypeStruct((2, 2), jnp.float32)})
  except TypeError as e:
    raise T5XError(
      "The optimizer cannot take a step with its settings.",
      found=first_line(e),
      expected="numbers, or the values in its documentation",
      fix="correct what gin binds to OPTIMIZER and to the optax functions in it",
    ) from e
  except Exception:  # it needs the real parameters
    return
