"""Restoring a checkpoint into a train state: names, shapes, dtypes and shardings."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t5x._checkpoint.choose import CheckpointChoice
from t5x._checkpoint.read import StoredCheckpoint, flatten, open_checkpoint, unflatten
from t5x._process.log import log
from t5x.errors import T5XError


def check_assignment_map(assignment_map: Any) -> None:
  """Raises T5XError unless it is None or pairs of a regular expression and a replacement."""
  if assignment_map is None:
    return
  if not isinstance(assignment_map, (list, tuple)):
    raise _invalid_map("is no list of pairs", assignment_map)
  for pair in assignment_map:
    if problem := _problem_of_pair(pair):
      raise _invalid_map(problem, pair)


def _problem_of_pair(pair: Any) -> str | None:
  """Returns what is wrong with a pair of an assignment map, or None."""
  if not isinstance(pair, (list, tuple)) or len(pair) != 2:
    return "has something that is no pair"
  pattern, replacement = pair
  if not isinstance(pattern, (str, re.Pattern)) or not isinstance(replacement, (str, type(None))):
    return "has a pair that is not a pattern and a replacement"
  try:
    re.compile(pattern)
  except re.error as e:
    return f"has an invalid pattern ({e})"
  return None


def _invalid_map(problem: str, found: Any) -> T5XError:
  return T5XError(
    f"assignment_map {problem}.",
    found=repr(found),
    expected="pairs of a regular expression of names in the model, and the name in the checkpoint "
    "(with \\1 for the expression's first group) or None",
    fix=r"RestoreCheckpointConfig.assignment_map = [('target/new/(.*)', r'target/old/\1')]",
  )


def match_names(
  names: Iterable[str], assignment_map: Sequence[tuple[Any, str | None]]
) -> tuple[dict[str, str], set[str], list[str]]:
  """Applies a checked assignment map to a model's names; the first pattern that matches counts.

  Returns:
      ({name: name in the checkpoint} of those with a replacement, names whose replacement is None,
      patterns that match nothing).

  Raises:
      T5XError: a replacement names a group that its pattern does not have.
  """
  renamed: dict[str, str] = {}
  skipped: set[str] = set()
  unused = {str(getattr(pattern, "pattern", pattern)) for pattern, _ in assignment_map}
  for name in names:
    for pattern, replacement in assignment_map:
      match = re.fullmatch(pattern, name)
      if not match:
        continue
      unused.discard(match.re.pattern)
      if replacement is None:
        skipped.add(name)
      else:
        try:
          renamed[name] = match.expand(replacement)
        except (re.error, IndexError) as e:
          raise _invalid_map(f"has an invalid replacement ({e})", replacement) from e
      break
  return renamed, skipped, sorted(unused)


def with_names(
  stored: Mapping[str, Any],
  model_names: Iterable[str],
  renamed: Mapping[str, str],
  skipped: Collection[str],
) -> dict[str, Any]:
  """Returns a checkpoint's arrays under the names of a model.

  Args:
      stored: {name in the checkpoint: array}.
      model_names: the model's names.
      renamed, skipped: from `match_names`.
  """
  reassigned, restored = {*renamed.values(), *skipped}, set(model_names) - set(skipped)
  arrays = {name: x for name, x in stored.items() if name not in reassigned or name in restored}
  return arrays | {name: stored[source] for name, source in renamed.items() if source in stored}


def _some(lines: list[str]) -> str:
  remainder = [f"... and {len(lines) - 8} more"] if len(lines) > 8 else []
  return "\n".join(lines[:8] + remainder)


def _check_match(
  choice: CheckpointChoice,
  model_arrays: Mapping[str, Any],
  stored: Mapping[str, Any],
  source: Mapping[str, str],
  strict: bool,
) -> None:
  """Raises one T5XError listing missing, unknown and differently shaped arrays."""
  # Parameters first: the optimizer's slots only repeat what is wrong with them.
  source = dict(sorted(source.items(), key=lambda item: not item[0].startswith("target/")))
  missing, shapes = [], []
  for name, key in source.items():
    if key not in stored:
      missing.append(name)
    elif tuple(stored[key].shape) != (shape := tuple(model_arrays[name].shape)):
      shapes.append(f"{name}: checkpoint {tuple(stored[key].shape)}, model {shape}")
  kinds = {n.split("/")[0] for n in model_arrays} | {"target"}
  if not any(n.startswith("state/param_states") for n in model_arrays):
    kinds.discard("state")  # evaluation does not read the optimizer's slots
  used = set(source.values())
  extra = [n for n in stored if n not in used and n.split("/")[0] in kinds] if strict else []
  if not (missing or shapes or extra):
    return
  differences = []
  if shapes:
    differences.append(f"{len(shapes)} arrays differ in shape:\n{_some(shapes)}")
  if missing:
    differences.append(f"{len(missing)} arrays are missing from the checkpoint:\n{_some(missing)}")
  if extra:
    differences.append(f"{len(extra)} arrays are unknown to the model:\n{_some(extra)}")
  fix = "use the model size (gin file) the checkpoint was saved with, or another checkpoint"
  if choice.resuming:
    fix = "use a new --gin.MODEL_DIR, or the model size (gin file) of the checkpoint in it"
  elif missing or extra:
    fix += "; or map names with RestoreCheckpointConfig.assignment_map"
  raise T5XError(
    f"The checkpoint {choice.path} does not fit the model.",
    found="\n".join(differences),
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
          state_transformation_fns; ignored when resuming, as in T5X: rounding the parameters that
          a run goes on from would change it.
      init_fn: returns an initialised train state; called only if some arrays are to keep
          their initial values.

  Returns:
      The restored train state.

  Raises:
      T5XError: if names or shapes differ; it lists the differences and the rule that chose the
          checkpoint.
  """
  stored = open_checkpoint(choice.path)
  model_arrays = flatten(train_state.state_dict())
  placed = flatten(shardings.state_dict()) if shardings is not None else {}
  default = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
  cfg = None if choice.resuming else restore_cfg
  fns = list(getattr(cfg, "state_transformation_fns", None) or ())
  assignment_map = getattr(cfg, "assignment_map", None)
  renamed, skipped, unused = match_names(model_arrays, assignment_map or ())
  if unused:
    raise T5XError(
      "assignment_map has patterns that match no array of the train state.",
      found=", ".join(unused),
      available="for example " + ", ".join(list(model_arrays)[:3]),
      fix="correct RestoreCheckpointConfig.assignment_map.",
    )
  if fns:  # they see the model's names
    stored = _transform(
      stored, fns, train_state, lambda x: with_names(x, model_arrays, renamed, skipped)
    )
    renamed = {}
  if getattr(cfg, "fallback_to_scratch", False):  # a wrong replacement remains an error
    absent = {n for n in model_arrays if n not in stored.arrays and n not in renamed} - skipped
    if absent:
      names = "; ".join(_some(sorted(absent)).split("\n"))
      log(f"{len(absent)} arrays that {choice.path} lacks keep their initial values: {names}")
    skipped |= absent
  source = {n: renamed.get(n, n) for n in model_arrays if n not in skipped}
  # A map is there to take a part of a checkpoint: what it leaves is no mistake.
  strict = getattr(cfg, "strict", True) and not assignment_map
  _check_match(choice, model_arrays, stored.arrays, source, strict)

  def request(name: str) -> tuple[Any, Any]:
    sharding = placed.get(name)
    if not isinstance(sharding, jax.sharding.Sharding):
      sharding = default
    return sharding, _type_to_read(name, model_arrays[name], getattr(cfg, "dtype", None))

  flat: dict[str, Any] = {}
  while source:  # an array with several names is read for each: a step donates their buffers
    name_by_key = {key: name for name, key in source.items()}
    values = stored.read({key: request(name) for key, name in name_by_key.items()})
    flat.update({name: values[key] for key, name in name_by_key.items()})
    source = {name: key for name, key in source.items() if name not in flat}
  if skipped:
    initial = flatten((init_fn() if init_fn else train_state).state_dict())
    flat.update({name: initial[name] for name in skipped})
    _note_new_counts(skipped, int(flat.get("state/step", 0)))
  return train_state.restore_state(unflatten({n: flat[n] for n in model_arrays}))


def _note_new_counts(initial_names: Collection[str], step: int) -> None:
  """Says that an optimizer that is new at a later step does not know of that step."""
  # As in T5X: optax counts updates itself, and a schedule inside it follows that count.
  if step and any(name.endswith("/count") for name in initial_names):
    log(
      f"the optimizer counts from 0, not from {step}: so does a schedule in it, while the learning "
      "rate that is logged is that of the step"
    )


def _type_to_read(name: str, model_array: Any, parameter_type: Any) -> Any:
  """The model's type; for a parameter, that of RestoreCheckpointConfig.dtype if there is one."""
  floating = jnp.issubdtype(model_array.dtype, jnp.floating)
  if parameter_type and floating and name.startswith("target/"):
    return jnp.dtype(parameter_type)
  return model_array.dtype


def _transform(stored: StoredCheckpoint, fns, train_state, rename) -> StoredCheckpoint:
  """Applies `rename`, then state_transformation_fns to the whole checkpoint, read on the host."""
  tree = unflatten(rename(stored.read({name: (None, None) for name in stored.arrays})))
  for fn in fns:
    tree = fn(tree, train_state.state_dict())  # never for a run's own, with `is_resuming=True`
  flat = flatten(tree)

  def read(requests):
    out = {}
    for name, (sharding, dtype) in requests.items():
      value = np.asarray(flat[name]).astype(dtype)
      out[name] = value if sharding is None else jax.device_put(value, sharding)
    return out

  shapes = {n: jax.ShapeDtypeStruct(np.shape(v), np.asarray(v).dtype) for n, v in flat.items()}
  return StoredCheckpoint(shapes, read)
