"""Calls that run at the same time, where one alone leaves a CPU's cores idle."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from concurrent import futures
from typing import Any

import jax

# Batches that a CPU runs at a time: much of attention is done on one core.
_AT_A_TIME = 2


def max_calls(mesh_size: int) -> int:
  """Returns how many calls to run at a time: 1 on accelerators and on several devices."""
  if jax.default_backend() != "cpu" or mesh_size > 1:
    return 1
  # `taskset` and containers limit the cores that a process may use.
  cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
  return min(_AT_A_TIME, cores)


class OverlappedCalls:
  """Runs calls of compiled functions in threads, since JAX runs those of a thread one by one.

  A context manager: it waits for the calls that run.

  Args:
    max_calls: calls to run at a time.
  """

  def __init__(self, max_calls: int):
    self.max_calls = max_calls
    self.shapes: set[Hashable] = set()
    self._pool = futures.ThreadPoolExecutor(max_calls)

  def __enter__(self) -> OverlappedCalls:
    return self

  def __exit__(self, *failure: object) -> None:
    self._pool.shutdown()

  def start(self, shape: Hashable, function: Callable, *args: Any) -> futures.Future:
    """Starts `function(*args)`.

    Args:
      shape: identifies the program. Its first call compiles it, which two threads would both do,
        so that this call is dispatched by the caller's.
      function: returns device arrays.
      *args: its arguments.
    """
    if (
      self.max_calls > 1 and shape in self.shapes
    ):  # a thread takes the next call when this is done
      return self._pool.submit(lambda: jax.block_until_ready(function(*args)))
    self.shapes.add(shape)
    output: futures.Future = futures.Future()
    output.set_result(function(*args))
    return output
