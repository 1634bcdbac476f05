"""Operand type of a float32 network's matrix products on a CPU: float32, or bfloat16 by choice.

Set when a script starts; `t5x.examples.t5.products` casts accordingly. `t5x.utils` re-exports
`cpu_matmul`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import gin

from t5x.errors import T5XError, nearest

FLOAT32, BFLOAT16 = "float32", "bfloat16"

_operands = FLOAT32


def operands() -> str:
  """Returns the type that float32 operands are cast to on a CPU: 'float32' or 'bfloat16'."""
  return _operands


@contextlib.contextmanager
def used(dtype: str) -> Iterator[None]:
  """Makes `operands` return `dtype` until the end of the block, for what is traced within."""
  global _operands
  previous, _operands = _operands, dtype
  try:
    yield
  finally:
    _operands = previous


@gin.configurable(module="t5x.utils")
def cpu_matmul(operands: str = FLOAT32) -> str:
  """Sets the operand type of a float32 network's matrix products on a CPU.

  Products of bfloat16 operands, summed in float32, take half the time on some CPUs with
  instructions for them, and longer than those of float32 on others (benchmarks/history.md). Narrow
  products stay float32. The scripts call this when they start. In a gin file that imports
  `t5x.utils` (Google's T5X has no such function: leave the line out there):

    utils.cpu_matmul.operands = 'bfloat16'

  Args:
      operands: 'float32' or 'bfloat16'. It has no effect on other devices, or on networks of other
          types than float32.

  Returns:
      `operands`.

  Raises:
      T5XError: it is neither.
  """
  global _operands
  if operands not in (FLOAT32, BFLOAT16):
    close = nearest(str(operands), (FLOAT32, BFLOAT16), n=1) or [FLOAT32]
    raise T5XError(
      "utils.cpu_matmul.operands is not an operand type.",
      found=repr(operands),
      expected="the operand type of matrix products on a CPU",
      available=f"{FLOAT32} (the default), {BFLOAT16}",
      fix=f"utils.cpu_matmul.operands = {close[0]!r}",
    )
  _operands = operands
  return _operands


def describe() -> str:
  """Returns a line that names the operands; "" if they are float32 or the devices are not CPUs."""
  import jax

  if _operands == FLOAT32 or jax.default_backend() != "cpu":
    return ""
  return f"float32 matrix products: {_operands} operands"
