"""Train states: initialised in one compilation, or restored straight into their shards.

Re-exported by `t5x.utils`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flax.core
import jax
import numpy as np

from t5x import train_state
from t5x._checkpoint.choose import CheckpointChoice, checkpoint_step, choose_checkpoint
from t5x._checkpoint.read import flatten
from t5x._checkpoint.restore import restore
from t5x._process.files import replace_text
from t5x._process.log import log

PyTree = Any


def _with_plain_dicts(state):
  """Returns a state whose parameters are plain dicts, which callers may change."""
  params = getattr(state, "params", None)
  if not isinstance(params, flax.core.FrozenDict):
    return state
  return state.replace_params(flax.core.unfreeze(params))


class TrainStateInitializer:
  """Makes the train state of a model, from a checkpoint or from scratch.

  Args:
      optimizer_def: the optimizer; None makes a `train_state.InferenceState`.
      init_fn: `model.get_initial_variables(rng, input_shapes, input_types)`.
      input_shapes: {feature: global shape} of a batch.
      partitioner: places the arrays.
      input_types: {feature: dtype} or None.

  Attributes:
      global_train_state_shape: the state with ShapeDtypeStructs.
      train_state_axes: the state with PartitionSpecs.
      shardings: the state with NamedShardings.
  """

  def __init__(
    self,
    optimizer_def,
    init_fn: Callable,
    input_shapes: Mapping[str, tuple[int, ...]],
    partitioner,
    input_types: Mapping[str, Any] | None = None,
    model=None,
    use_gda: bool = True,
  ):
    del model, use_gda
    self._partitioner = partitioner

    def initialize(rng):
      variables = init_fn(rng=rng, input_shapes=input_shapes, input_types=input_types)
      if optimizer_def is None:
        return _with_plain_dicts(train_state.InferenceState.create(variables))
      return train_state.FlaxOptimTrainState.create(optimizer_def, variables)

    self._initialize = initialize
    self.global_train_state_shape = jax.eval_shape(initialize, jax.random.PRNGKey(0))
    self.train_state_axes = partitioner.get_mesh_axes(self.global_train_state_shape)
    self.shardings = partitioner.get_shardings(self.train_state_axes)

  def from_scratch(self, init_rng):
    """Returns a freshly initialised state; parameters and slots come from one compilation."""
    started = time.time()
    # Compiled for the mesh: each device makes its shards, and the whole state is nowhere.
    init = self._partitioner.partition(
      self._initialize, in_axis_resources=(None,), out_axis_resources=self.train_state_axes
    )
    state = jax.block_until_ready(init(init_rng))
    log(f"initialised from scratch in {time.time() - started:.1f} s")
    return state

  def from_choice(self, choice: CheckpointChoice, restore_cfg=None, init_rng=None):
    """Restores the checkpoint `choice` (see `checkpoints.choose_checkpoint`).

    Args:
        choice: the checkpoint and the rule that chose it.
        restore_cfg: RestoreCheckpointConfig for dtype and maps.
        init_rng: key for arrays that the assignment_map leaves initialised.
    """
    started = time.time()
    rng = jax.random.PRNGKey(0) if init_rng is None else init_rng
    state = restore(
      choice,
      self.global_train_state_shape,
      self.shardings,
      restore_cfg,
      init_fn=lambda: self.from_scratch(rng),
    )
    state = _with_plain_dicts(jax.block_until_ready(state))
    log(
      f"restored {choice.path} (step {checkpoint_step(choice)}) in {time.time() - started:.1f} s; "
      f"{choice.rule}"
    )
    return state

  def from_checkpoint(self, ckpt_cfgs: Sequence, *, ds_iter=None, init_rng=None):
    """Restores the checkpoint of the first configuration that has one; None if none has.

    Args:
        ckpt_cfgs: `utils.RestoreCheckpointConfig`s.
        ds_iter: accepted for T5X's signature; no state of a dataset is restored.
        init_rng: as for `from_choice`.
    """
    del ds_iter
    for cfg in ckpt_cfgs:
      choice = choose_checkpoint(None, cfg)
      if choice is not None:
        return self.from_choice(choice, cfg, init_rng)
    return None


def log_model_info(path: str | None, state, partitioner=None) -> None:
  """Writes model-info.txt: one line per parameter with shape, and the total; logs the total.

  Args:
      path: file to write, or None to write none.
      state: train state of arrays or their shapes.
      partitioner: accepted for T5X's signature.
  """
  del partitioner
  if jax.process_index() != 0:
    return
  shapes = {k: tuple(v.shape) for k, v in flatten(state.state_dict()).items()}
  total = sum(int(np.prod(s)) for k, s in shapes.items() if k.startswith("target/"))
  lines = [f"{name:<100} shape {shape}" for name, shape in sorted(shapes.items())]
  lines += ["", f"Total number of parameters: {total}"]
  if path:
    replace_text(path, "\n".join(lines) + "\n")
  log(f"{total:,} parameters")
