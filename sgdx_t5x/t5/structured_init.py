"""An initialization with which a small T5 without pretraining learns to copy in minutes, not days.

What takes a small transformer longest is to find the circuit that copies a value from the
dialogue: attend to a token by what precedes it, and output that token. A pretrained T5 has it.
Here the random initial weights get three regularities that bring the circuit within reach, and
nothing else: they encode no word, slot or service, and all weights are trained.

1. Two heads of each stack prefer a neighbour: the previous token, and the next one
   (encoder) or the token itself (decoder). A third head of the encoder can prefer the tokens
   before the previous one: "from" or "to" may precede a name by some words.
2. Cross-attention keys have the same projection as queries, so that like attends to like.
3. Attention outputs are projected by the transpose of the value projection, so that attended
   tokens are copied unchanged; with T5 1.0's shared embedding, they are then the output.

Adafactor, whose steps are relative to a weight's size, preserves them; Adam's equal steps wash
them out of the small query weights early in training.
"""

from collections.abc import Mapping

import flax
import jax.numpy as jnp

from sgdx_t5x.errors import SgdxError
from t5x import models

_NOISE = 0.1  # factor of T5's own initial biases
# Relative position buckets of T5 (32 buckets): in the encoder, 1 is the previous token and 17 the
# next; in the decoder, 1 is the previous token and 0 the token itself.
_NEIGHBOURS = {"encoder": (1, 17), "decoder": (1, 0)}
_EARLIER = (2, 3, 4, 5)


class StructuredInitModel(models.EncoderDecoderModel):
  """T5X's encoder-decoder model with the initialization above. Needs at least two heads.

  Args:
    neighbour: attention logit of the preferred neighbour relative to any other token. Among n
      tokens, its attention weight is about e**neighbour / (e**neighbour + n).
    match: cross-attention logit of a token with itself; about 0 for others. T5's own
      initial weights give 1.
    earlier: attention logit, in the encoder's third head, of each of the four tokens before the
      previous one. 0 leaves that head unchanged, and two heads are enough.
  """

  def __init__(
    self, *args, neighbour: float = 4.0, match: float = 1.0, earlier: float = 0.0, **kwargs
  ):
    self._logits = {"neighbour": neighbour, "match": match, "earlier": earlier}
    super().__init__(*args, **kwargs)

  def get_initial_variables(self, *args, **kwargs):
    """Same as T5X's, with `params` restructured."""
    variables = super().get_initial_variables(*args, **kwargs)
    params = restructure(flax.core.unfreeze(variables["params"]), **self._logits)
    return flax.core.freeze({**variables, "params": params})


def restructure(
  params: Mapping, neighbour: float = 4.0, match: float = 1.0, earlier: float = 0.0
) -> dict:
  """Returns parameters of a T5 1.0 or 1.1 (T5X's tree) with the three regularities.

  Raises:
    SgdxError: there are not enough heads.
  """
  params = dict(params)
  for side, neighbours in _NEIGHBOURS.items():
    stack = dict(params[side])
    bias = stack["relpos_bias"]["rel_embedding"] * _NOISE  # [heads, buckets]
    if len(bias) < (minimum := 3 if earlier else 2):
      raise SgdxError(
        f"network.T5Config.num_heads = {len(bias)}",
        expected=f"at least {minimum} for the structured initialization",
        fix="use more heads; with StructuredInitModel.earlier = 0.0, two are enough",
      )
    for head, bucket in enumerate(neighbours):
      bias = bias.at[head, bucket].add(neighbour)
    if side == "encoder" and earlier:
      bias = bias.at[len(neighbours), jnp.array(_EARLIER)].add(earlier)
    stack["relpos_bias"] = {"rel_embedding": bias}
    for name in [name for name in stack if name.startswith("layers_")]:
      stack[name] = _layer(stack[name], match)
    params[side] = stack
  return params


def _layer(layer: Mapping, match: float) -> dict:
  layer = dict(layer)
  for name in [name for name in layer if name.endswith("attention")]:
    attention = dict(layer[name])
    attention["out"] = {"kernel": jnp.transpose(attention["value"]["kernel"])}
    if name == "encoder_decoder_attention":
      kernel = attention["query"]["kernel"] * match**0.5
      attention["query"] = attention["key"] = {"kernel": kernel}
    layer[name] = attention
  return layer
