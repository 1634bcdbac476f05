"""Settings with which a run would fit that `t5x.aot` found too large for a slice."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from t5x.partitioning import divisors


@dataclasses.dataclass(frozen=True)
class Setting:
  """Settings that change how much memory a device needs.

  Attributes:
    model: model partitions.
    zero: whether parameters and slots are divided over the data partitions too (ZeRO-3).
    microbatches: number of parts that a batch is computed in.
    batch_size: rows of the global batch.
  """

  model: int
  zero: bool
  microbatches: int
  batch_size: int


def advise(
  report: Mapping[str, Any], config: Any, zero: bool, can_partition: bool
) -> list[list[str]]:
  """Returns gin bindings that should make every step fit, those with the fewest changes first.

  State and gradients divide by the partitions that hold them; the rest of a step's memory is
  assumed to grow with the rows it works on at once. That is an estimate: nothing more is compiled.
  Only what divides over the slice is suggested, and no rematerialisation: our networks have no
  setting for it.

  Args:
    report: figures of all steps.
    config: `network.T5Config`, or None if the network is another.
    zero: whether parameters are divided over the data partitions now.
    can_partition: whether the mesh is set by `num_partitions`.
  """
  current = Setting(report["mesh"]["model"], zero, report["num_microbatches"], report["batch_size"])
  candidates = _settings_near(current, report["devices"], config, can_partition)
  fitting = [s for s in candidates if _would_fit(s, current, report)]

  def order(setting: Setting) -> tuple[int, bool, float]:
    other_batch = setting.batch_size != current.batch_size  # it would change what is learned
    return len(_changed(setting, current)), other_batch, _cost_of(setting, current)

  fitting.sort(key=order)
  advice: list[list[str]] = []
  advised: list[set[str]] = []
  for setting in fitting:
    changed = _changed(setting, current)
    if any(changes <= changed for changes in advised):
      continue  # a part of these changes is enough
    advised.append(changed)
    texts = {
      "model": f"partitioning.PjitPartitioner.num_partitions = {setting.model}",
      "zero": "partitioning.standard_logical_axis_rules.parameter_partitioning_dims = 2",
      "microbatches": f"trainer.Trainer.num_microbatches = {setting.microbatches}",
      "batch_size": f"BATCH_SIZE = {setting.batch_size}",
    }
    advice.append([text for name, text in texts.items() if name in changed])
  return advice[:4]


def _settings_near(
  current: Setting, devices: int, config: Any, can_partition: bool
) -> Iterator[Setting]:
  """Yields settings that divide over the slice."""
  split = (config.num_heads, config.mlp_dim, config.vocab_size) if config is not None else ()
  models = [current.model]
  if can_partition:
    for larger in divisors(devices):
      if larger > current.model and math.gcd(larger, *split) == larger:
        models.append(larger)
  # Batches down to a sixteenth: smaller ones would be another training.
  batches = [b for b in divisors(current.batch_size) if b * 16 >= current.batch_size]
  grid = itertools.product(models, (False, True), divisors(current.batch_size), batches)
  for model, zero, microbatches, batch in grid:
    data = devices // model
    # Only settings that need less memory a device; each microbatch must divide over the data axis.
    if microbatches < current.microbatches or batch % (microbatches * data) or zero < current.zero:
      continue
    if zero and (config is None or config.emb_dim % data):
      continue
    yield Setting(model, zero, microbatches, batch)


def _would_fit(candidate: Setting, current: Setting, report: Mapping[str, Any]) -> bool:
  """Whether every step should fit on a device, going by the figures of the current settings."""
  devices = report["devices"]

  def share(setting: Setting) -> float:
    return 1 / (setting.model * (devices // setting.model if setting.zero else 1))

  shrink = share(candidate) / share(current)
  for name, step in report["steps"].items():
    # Training holds gradients beside the state, in float32; a sum of them too with microbatches.
    state = candidate_state = report["state_bytes"]
    rows = candidate.batch_size / current.batch_size
    if name == "train":
      state += (1 + (current.microbatches > 1)) * report["params_bytes"]
      candidate_state += (1 + (candidate.microbatches > 1)) * report["params_bytes"]
      rows *= current.microbatches / candidate.microbatches
    activations = max(step["needed_bytes"] - state, 0.0)
    if shrink * candidate_state + rows * activations > step["usable_bytes"]:
      return False
  return True


def _changed(setting: Setting, current: Setting) -> set[str]:
  """Names of the fields that differ."""
  names = [field.name for field in dataclasses.fields(setting)]
  return {name for name in names if getattr(setting, name) != getattr(current, name)}


def _cost_of(setting: Setting, current: Setting) -> float:
  """Orders settings by how much they slow training, roughly."""
  return setting.microbatches * setting.model * (current.batch_size / setting.batch_size)
