"""An initialization with which a small encoder learns to match and point in minutes, from scratch.

As `structured_init` does for T5, it gives the random initial weights regularities that approximate
a pretrained encoder; they encode no word, slot or service, and all weights are trained.

1. A quarter of the width holds positions (sinusoids) and the rest tokens, so that neither masks the
   other.
2. In each layer two heads prefer a neighbour, the previous and the next token, and a third prefers
   tokens identical to the query token: a slot's name in the user's words, or a value in two
   utterances. In the first layer a fourth head prefers some ten tokens around: in "Fresno as the
   town", the last word says what the first one is. (Encoders narrower than 40 have too few
   sinusoids for it.)
3. Attention outputs are projected by the transpose of the value projection, so that attended tokens
   are copied unchanged.
4. Pointers point to tokens similar to the slot, ignoring positions.
5. Kernels are scaled by their fan-in (1 / sqrt of the inputs), token and position embeddings to a
   standard deviation of 1: BERT's 0.02 is for a width of 768, and Adam's first steps would wash out
   small weights.
"""

import math
from collections.abc import Mapping
from typing import Any

import flax
import jax
import jax.numpy as jnp

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.spandst.span_model import SpanModel

_ADDED = ("slot_context", "intent_context", "marks")  # embeddings that are added to tokens
# (head, offset of its neighbour, first of its sinusoids); the last prefers some ten tokens around.
_NEAR = ((0, -1, 0), (1, 1, 0), (3, 0, 4))
_PERIODS = (2.5, 200.0)  # shortest and longest of the sinusoids, in tokens


class StructuredSpanModel(SpanModel):
  """The span tracker with the initialization described above. Needs at least three heads.

  Args:
    neighbour: attention logit of the preferred neighbour; about 0 for other tokens.
    match: attention logit of identical tokens; about 0 for other tokens.
  """

  def __init__(self, *args, neighbour: float = 8.0, match: float = 6.0, **kwargs):
    super().__init__(*args, **kwargs)
    self._logits = {"neighbour": neighbour, "match": match}
    if self.module.config.num_heads < 3:
      raise SgdxError(
        f"encoder.BertConfig.num_heads = {self.module.config.num_heads}",
        expected="at least 3 for the structured initialization",
        fix="use more heads, or span_model.SpanModel",
      )

  def get_initial_variables(self, *args, **kwargs):
    """Same as `SpanModel`'s, with `params` restructured."""
    variables = flax.core.unfreeze(super().get_initial_variables(*args, **kwargs))
    heads = self.module.config.num_heads
    variables["params"] = restructure(variables["params"], heads, **self._logits)
    return flax.core.freeze(variables)


def restructure(
  params: Mapping[str, Any], num_heads: int, neighbour: float = 8.0, match: float = 6.0
) -> dict[str, Any]:
  """Returns a span tracker's parameters with the regularities. Args: see `StructuredSpanModel`."""
  width = params["encoder"]["position_embedder"]["embedding"].shape[1]
  positions = 2 * (width // 8)  # sines and cosines
  params = jax.tree_util.tree_map_with_path(_scaled, dict(params))
  for name in _ADDED:
    params[name] = {key: x.at[:, :positions].set(0.0) for key, x in params[name].items()}
  bert = dict(params["encoder"])
  low, high = (2 * math.pi / period for period in reversed(_PERIODS))
  frequencies = jnp.geomspace(high, low, positions // 2)
  bert["position_embedder"] = {"embedding": _sinusoids(bert["position_embedder"], frequencies)}
  for name in ("token_embedder", "type_embedder"):
    bert[name] = {"embedding": bert[name]["embedding"].at[:, :positions].set(0.0)}
  size = width // num_heads
  for name, arrays_by_part in list(bert.items()):
    if not name.startswith("layers_"):
      continue
    layer = {part: dict(arrays) for part, arrays in arrays_by_part.items()}
    query, key = layer["query"]["kernel"], layer["key"]["kernel"]
    is_wide = num_heads > 3 and len(frequencies) > _NEAR[2][2]
    for head, step, first in _NEAR[: 3 if name == "layers_0" and is_wide else 2]:
      columns = slice(head * size, (head + 1) * size)
      of_query, of_key = _neighbour_kernels(frequencies, first, width, size, step, neighbour)
      query, key = query.at[:, columns].set(of_query), key.at[:, columns].set(of_key)
    # The third head: queries and keys by one orthonormal map of tokens, so that like meets like.
    columns = slice(2 * size, 3 * size)
    basis = jnp.linalg.qr(key[positions:, columns])[0] * math.sqrt(match / math.sqrt(size))
    basis = jnp.pad(basis, ((positions, 0), (0, 0)))
    query, key = query.at[:, columns].set(basis), key.at[:, columns].set(basis)
    layer["query"]["kernel"], layer["key"]["kernel"] = query, key
    # Positions are not changed: a layer adds only to the other dimensions.
    layer["out"]["kernel"] = layer["value"]["kernel"].T.at[:, :positions].set(0.0)
    layer["wo"]["kernel"] = layer["wo"]["kernel"].at[:, :positions].set(0.0)
    bert[name] = layer
  # Pointers compare tokens as they are, by all dimensions but those of positions.
  alike = jnp.diag((jnp.arange(width) >= positions).astype(jnp.float32))
  for name in ("starts", "ends", "memory"):
    params[name] = {key: {**dense, "kernel": alike} for key, dense in params[name].items()}
  return {**params, "encoder": bert}


def _scaled(path: Any, x: jax.Array) -> jax.Array:
  """Rescales a parameter from BERT's standard deviation of 0.02 to that of this initialization."""
  names = [jax.tree_util.keystr((key,), simple=True) for key in path]
  if names[0] in _ADDED or "type_embedder" in names:
    deviation = 0.3  # several are added to a token, which must stay recognizable
  elif names[-1] == "embedding":
    deviation = 1.0
  else:
    deviation = 1.0 / math.sqrt(x.shape[0])
  return x * (deviation / 0.02) if x.ndim == 2 else x


def _sinusoids(table: Mapping[str, jax.Array], frequencies: jax.Array) -> jax.Array:
  """Positions `[P, E]`: a sine and a cosine per frequency, with deviation 1; then zeros."""
  rows, width = table["embedding"].shape
  angles = jnp.arange(rows)[:, None] * frequencies
  waves = math.sqrt(2) * jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1)
  waves = waves.reshape(rows, -1)
  return jnp.pad(waves, ((0, 0), (0, width - waves.shape[1])))


def _neighbour_kernels(
  frequencies: jax.Array, first: int, width: int, size: int, step: int, logit: float
) -> tuple[jax.Array, jax.Array]:
  """Query and key kernels `[E, D]` whose dot product is greatest at an offset of `step` tokens.

  Uses the sinusoids from `first` on, fastest first; without the fast ones the peak is wider.
  """
  pairs = min(len(frequencies) - first, size // 2)
  scale = math.sqrt(logit * math.sqrt(size) / (2 * pairs))
  query = key = jnp.zeros((width, size))
  # sin(a + s) = sin a cos s + cos a sin s; cos(a + s) = cos a cos s - sin a sin s
  for i in range(pairs):
    turn = step * frequencies[first + i]
    block = jnp.array([[jnp.cos(turn), -jnp.sin(turn)], [jnp.sin(turn), jnp.cos(turn)]])
    at = 2 * (first + i)
    query = query.at[at : at + 2, 2 * i : 2 * i + 2].set(block * scale)
    key = key.at[at : at + 2, 2 * i : 2 * i + 2].set(jnp.eye(2) * scale)
  return query, key
