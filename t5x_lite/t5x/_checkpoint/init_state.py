"""Train states: initialised in one compilation, or restored straight into their shards.

Re-exported by `t5x.utils`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import flax.core
import jax
import numpy as np

from t5x import train_state
from t5x._checkpoint.choose import CheckpointChoice, checkpoint_step, first_choices
from t5x._checkpoint.read import flatten
from t5x._checkpoint.restore import restore
from t5x._process.log import log
from t5x.errors import T5XError

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
    # A run reads the checkpoints that it wrote itself as it writes them.
    own_cls = None if choice.resuming else getattr(restore_cfg, "checkpointer_cls", None)
    if hasattr(own_cls, "restore"):
      state = own_cls(os.path.dirname(choice.path)).restore(path=choice.path)
    else:
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

  def from_checkpoints(
    self, restore_cfgs: Sequence, ds_iter=None, init_rng=None
  ) -> Iterator[tuple[Any, str]]:
    """Restores all checkpoints of the first configuration that has any, one after the other.

    Args:
        restore_cfgs: `utils.RestoreCheckpointConfig`s.
        ds_iter: accepted for T5X's signature; no state of a dataset is restored.
        init_rng: as for `from_choice`.

    Yields:
        (train state, path).
    """
    del ds_iter
    cfg, choices = first_choices(restore_cfgs)
    for choice in choices:
      yield self.from_choice(choice, cfg, init_rng), choice.path

  def from_checkpoint(self, ckpt_cfgs: Sequence, *, ds_iter=None, init_rng=None):
    """Restores the checkpoint of the first configuration that has one; None if none has.

    Args: as `from_checkpoints`.

    Raises:
        T5XError: the configuration names several checkpoints.
    """
    del ds_iter
    cfg, choices = first_choices(ckpt_cfgs)
    if len(choices) > 1:
      raise T5XError(
        "from_checkpoint restores one checkpoint.",
        found="\n".join(choice.path for choice in choices),
        fix="use from_checkpoints, or RestoreCheckpointConfig.mode = 'latest'",
      )
    return self.from_choice(choices[0], cfg, init_rng) if choices else None

  def from_checkpoint_or_scratch(self, ckpt_cfgs: Sequence, *, init_rng, ds_iter=None):
    """`from_checkpoint`, or `from_scratch` where no configuration has a checkpoint."""
    state = self.from_checkpoint(ckpt_cfgs, ds_iter=ds_iter, init_rng=init_rng)
    return self.from_scratch(init_rng) if state is None else state


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
    from etils import epath

    target = epath.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(lines) + "\n")
  log(f"{total:,} parameters")
