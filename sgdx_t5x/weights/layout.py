"""Names and layouts of all arrays of a T5, in T5X and in Hugging Face files.

Both store attention heads joined, have no biases, and do not rescale queries. They differ in names,
and matrices are transposed, as kernels are [in, out] in T5X. Two families:
  T5 1.0          one MLP input (relu); the logits reuse the embedding, rescaled by 1/sqrt(width)
  T5 1.1, Flan    two MLP inputs (gated gelu); a separate matrix for the logits, not rescaled
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from sgdx_t5x.errors import SgdxError, nearest

# Built in or defaults in both T5X's and Hugging Face's T5.
BUCKETS, MAX_DISTANCE, EPSILON = 32, 128, 1e-6
EMBEDDING, LOGITS = "token_embedder/embedding", "decoder/logits_dense/kernel"
# Of errors about checkpoints that have other arrays.
_EXPECTED = "the parameters of t5x.examples.t5, with layers unstacked, or of an encoder tracker"
_FIX = "export checkpoints of T5 1.0, T5 1.1, Flan-T5, or of an encoder tracker only"
_SHOWN = 6  # names per kind in an error
# Of a layer: T5X's names of a norm and of what follows it, and Hugging Face's name of the latter.
_MLP = ("pre_mlp_layer_norm", "mlp", "DenseReluDense")
_ENCODER_SUBLAYERS = (("pre_attention_layer_norm", "attention", "SelfAttention"), _MLP)
_DECODER_SUBLAYERS = (
  ("pre_self_attention_layer_norm", "self_attention", "SelfAttention"),
  ("pre_cross_attention_layer_norm", "encoder_decoder_attention", "EncDecAttention"),
  _MLP,
)


@dataclasses.dataclass(frozen=True)
class Sizes:
  """What determines the arrays of a T5; fields as in T5X's `network.T5Config`.

  Args:
    vocab_size: rows of the embedding.
    gated: whether the MLP has two inputs, ('gelu', 'linear') instead of ('relu',).
    tied: whether the logits reuse the embedding (`logits_via_embedding`).
  """

  vocab_size: int
  emb_dim: int
  num_heads: int
  head_dim: int
  mlp_dim: int
  num_encoder_layers: int
  num_decoder_layers: int
  gated: bool
  tied: bool

  def gin(self) -> dict[str, Any]:
    """Returns the gin bindings of `network.T5Config` for a checkpoint of these sizes."""
    fields = dataclasses.asdict(self)
    gated, tied = fields.pop("gated"), fields.pop("tied")
    return {
      **fields,
      "mlp_activations": ("gelu", "linear") if gated else ("relu",),
      "logits_via_embedding": tied,
    }


@dataclasses.dataclass(frozen=True)
class Tensor:
  """One array: its T5X path, its Hugging Face name, its shape in T5X.

  Args:
    transposed: whether Hugging Face stores its transpose.
  """

  t5x: str
  hf: str
  shape: tuple[int, ...]
  transposed: bool

  @property
  def hf_shape(self) -> tuple[int, ...]:
    """The shape in Hugging Face's files."""
    return self.shape[::-1] if self.transposed else self.shape

  def turned(self, array: np.ndarray) -> np.ndarray:
    """Returns the array of one layout as the other has it: a view."""
    return array.T if self.transposed else array


@dataclasses.dataclass(frozen=True)
class Weights:
  """The parameters of a T5 or a BERT.

  Args:
    sizes: sizes they were checked against; `bert_layout.BertSizes` for a BERT.
    arrays: {T5X path: array}; exactly those of `tensors(sizes)`.
    step: number of updates so far, if the source records it.
    notes: what a user should know about the source, a line each.
  """

  sizes: Any
  arrays: Mapping[str, np.ndarray]
  step: int = 0
  notes: tuple[str, ...] = ()

  @property
  def num_parameters(self) -> int:
    """Total number of parameters; a tied embedding counts once."""
    return sum(math.prod(array.shape) for array in self.arrays.values())


# --- names ---------------------------------------------------------------------------------


def tensors(sizes: Sizes) -> list[Tensor]:
  """Returns all arrays of a T5 of these sizes, embedding first."""
  table = [Tensor(EMBEDDING, "shared.weight", (sizes.vocab_size, sizes.emb_dim), False)]
  for stack, num_layers, sublayers in (
    ("encoder", sizes.num_encoder_layers, _ENCODER_SUBLAYERS),
    ("decoder", sizes.num_decoder_layers, _DECODER_SUBLAYERS),
  ):
    biases = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    shape = (sizes.num_heads, BUCKETS)
    table.append(Tensor(f"{stack}/relpos_bias/rel_embedding", biases, shape, True))
    for i in range(num_layers):
      for j, (norm, t5x_name, hf_name) in enumerate(sublayers):
        t5x, hf = f"{stack}/layers_{i}", f"{stack}.block.{i}.layer.{j}"
        table.append(_scale(f"{t5x}/{norm}", f"{hf}.layer_norm", sizes))
        matrices = _mlp if t5x_name == "mlp" else _attention
        table += matrices(f"{t5x}/{t5x_name}", f"{hf}.{hf_name}", sizes)
    table.append(_scale(f"{stack}/{stack}_norm", f"{stack}.final_layer_norm", sizes))
  if not sizes.tied:
    table.append(Tensor(LOGITS, "lm_head.weight", (sizes.emb_dim, sizes.vocab_size), True))
  return table


def shapes_of(table: Iterable[Tensor]) -> dict[str, tuple[int, ...]]:
  """Returns {T5X path: shape} of arrays, as `check` expects them."""
  return {tensor.t5x: tensor.shape for tensor in table}


def _scale(t5x: str, hf: str, sizes: Sizes) -> Tensor:
  return Tensor(f"{t5x}/scale", f"{hf}.weight", (sizes.emb_dim,), False)


def _kernel(t5x: str, hf: str, inputs: int, outputs: int) -> Tensor:
  return Tensor(f"{t5x}/kernel", f"{hf}.weight", (inputs, outputs), True)


def _attention(t5x: str, hf: str, sizes: Sizes) -> list[Tensor]:
  joined = sizes.num_heads * sizes.head_dim
  return [
    _kernel(f"{t5x}/query", f"{hf}.q", sizes.emb_dim, joined),
    _kernel(f"{t5x}/key", f"{hf}.k", sizes.emb_dim, joined),
    _kernel(f"{t5x}/value", f"{hf}.v", sizes.emb_dim, joined),
    _kernel(f"{t5x}/out", f"{hf}.o", joined, sizes.emb_dim),
  ]


def _mlp(t5x: str, hf: str, sizes: Sizes) -> list[Tensor]:
  table = []
  for name in ("wi_0", "wi_1") if sizes.gated else ("wi",):
    table.append(_kernel(f"{t5x}/{name}", f"{hf}.{name}", sizes.emb_dim, sizes.mlp_dim))
  return [*table, _kernel(f"{t5x}/wo", f"{hf}.wo", sizes.mlp_dim, sizes.emb_dim)]


# --- sizes from arrays ---------------------------------------------------------------------


def sizes_of(shapes: Mapping[str, tuple[int, ...]], origin: str) -> Sizes:
  """Infers the sizes from T5X's arrays.

  Args:
    shapes: {T5X path: shape}.
    origin: the checkpoint, for error messages.

  Raises:
    SgdxError: an array needed for a size is missing, or is not a matrix.
  """
  shape = functools.partial(matrix_shape, shapes, origin)
  vocab_size, emb_dim = shape(EMBEDDING)
  num_heads, _ = shape("encoder/relpos_bias/rel_embedding")
  first_layer = "encoder/layers_0"
  _, joined = shape(f"{first_layer}/attention/query/kernel")
  mlp_dim, _ = shape(f"{first_layer}/mlp/wo/kernel")
  return Sizes(
    vocab_size=vocab_size,
    emb_dim=emb_dim,
    num_heads=num_heads,
    head_dim=joined // num_heads,  # a remainder shows up as a wrong shape in `check`
    mlp_dim=mlp_dim,
    num_encoder_layers=num_layers(shapes, "encoder/"),
    num_decoder_layers=num_layers(shapes, "decoder/"),
    gated=f"{first_layer}/mlp/wi_0/kernel" in shapes,
    tied=LOGITS not in shapes,
  )


def matrix_shape(shapes: Mapping[str, tuple[int, ...]], origin: str, path: str) -> tuple[int, ...]:
  """Returns the shape of a matrix, for `sizes_of`. Raises SgdxError if there is no such matrix."""
  shape = shapes.get(path)
  if shape is None or len(shape) != 2 or 0 in shape:
    raise SgdxError(
      f"{origin}: {path} {'is missing' if shape is None else f'has shape {list(shape)}'}",
      expected=_EXPECTED,
      available=nearest(path, shapes),
      fix=_FIX,
    )
  return shape


def num_layers(paths: Iterable[str], prefix: str) -> int:
  """Returns how many layers a stack has. Args: prefix, what its arrays' T5X paths begin with."""
  layers = {path.split("/")[1] for path in paths if path.startswith(f"{prefix}layers_")}
  return len(layers)  # a gap in their numbers shows up as missing and unknown arrays in `check`


# --- checks --------------------------------------------------------------------------------


def check(
  expected_shapes: Mapping[str, tuple[int, ...]],
  shapes: Mapping[str, tuple[int, ...]],
  origin: str,
  expected: str = _EXPECTED,
  fix: str = _FIX,
  available: str = "",
) -> None:
  """Compares names and shapes.

  Args:
    expected_shapes: {name: shape} required by the sizes.
    shapes: {name: shape} in the file or checkpoint.
    origin: the file or checkpoint, for error messages.
    expected, fix, available: of the error; by default, those for a checkpoint.

  Raises:
    SgdxError: lists all missing, unknown and wrongly shaped arrays.
  """
  # All problems at once: a wrong size shows up in many arrays.
  missing, differing = [], []
  for name, shape in expected_shapes.items():
    if name not in shapes:
      missing.append(name)
    elif tuple(shapes[name]) != tuple(shape):
      differing.append(f"{name}: {list(shapes[name])}, not {list(shape)}")
  unknown = [name for name in shapes if name not in expected_shapes]
  if count := len(missing) + len(unknown) + len(differing):
    # An unknown array is often a missing one under another name.
    for i, name in enumerate(unknown[:_SHOWN]):
      unknown[i] = _with_nearest(name, missing or expected_shapes)
    lines = [f"{origin}: {count} arrays do not match"]
    lines += _listed("missing", missing)
    lines += _listed("unknown", unknown)
    lines += _listed("wrong shape", differing)
    raise SgdxError("\n".join(lines), expected=expected, available=available, fix=fix)


def _with_nearest(name: str, names: Iterable[str]) -> str:
  close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
  return f"{name} (nearest: {close[0]})" if close else name


def _listed(kind: str, names: list[str]) -> list[str]:
  if not names:
    return []
  lines = [f"    {kind}:", *(f"      {name}" for name in names[:_SHOWN])]
  if len(names) > _SHOWN:
    lines.append(f"      ... and {len(names) - _SHOWN:,} more")
  return lines


def check_finite(arrays: Mapping[str, np.ndarray], origin: str) -> None:
  """Raises SgdxError if a value is NaN or infinite: such a model neither trains nor predicts."""
  diverged = [name for name, array in arrays.items() if not np.isfinite(array).all()]
  if diverged:
    raise SgdxError(
      "\n".join([f"{origin}: values are not finite", *_listed("in", diverged)]),
      expected="finite numbers",
      fix="use another checkpoint: the run that wrote this one diverged, or overflowed float16",
    )
