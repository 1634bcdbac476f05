"""`utils.get_infer_fn`: inference in seqio's format, as gin configures it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gin
import jax
import numpy as np

from t5x._infer.inference import BatchInference
from t5x._infer.journal import Journal


@gin.configurable(module="t5x.utils", allowlist=["efficient"])
def get_infer_fn(
  infer_step: Callable,
  batch_size: int,
  train_state_axes,
  partitioner,
  keep_aux_as_numpy: bool = False,
  efficient: bool = True,
  check_stop: Callable[[], None] | None = None,
) -> InferFn:
  """Returns `infer_fn(ds, train_state, rng=None)` in seqio's format.

  Args:
      infer_step: `model.predict_batch`, `.predict_batch_with_aux` or `.score_batch`, called as
          fn(params, batch) or fn(params, batch, rng=key).
      batch_size: rows per batch over all hosts.
      train_state_axes: the state with PartitionSpecs.
      partitioner: partitioner of the state.
      keep_aux_as_numpy: leave auxiliary values as arrays instead of lists.
      efficient: False runs every example at full length and every batch to its slowest row;
          slower, for comparison.
      check_stop: called between batches; raises to stop.

  Returns:
      A function returning [(index, output)], or ([(index, output)], {aux name: [value]}) if
      the step returns a pair; rows in the dataset's order.
  """
  run = BatchInference(infer_step, batch_size, train_state_axes, partitioner, efficient, check_stop)
  return InferFn(run, keep_aux_as_numpy)


class InferFn:
  """What `get_infer_fn` returns."""

  def __init__(self, inference: BatchInference, keep_aux_as_numpy: bool):
    self.inference, self._keep_aux_as_numpy = inference, keep_aux_as_numpy

  def __call__(
    self, ds, train_state, rng=None, label: str = "", journal: Journal | None = None
  ) -> Any:
    """Runs a dataset; see `BatchInference.__call__` for the arguments."""
    results = self.inference(ds, train_state, rng, label, journal)
    first_output = results[0][1]
    # A pair is a tuple if it comes from the device, a list if it comes from a journal.
    if not (isinstance(first_output, (tuple, list)) and isinstance(first_output[-1], Mapping)):
      return [(i, np.asarray(out).tolist()) for i, out in results]
    indexed = [(i, np.asarray(out[0]).tolist()) for i, out in results]
    auxiliary = [out[1] for _, out in results]
    return indexed, jax.tree.map(self._column, *auxiliary, is_leaf=_is_value)

  def _column(self, *values: Any) -> list[Any]:
    """All rows' values of one auxiliary output."""
    arrays = [np.asarray(value) for value in values]
    return arrays if self._keep_aux_as_numpy else [x.tolist() for x in arrays]


def _is_value(x: Any) -> bool:
  return not isinstance(x, Mapping)
