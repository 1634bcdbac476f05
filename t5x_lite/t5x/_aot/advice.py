"""Settings with which a run would fit that `t5x.aot` found too large for a slice."""

from __future__ import annotations

import dataclasses
import itertools
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
  now = Setting(report["mesh"]["model"], zero, report["num_microbatches"], report["batch_size"])
  candidates = _settings_near(now, report["devices"], config, can_partition)
  fitting = [s for s in candidates if _would_fit(s, now, report)]
  fitting.sort(key=lambda s: (_changes(s, now), s.batch_size != now.batch_size, _cost_of(s, now)))
  advice, seen = [], []
  for setting in fitting:
    changed = {
      f.name
      for f in dataclasses.fields(setting)
      if getattr(setting, f.name) != getattr(now, f.name)
    }
    if any(other <= changed for other in seen):
      continue  # a part of these changes is enough
    seen.append(changed)
    texts = {
      "model": f"partitioning.PjitPartitioner.num_partitions = {setting.model}",
      "zero": "partitioning.standard_logical_axis_rules.parameter_partitioning_dims = 2",
      "microbatches": f"trainer.Trainer.num_microbatches = {setting.microbatches}",
      "batch_size": f"BATCH_SIZE = {setting.batch_size}",
    }
    advice.append([text for name, text in texts.items() if name in changed])
  return advice[:4]


def _settings_near(
  now: Setting, devices: int, config: Any, can_partition: bool
) -> Iterator[Setting]:
  """Yields settings that divide over the slice."""
  split = (config.num_heads, config.mlp_dim, config.vocab_size) if config is not None else ()
  models = [now.model]
  if can_partition:
    larger = (m for m in divisors(devices) if m > now.model)
    models += [m for m in larger if not any(size % m for size in split)]
  batches = [b for b in divisors(now.batch_size) if b * 16 >= now.batch_size]
  grid = itertools.product(models, (False, True), divisors(now.batch_size), batches)
  for model, zero, microbatches, batch in grid:
    data = devices // model
    if microbatches < now.microbatches or batch % (microbatches * data) or zero < now.zero:
      continue
    if zero and (config is None or config.emb_dim % data):
      continue
    yield Setting(model, zero, microbatches, batch)


def _would_fit(new: Setting, now: Setting, report: Mapping[str, Any]) -> bool:
  devices = report["devices"]

  def share(setting: Setting) -> float:
    return 1 / (setting.model * (devices // setting.model if setting.zero else 1))

  shrink = share(new) / share(now)
  for name, step in report["steps"].items():
    # Training holds gradients beside the state, in float32; a sum of them too with microbatches.
    copies = (1 + (now.microbatches > 1), 1 + (new.microbatches > 1)) if name == "train" else (0, 0)
    held, new_held = (report["state_bytes"] + c * report["params_bytes"] for c in copies)
    rows = new.batch_size / now.batch_size
    if name == "train":
      rows *= now.microbatches / new.microbatches
    rest = max(step["needed_bytes"] - held, 0.0)
    if shrink * new_held + rows * rest > step["usable_bytes"]:
      return False
  return True


def _changes(setting: Setting, now: Setting) -> int:
  pairs = zip(dataclasses.astuple(setting), dataclasses.astuple(now), strict=True)
  return sum(a != b for a, b in pairs)


def _cost_of(setting: Setting, now: Setting) -> float:
  """Orders settings by how much they slow training, roughly."""
  return setting.microbatches * setting.model * (now.batch_size / setting.batch_size)
