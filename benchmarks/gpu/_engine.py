"""T5X as a training or inference script sets it up, without what is not installed here.

Import it before anything of T5X: it puts stand-ins for TensorFlow and SeqIO in their places.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import _without_tensorflow
import jax
import numpy as np
from flax import traverse_util

_without_tensorflow.stand_in()

from t5x import partitioning, trainer, utils  # noqa: E402


class Loaded:
  """A model with weights on the device.

  Args:
    model: T5X's.
    arrays: path of a parameter -> its value; the others are initialised at random.
    shapes: of a batch's features.
    trains: whether there is an optimizer's state.

  Attributes:
    model: as given.
    partitioner: of one device.
    state: parameters, and the optimizer's state.
    axes: the state with PartitionSpecs.
  """

  def __init__(
    self, model: Any, arrays: Mapping[str, np.ndarray], shapes: Mapping[str, tuple], trains: bool
  ):
    utils.cpu_matmul()
    self.model = model
    self.partitioner = partitioning.PjitPartitioner(num_partitions=1, model_parallel_submesh=None)
    initializer = utils.TrainStateInitializer(
      optimizer_def=model.optimizer_def if trains else None,
      init_fn=model.get_initial_variables,
      input_shapes=shapes,
      partitioner=self.partitioner,
    )
    state = initializer.from_scratch(jax.random.key(0))
    flat = traverse_util.flatten_dict(dict(state.params), sep="/")
    for name, array in arrays.items():
      if array.shape != flat[name].shape:
        raise ValueError(f"{name} is {array.shape}, not {flat[name].shape}")
      flat[name] = jax.device_put(array.astype(flat[name].dtype), flat[name].sharding)
    self.state = state.replace_params(traverse_util.unflatten_dict(flat, sep="/"))
    self.axes = initializer.train_state_axes

  def trainer(self) -> trainer.Trainer:
    """Returns T5X's trainer of this state."""
    return trainer.Trainer(
      self.model,
      self.state,
      self.partitioner,
      rng=jax.random.key(1),
      train_state_axes=self.axes,
    )

  def stream(self, batches: Iterable[Mapping[str, np.ndarray]]) -> utils.DevicePrefetcher:
    """Returns batches on the device; the next are transferred meanwhile."""
    sharding = self.partitioner.sharding(self.partitioner.data_partition_spec)
    return utils.DevicePrefetcher(iter(batches), sharding)

  def train_on_request(self, batches: Iterable[Mapping[str, np.ndarray]], about: dict) -> None:
    """Takes the steps that a parent asks for."""
    batches = list(batches)
    t5x_trainer, stream = self.trainer(), self.stream(itertools.cycle(batches))

    def steps(number: int) -> None:
      for _ in range(number):
        t5x_trainer.wait_for_room()
        t5x_trainer.step(next(stream))
      jax.block_until_ready(t5x_trainer.train_state.params)

    steps(len(batches))
    serve(steps, about)
    stream.close()


def serve(take: Callable[[int], object], about: dict) -> None:
  """Says that all is compiled; then does what the parent asks for and prints the seconds."""
  device = jax.devices()[0]
  peak = (device.memory_stats() or {}).get("peak_bytes_in_use", 0)
  about |= {"device": device.device_kind, "jax": jax.__version__, "peak_gb": round(peak / 1e9, 1)}
  print("READY " + json.dumps(about), flush=True)
  for line in sys.stdin:
    started = time.perf_counter()
    take(int(line))
    print(f"SECONDS {time.perf_counter() - started}", flush=True)
