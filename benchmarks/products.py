"""Times matrix products and attention on this CPU, with operands of float32 and of bfloat16.

  python benchmarks/products.py

Products of T5 Small's sizes, for 2,048 tokens, in GFLOP/s: those of `t5x.examples.t5.products` with
either operand dtype, casts included, the gradient's two products, and int8 by XLA only. Attention
for 8,192 tokens, in milliseconds: over the whole batch and in blocks, forward and with gradients.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import _common
import jax
import jax.numpy as jnp

from t5x._process import matmul
from t5x.examples.t5 import blocked_attention, products, softmax_attention

SHAPES = ((2048, 512, 512), (2048, 512, 2048), (2048, 2048, 512))
HEADS, SIZE, TOKENS = 8, 64, 8192


def medians(functions: Mapping[str, tuple[Callable, tuple]], repeats: int) -> dict[str, float]:
  """Returns {name: median seconds} of compiled functions, taken in turn."""
  seconds: dict[str, list[float]] = {name: [] for name in functions}
  for i in range(repeats + 1):
    for name, (function, args) in functions.items():
      started = time.perf_counter()
      jax.block_until_ready(function(*args))
      if i:  # the first time compiles
        seconds[name].append(time.perf_counter() - started)
  return {name: statistics.median(values) for name, values in seconds.items()}


def compiled(function: Callable, dtype: str) -> Callable:
  """Returns the jitted function, which uses these operands whenever it is traced."""

  def traced(*args: Any) -> Any:
    with matmul.used(dtype):
      return function(*args)

  return jax.jit(traced)


def time_products(repeats: int) -> None:
  """Prints GFLOP/s of each shape."""
  for m, k, n in SHAPES:
    keys = jax.random.split(jax.random.key(0))
    x, kernel = jax.random.normal(keys[0], (m, k)), jax.random.normal(keys[1], (k, n))

    def both(x, kernel):
      out, back = jax.vjp(products.dot, x, kernel)
      return back(out)

    functions = {}
    for dtype in (matmul.FLOAT32, matmul.BFLOAT16):
      functions[dtype] = compiled(products.dot, dtype), (x, kernel)
      functions[f"{dtype}, with gradients"] = compiled(both, dtype), (x, kernel)
    whole = x.astype(jnp.int8), kernel.astype(jnp.int8)
    dot = functools.partial(jnp.dot, preferred_element_type=jnp.int32)
    functions["int8"] = jax.jit(dot), whole
    work = 2 * m * k * n / 1e9
    rates = {
      name: (3 if "gradients" in name else 1) * work / seconds
      for name, seconds in medians(functions, repeats).items()
    }
    print(f"{m} x {k} x {n}: " + "; ".join(f"{name} {rate:.0f}" for name, rate in rates.items()))


def time_attention(length: int, repeats: int) -> None:
  """Prints milliseconds for rows of a length."""
  shape = TOKENS // length, length, HEADS, SIZE  # as the preceding projections return it
  keys = jax.random.split(jax.random.key(0), 4)
  inputs = [jax.random.normal(key, shape) / 4 for key in keys[:3]]
  inputs.append(jax.random.normal(keys[3], (1, HEADS, length, length)))
  functions = {}
  for name, module in (("whole", softmax_attention), ("blocks", blocked_attention)):

    def attend(*args, module=module):
      *heads_first, bias = (*(x.swapaxes(1, 2) for x in args[:3]), args[3])
      return module.attend(*heads_first, bias).swapaxes(1, 2)

    def loss(*args, attend=attend):
      return jnp.square(attend(*args)).sum()

    for dtype in (matmul.FLOAT32, matmul.BFLOAT16):
      functions[f"{name}, {dtype}"] = compiled(attend, dtype), tuple(inputs)
      gradients = jax.value_and_grad(loss, (0, 1, 2, 3))
      functions[f"{name}, {dtype}, with gradients"] = compiled(gradients, dtype), tuple(inputs)
  found = medians(functions, repeats)
  print(f"{shape}: " + "; ".join(f"{name} {1e3 * seconds:.0f}" for name, seconds in found.items()))


def main() -> None:
  """Prints both."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--repeats", type=int, default=15, help="rounds (default 15)")
  args = parser.parse_args()
  print(f"{_common.machine()}\n\nproducts, GFLOP/s, medians")
  time_products(args.repeats)
  print("\nattention, [rows, tokens, heads, size], ms, medians")
  for length in (256, 512):
    time_attention(length, args.repeats)


if __name__ == "__main__":
  main()
