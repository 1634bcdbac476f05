"""All matrix products of a network: of bfloat16 operands on a CPU, if chosen.

The choice is `utils.cpu_matmul.operands`. Such products are summed in float32, and all else stays
float32 too: norms, softmax, parameters, optimizer. By default, where the operands are not float32,
or where the device is not a CPU, a product is that of `jax.numpy`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import layout

from t5x import active_mesh
from t5x._process import matmul

Array = jax.Array

# Minimum of the smallest and second smallest of a product's rows, columns and terms for it to be
# cast. Smaller products gain a third at most, or take less time than the cast itself, and in small
# networks rounding weighs more.
_FEWEST, _SECOND = 64, 129


def einsum(subscripts: str, a: Array, b: Array, out_dtype: Any = None) -> Array:
  """Like `jnp.einsum` of two operands.

  Args:
    subscripts: those of the two operands and the result, e.g. '...qd,...kd->...qk'; each letter
      occurs in at least two of the three.
    a: the first operand.
    b: the second operand.
    out_dtype: type that products are summed and returned in; None is that of the operands.
  """
  if _is_to_be_cast(subscripts, a, b):
    return _einsum(subscripts, a, b)
  return jnp.einsum(subscripts, a, b, preferred_element_type=out_dtype)


def dot(x: Array, kernel: Array, out_dtype: Any = None, transposed: bool = False) -> Array:
  """`[..., K]` times `[K, N]`, or times `[N, K]` transposed -> `[..., N]`; like `einsum`."""
  rows = jax.ShapeDtypeStruct((math.prod(x.shape[:-1]), x.shape[-1]), x.dtype)
  subscripts = "mk,nk->mn" if transposed else "mk,kn->mn"
  if not _is_to_be_cast(subscripts, rows, kernel):
    return jnp.dot(x, kernel.T if transposed else kernel, preferred_element_type=out_dtype)
  return _einsum(subscripts, x.reshape(rows.shape), kernel).reshape(*x.shape[:-1], -1)


def cast_kernels(params: Any) -> Any:
  """Casts a network's kernels, once for all their products; returns `params` if none are cast."""
  if not _casts():
    return params

  def cast(path, x):
    is_kernel = jax.tree_util.keystr(path[-1:], simple=True) == "kernel"
    return _cast(x) if is_kernel and x.dtype == jnp.float32 and _is_wide(x.shape) else x

  return jax.tree_util.tree_map_with_path(cast, params)


def _casts() -> bool:
  return matmul.operands() == matmul.BFLOAT16 and jax.default_backend() == "cpu"


def _is_to_be_cast(subscripts: str, a: Any, b: Any) -> bool:
  """Whether a product of these operands is wide enough to gain from bfloat16."""
  if not _casts():
    return False
  if not a.dtype == b.dtype == jnp.float32:
    return False
  of_a, of_b, out = _letters(subscripts)
  sizes = dict(zip(of_a, a.shape[-len(of_a) :], strict=True))
  sizes |= zip(of_b, b.shape[-len(of_b) :], strict=True)

  def size(letters: set[str]) -> int:
    return math.prod(sizes[x] for x in letters)

  rows, columns, terms = set(out) - set(of_b), set(out) - set(of_a), set(sizes) - set(out)
  return _is_wide([size(rows), size(columns), size(terms)])


def _is_wide(sizes: Sequence[int]) -> bool:
  fewest, second = sorted(sizes)[:2]
  return fewest >= _FEWEST and second >= _SECOND


def _letters(subscripts: str) -> tuple[str, str, str]:
  """'...qd,...kd->...qk' -> ('qd', 'kd', 'qk')."""
  inputs, out = subscripts.replace("...", "").split("->")
  of_a, of_b = inputs.split(",")
  return of_a, of_b, out


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _einsum(subscripts: str, a: Array, b: Array) -> Array:
  return _multiply(subscripts, _cast(a), _cast(b))


def _forward(subscripts, a, b):
  a, b = _cast(a), _cast(b)
  return _multiply(subscripts, a, b), (a, b)


def _backward(subscripts, inputs, gradient):
  # Otherwise the gradient would be float32, and so would its products.
  a, b = inputs
  gradient = _cast(gradient)
  of_inputs, out = subscripts.split("->")
  of_a, of_b = of_inputs.split(",")
  return (
    _multiply(f"{out},{of_b}->{of_a}", gradient, b),
    _multiply(f"{of_a},{out}->{of_b}", a, gradient),
  )


_einsum.defvjp(_forward, _backward)


def _cast(x: Array) -> Array:
  return x.astype(jnp.bfloat16)


def _multiply(subscripts: str, a: Array, b: Array) -> Array:
  """Like `jnp.einsum` of bfloat16 operands, in float32.

  For two matrices, the result's rows come from the first, which is row-major: other forms are
  multiplied at half the rate or less, or XLA has no code for them.
  """
  if a.ndim == b.ndim == 2 and active_mesh.num_devices() == 1:
    of_a, of_b, out = _letters(subscripts)
    if out[0] in of_b:
      a, b, of_a, of_b = b, a, of_b, of_a
    if of_a[0] not in out:
      a, of_a = _laid_out(a.T), of_a[::-1]
    subscripts = f"{of_a},{of_b}->{out}"
  return jnp.einsum(subscripts, a, b, preferred_element_type=jnp.float32)


def _laid_out(x: Array) -> Array:
  """Keeps XLA from leaving a transposition to the operation that reads `x`."""
  return layout.with_layout_constraint(x, layout.Layout(major_to_minor=tuple(range(x.ndim))))
