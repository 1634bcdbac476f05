"""Checks of a model as gin configures it, before data is read or anything is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import seqio
from flax import linen as nn

from t5x import optimizers
from t5x._model.base import BaseTransformerModel
from t5x._settings.kinds import bound_to, check_kind
from t5x._settings.optimizer import check_optimizer
from t5x.errors import T5XError, check_number, check_whole
from t5x.examples.t5 import network

_DECODING: Mapping[str, Callable[[Any, str], None]] = {
  "topk": lambda value, name: check_whole(value, name, 0),
  "topp": lambda value, name: check_number(value, name, 0),
  "temperature": lambda value, name: check_number(value, name, 0),
  "num_decodes": lambda value, name: check_whole(value, name),
  "alpha": lambda value, name: check_number(value, name),
  "max_decode_len": lambda value, name: check_whole(value, name, optional=True),
}


def check_model(model: Any, trains: bool = False) -> None:
  """Raises T5XError for parts of a model that are invalid or incompatible.

  Args:
    model: what MODEL is bound to.
    trains: whether it needs an optimizer.
  """
  is_model = hasattr(model, "FEATURE_CONVERTER_CLS") and not isinstance(model, type)
  fix = "MODEL = @models.EncoderDecoderModel()"
  check_kind(model, "MODEL", is_model, "a model; append () to a class to create one", fix)
  if not isinstance(model, BaseTransformerModel):  # other models check their own needs
    return
  name = type(model).__name__
  for part, cls, example in (
    ("module", nn.Module, "@network.Transformer()"),
    ("input_vocabulary", seqio.Vocabulary, "%VOCABULARY"),
    ("output_vocabulary", seqio.Vocabulary, "%VOCABULARY"),
    *([("optimizer_def", optimizers.OptimizerDef, "%OPTIMIZER")] if trains else []),
  ):
    value = getattr(model, part)
    expected = f"a {cls.__name__}, for example {example}"
    check_kind(
      value, f"{name}.{part}", isinstance(value, cls), expected, f"{name}.{part} = {example}"
    )
  decode = "@decoding.temperature_sample"
  check_kind(
    model.decode_fn, f"{name}.decode_fn", callable(model.decode_fn), f"a function: {decode}",
    f"{name}.decode_fn = {decode}",
  )  # fmt: skip
  for key, value in bound_to(model.decode_fn).items():
    if key in _DECODING:
      _DECODING[key](value, f"{getattr(model.decode_fn, '__name__', 'decode_fn')}.{key}")
  if isinstance(model.module, network.Transformer):
    _check_network(model)
  if trains:
    check_optimizer(model.optimizer_def)


def _check_network(model: BaseTransformerModel) -> None:
  config = model.module.config
  check_kind(
    config,
    "network.Transformer.config",
    isinstance(config, network.T5Config),
    "a T5Config",
    "network.Transformer.config = @network.T5Config()",
  )
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
