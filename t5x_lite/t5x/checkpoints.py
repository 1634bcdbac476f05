"""Checkpoints: saving, choosing one, restoring it into a train state.

A save goes to a temporary folder that is renamed when complete, so a crash never leaves a
checkpoint that a restart would pick. Which checkpoint a run starts from:
  1. the latest complete checkpoint in MODEL_DIR (a restarted run continues);
  2. otherwise the one of RestoreCheckpointConfig (INITIAL_CHECKPOINT_PATH), with its
     assignment_map and state_transformation_fns;
  3. otherwise freshly initialised parameters.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from etils import epath

from t5x._checkpoint.read import (
  StoredCheckpoint,
  checkpoint_steps,
  flatten,
  layout_of,
  load_checkpoint,
  open_checkpoint,
  step_of,
  unflatten,
)
from t5x._checkpoint.write import (
  Checkpointer,
  OrbaxCheckpointManagerInterface,
  SaveBestCheckpointer,
)
from t5x.errors import T5XError, not_in_lite

__all__ = [
  "CheckpointChoice",
  "Checkpointer",
  "OrbaxCheckpointManagerInterface",
  "SaveBestCheckpointer",
  "checkpoint_steps",
  "choose_checkpoint",
  "get_checkpoint_prefix",
  "layout_of",
  "load_checkpoint",
  "load_t5x_checkpoint",
  "open_checkpoint",
  "restore",
]

load_t5x_checkpoint = load_checkpoint  # T5X's name


def get_checkpoint_prefix() -> str:
  """The folder name before the step: `checkpoint_`."""
  return "checkpoint_"


# ---------------------------------------------------------------------------------- choose


@dataclasses.dataclass(frozen=True)
class CheckpointChoice:
  """A checkpoint and the rule that chose it (for messages).

  Args:
      path: its folder.
      rule: why this one, as a clause.
      resuming: whether it is a run's own checkpoint (then no assignment_map applies).
  """

  path: str
  rule: str
  resuming: bool = False


def choose_checkpoint(
  model_dir: str | None, restore_cfg=None, restore_step: int | None = None
) -> CheckpointChoice | None:
  """Applies the rules in the module's docstring.

  Args:
      model_dir: the run's folder, or None to ignore it.
      restore_cfg: `utils.RestoreCheckpointConfig` or None.
      restore_step: in a folder of checkpoints, the step wanted (mode 'all').

  Returns:
      The choice, or None: start from scratch.
  """
  if model_dir and (steps := checkpoint_steps(model_dir)):
    return CheckpointChoice(
      str(epath.Path(model_dir) / f"checkpoint_{steps[-1]}"),
      "the latest checkpoint in MODEL_DIR wins over INITIAL_CHECKPOINT_PATH",
      resuming=True,
    )
  if restore_cfg is None or not restore_cfg.path:
    return None
  paths = restore_cfg.path
  if not isinstance(paths, str) and isinstance(paths, Sequence):
    if len(paths) > 1:
      raise not_in_lite("RestoreCheckpointConfig.path with several paths")
    paths = paths[0]
  path = str(paths)
  if restore_cfg.mode == "specific":
    return CheckpointChoice(path, "RestoreCheckpointConfig.path with mode='specific'")
  steps = checkpoint_steps(path)
  if not steps:
    if restore_cfg.fallback_to_scratch:
      return None
    raise T5XError(
      f"There is no complete checkpoint in {path}.",
      expected=f"folders checkpoint_N (mode={restore_cfg.mode!r})",
      fix="correct the path; for one checkpoint_N folder use mode='specific'.",
    )
  step = steps[-1] if restore_step is None else restore_step
  rule = f"step {step} of RestoreCheckpointConfig.path, mode={restore_cfg.mode!r}"
  return CheckpointChoice(str(epath.Path(path) / f"checkpoint_{step}"), rule)


# --------------------------------------------------------------------------------- restore


def _assign(
  wanted: Mapping[str, Any], assignment_map: Sequence[tuple[str, str | None]] | None
) -> tuple[dict[str, str], set[str]]:
  """Returns ({name in the state: name in the checkpoint}, names to leave initialised)."""
  source = {name: name for name in wanted}
  skipped: set[str] = set()
  unused = {pattern for pattern, _ in assignment_map or ()}
  for name in wanted:
    for pattern, replacement in assignment_map or ():
      match = re.fullmatch(pattern, name)
      if not match:
        continue
      unused.discard(pattern)
      if replacement is None:
        skipped.add(name)
      else:
        source[name] = match.expand(replacement)
      break
  if unused:
    raise T5XError(
      "assignment_map has patterns that match no array of the train state.",
      found=", ".join(sorted(unused)),
      available="for example " + ", ".join(list(wanted)[:3]),
      fix="correct RestoreCheckpointConfig.assignment_map.",
    )
  return source, skipped


def _some(lines: list[str], limit: int = 8) -> str:
  more = [f"... and {len(lines) - limit} more"] if len(lines) > limit else []
  return "\n".join(lines[:limit] + more)


def _check_match(
  choice: CheckpointChoice,
  wanted: Mapping[str, Any],
  stored: Mapping[str, Any],
  source: Mapping[str, str],
  strict: bool,
  allow_missing: bool,
) -> None:
  """Raises one T5XError listing missing, unknown and differently shaped arrays."""
  # Parameters first: the optimizer's slots only repeat what is wrong with them.
  source = dict(sorted(source.items(), key=lambda item: not item[0].startswith("target/")))
  missing = [n for n, s in source.items() if s not in stored]
  shapes = [
    f"{n}: checkpoint {tuple(stored[s].shape)}, model {tuple(wanted[n].shape)}"
    for n, s in source.items()
    if s in stored and tuple(stored[s].shape) != tuple(wanted[n].shape)
  ]
  kinds = {n.split("/")[0] for n in wanted} | {"target"}
  if not any(n.startswith("state/param_states") for n in wanted):
    kinds.discard("state")  # evaluation does not read the optimizer's slots
  used = set(source.values())
  extra = [n for n in stored if n not in used and n.split("/")[0] in kinds] if strict else []
  if allow_missing:
    missing = []
  if not (missing or shapes or extra):
    return
  parts = []
  if shapes:
    parts.append(f"{len(shapes)} arrays differ in shape:\n{_some(shapes)}")
  if missing:
    parts.append(f"{len(missing)} arrays are missing in the checkpoint:\n{_some(missing)}")
  if extra:
    parts.append(f"{len(extra)} arrays are unknown to the model:\n{_some(extra)}")
  fix = "use the model size (gin file) the checkpoint was made with, or another checkpoint"
  if choice.resuming:
    fix = "use a new --gin.MODEL_DIR, or the model size (gin file) of the one it holds"
  elif missing or extra:
    fix += "; or map names with RestoreCheckpointConfig.assignment_map"
  raise T5XError(
    f"The checkpoint {choice.path} does not fit the model.",
    found="\n".join(parts),
    expected=f"the train state of this configuration; this checkpoint was chosen because "
    f"{choice.rule}",
    fix=fix + ".",
  )


def restore(
  choice: CheckpointChoice,
  train_state,
  shardings=None,
  restore_cfg=None,
  init_fn: Callable[[], Any] | None = None,
):
  """Restores a checkpoint into a train state.

  Args:
      choice: which checkpoint, from `choose_checkpoint`.
      train_state: train state of arrays or ShapeDtypeStructs with `state_dict()` and
          `restore_state(state_dict)`.
      shardings: matching train state of shardings, or None for the first device.
      restore_cfg: `utils.RestoreCheckpointConfig`, for dtype, assignment_map, strict,
          state_transformation_fns (ignored when resuming, but for dtype).
      init_fn: returns an initialised train state; called only if some arrays are to keep
          their initial values.

  Returns:
      The restored train state.

  Raises:
      T5XError: if names or shapes differ, with both trees' differences and the rule that
          chose the checkpoint.
  """
  stored = open_checkpoint(choice.path)
  wanted = flatten(train_state.state_dict())
  placed = flatten(shardings.state_dict()) if shardings is not None else {}
  default = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
  cfg = None if choice.resuming else restore_cfg
  fns = list(getattr(cfg, "state_transformation_fns", None) or ())
  if fns:
    stored = _transform(stored, fns, train_state)
  source, skipped = _assign(wanted, getattr(cfg, "assignment_map", None))
  scratch = bool(getattr(cfg, "fallback_to_scratch", False))
  if scratch:
    skipped |= {n for n, s in source.items() if s not in stored.arrays}
  source = {n: s for n, s in source.items() if n not in skipped}
  strict = getattr(cfg, "strict", True) and not getattr(cfg, "assignment_map", None)
  _check_match(choice, wanted, stored.arrays, source, strict, allow_missing=scratch)

  dtype = getattr(restore_cfg, "dtype", None)
  dtype = jnp.dtype(dtype) if dtype else None
  requests: dict[str, tuple[Any, Any]] = {}
  for name, key in source.items():
    floating = jnp.issubdtype(wanted[name].dtype, jnp.floating)
    cast = dtype if dtype and floating and name.startswith("target/") else wanted[name].dtype
    sharding = placed.get(name)
    requests[key] = (sharding if isinstance(sharding, jax.sharding.Sharding) else default, cast)
  values = stored.read(requests)
  flat = {name: values[key] for name, key in source.items()}
  if skipped:
    initial = flatten((init_fn() if init_fn else train_state).state_dict())
    flat.update({name: initial[name] for name in skipped})
  return train_state.restore_state(unflatten({n: flat[n] for n in wanted}))


def _transform(stored: StoredCheckpoint, fns, train_state) -> StoredCheckpoint:
  """Applies state_transformation_fns to the whole checkpoint, read on the host."""
  tree = unflatten(stored.read({name: (None, None) for name in stored.arrays}))
  for fn in fns:
    tree = fn(tree, train_state.state_dict(), is_resuming=False)
  flat = flatten(tree)

  def read(wanted):
    out = {}
    for name, (sharding, dtype) in wanted.items():
      value = np.asarray(flat[name]).astype(dtype)
      out[name] = value if sharding is None else jax.device_put(value, sharding)
    return out

  shapes = {n: jax.ShapeDtypeStruct(np.shape(v), np.asarray(v).dtype) for n, v in flat.items()}
  return StoredCheckpoint(stored.path, stored.layout, shapes, read)


def checkpoint_step(choice: CheckpointChoice) -> int:
  """The step of a chosen checkpoint: from its folder's name, else from its content."""
  step = step_of(choice.path)
  if step is None:
    step = int(open_checkpoint(choice.path).read({"state/step": (None, None)})["state/step"])
  return step
