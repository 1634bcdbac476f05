"""Operand type of matrix products on a CPU: float32, or bfloat16 where that is faster.

Chosen when a script starts; `t5x.examples.t5.products` casts accordingly. `t5x.utils` re-exports
`cpu_matmul`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

import gin

from t5x.errors import T5XError, nearest

FLOAT32, BFLOAT16, AUTO = "float32", "bfloat16", "auto"

# Instructions that multiply bfloat16 and sum in float32; XLA uses them unless a flag forbids it.
_INSTRUCTIONS = ("amx_bf16", "avx512_bf16")
_FAST_ISA = ("AVX512_BF16", "AMX", "AMX_FP16")
# Those that are faster than float32 there, by vendor. Intel's cores multiply float32 at the rate of
# avx512_bf16, and XLA's products of bfloat16 then take 1.7 times as long.
_FASTER = {"GenuineIntel": ("amx_bf16",)}
_CPUINFO = "/proc/cpuinfo"

_operands = FLOAT32


def operands() -> str:
  """Returns the type that float32 operands are cast to on a CPU: 'float32' or 'bfloat16'."""
  return _operands


@contextlib.contextmanager
def used(dtype: str) -> Iterator[None]:
  """Makes `operands` return `dtype` until the end of the block, for what is traced within."""
  global _operands
  before, _operands = _operands, dtype
  try:
    yield
  finally:
    _operands = before


@gin.configurable(module="t5x.utils")
def cpu_matmul(operands: str = AUTO) -> str:
  """Chooses the operands of a float32 network's matrix products on a CPU.

  Products of bfloat16 operands, summed in float32, take a little more than half the time on an AMD
  CPU with avx512_bf16, less with amx_bf16; on an Intel CPU that has only avx512_bf16, float32 is
  faster (benchmarks/README.md). TPUs treat float32 that way by default. Narrow products stay
  float32. The scripts call this when they start. In a gin file that imports `t5x.utils` (Google's
  T5X has no such function: leave the line out there):

    utils.cpu_matmul.operands = 'float32'   # the same numbers on every CPU

  Args:
      operands: 'float32'; 'bfloat16'; 'auto': bfloat16 where it is faster on this CPU.

  Returns:
      'float32' or 'bfloat16'. It has no effect on other devices, or other types than float32.

  Raises:
      T5XError: bfloat16 is asked for, and this CPU has no instructions for it.
  """
  global _operands
  if operands not in (AUTO, FLOAT32, BFLOAT16):
    close = nearest(str(operands), (AUTO, FLOAT32, BFLOAT16), n=1) or [AUTO]
    raise T5XError(
      "utils.cpu_matmul.operands is not an operand type.",
      found=repr(operands),
      expected="the operand type of matrix products on a CPU; int8 is not supported",
      available=f"{AUTO}, {FLOAT32}, {BFLOAT16}",
      fix=f"utils.cpu_matmul.operands = {close[0]!r}",
    )
  name, is_faster = _instructions()
  if operands == BFLOAT16 and not name and _on_cpu():
    limit = _limit()
    raise T5XError(
      "utils.cpu_matmul.operands is bfloat16, for which this CPU has no instructions.",
      found=f"no {' or '.join(_INSTRUCTIONS)}" + (f" (XLA_FLAGS has {limit[0]})" if limit else ""),
      expected="a CPU that has them: AMD since Zen 4, Intel Xeon since Sapphire Rapids",
      available="float32, which is faster here",
      fix=f"set utils.cpu_matmul.operands = {AUTO!r} to use whichever is faster.",
    )
  wanted = is_faster if operands == AUTO else name and operands == BFLOAT16
  _operands = BFLOAT16 if wanted else FLOAT32
  return _operands


def describe() -> str:
  """Returns the line that follows the one about devices; "" if they are not CPUs."""
  if not _on_cpu():
    return ""
  how = f"bfloat16 operands ({_instructions()[0]})" if _operands == BFLOAT16 else "float32 operands"
  return f"float32 matrix products: {how}"


def _on_cpu() -> bool:
  import jax

  return jax.default_backend() == "cpu"


def _limit() -> re.Match[str] | None:
  """The flag that limits which instructions XLA uses; group 1 is the limit."""
  return re.search(r"--xla_cpu_max_isa=(\S+)", os.environ.get("XLA_FLAGS", ""))


def _instructions() -> tuple[str, bool]:
  """Which instructions this CPU has and XLA may use; "" for none. Are they faster than float32?"""
  limit = _limit()
  if limit and limit[1].upper() not in _FAST_ISA:
    return "", False
  try:
    with open(_CPUINFO, encoding="utf-8") as f:
      fields = [line.partition(":") for line in f]
  except OSError:  # not Linux: what the CPU has is not known
    return "", False
  first = {name.strip(): value.split() for name, _, value in reversed(fields)}
  flags, vendor = first.get("flags", []), "".join(first.get("vendor_id", []))
  name = next((name for name in _INSTRUCTIONS if name in flags), "")
  return name, name in _FASTER.get(vendor, _INSTRUCTIONS)
