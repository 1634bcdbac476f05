"""Metric functions for SeqIO tasks whose examples ask for one slot of one frame.

The official JGA is a product over all slots of a service. A tracker that is asked for the
tracked slots only gives the same number: the other slots are in no gold state and in no
prediction, so each of them scores 1.

Both functions take what a task's postprocessor made:
  targets: one dict per example,
    id: "v3/dev/1_00000-002-Banks_2/account_type", that is variant, split, frame and slot,
      with the original names of service and slot;
    values: acceptable gold values, empty if the slot is not in the gold state;
    service_slots: number of slots that this frame is asked for;
    categorical: whether the slot is;
    seen: whether the frame's service is also in train.
  predictions: a value, or None for "not in the state", per example in the same order.
A frame of which examples are missing (an evaluation cut by `num_examples`) has no JGA: it is
left out and counted in `num_frames_incomplete`. What cannot be computed has no key.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sgdx_t5x.data.variants import ORIGINAL
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics.goals import slot_score
from sgdx_t5x.metrics.sensitivity import summarise

_ID_FORM = "variant/split/frame/slot, as in v3/dev/1_00000-002-Banks_2/account_type"


@dataclasses.dataclass
class _Frame:
  asked: int
  seen: bool
  scores: dict[str, float] = dataclasses.field(default_factory=dict)

  @property
  def complete(self) -> bool:
    return len(self.scores) == self.asked

  @property
  def jga(self) -> float:
    return math.prod(self.scores.values())


def joint_goal_accuracy(
  targets: Sequence[Mapping[str, Any]],
  predictions: Sequence[str | None],
  backend: str = "difflib",
) -> dict[str, float]:
  """Returns JGA of one variant.

  Args:
    targets: see the module.
    predictions: see the module.
    backend: see `fuzzy.match`.

  Returns:
    jga, jga_seen, jga_unseen, slot_accuracy (mean over the examples of complete frames),
    num_frames, num_frames_incomplete.

  Raises:
    SgdxError: examples of several variants, a repeated example, or a malformed id.
  """
  variants = _collect(targets, predictions, backend)
  if len(variants) > 1:
    raise SgdxError(
      f"joint_goal_accuracy got examples of {len(variants)} variants",
      expected="the examples of one",
      available=", ".join(variants),
      fix="use schema_sensitivity as metric of a task that holds several variants",
    )
  frames = [frame for found in variants.values() for frame in found.values()]
  whole = [frame for frame in frames if frame.complete]
  slots = [score for frame in whole for score in frame.scores.values()]
  result = {"num_frames": float(len(whole))}
  result["num_frames_incomplete"] = float(len(frames) - len(whole))
  if slots:
    result["slot_accuracy"] = float(np.mean(slots))
  for suffix, group in _groups([frame.seen for frame in whole]):
    result[f"jga{suffix}"] = float(np.mean([frame.jga for frame in whole], where=group))
  return result


def schema_sensitivity(
  targets: Sequence[Mapping[str, Any]],
  predictions: Sequence[str | None],
  backend: str = "difflib",
  zero_mean: str = "zero",
) -> dict[str, float]:
  """Returns JGA per variant and schema sensitivity, of a task that holds several variants.

  All numbers are over the frames that are complete in every variant found.

  Args:
    targets: see the module.
    predictions: see the module.
    backend: see `fuzzy.match`.
    zero_mean: see `sensitivity.schema_sensitivity`.

  Returns:
    jga_v1 ... jga_v5, jga_v1_5, ss_jga, ss_jga_exclude, zero_mean_share, num_frames, each also
    with _seen and _unseen, and num_frames_incomplete; jga_orig and diff_rel if the task
    holds the original too. As in `sensitivity.summarise`, the means need v1 to v5.

  Raises:
    SgdxError: a repeated example, or a malformed id.
  """
  variants = _collect(targets, predictions, backend)
  keys = dict.fromkeys(key for found in variants.values() for key in found)
  shared = [key for key in keys if all(key in f and f[key].complete for f in variants.values())]
  result = {"num_frames_incomplete": float(len(keys) - len(shared))}
  jga = {v: np.array([found[key].jga for key in shared]) for v, found in variants.items()}
  seen = [next(iter(variants.values()))[key].seen for key in shared]
  for suffix, group in _groups(seen):
    row = summarise({v: scores[group] for v, scores in jga.items()}, zero_mean)
    result.update({f"{k}{suffix}": x for k, x in row.items() if not math.isnan(x)})
    result[f"num_frames{suffix}"] = float(group.sum())
  result.setdefault("num_frames", 0.0)
  return result


def _groups(seen: Sequence[bool]) -> list[tuple[str, np.ndarray]]:
  """Returns (key suffix, [F] bool) of all, seen and unseen frames, where there are any."""
  mask = np.array(seen, dtype=bool)
  groups = [("", np.ones(len(mask), dtype=bool)), ("_seen", mask), ("_unseen", ~mask)]
  return [(suffix, group) for suffix, group in groups if group.any()]


def _collect(
  targets: Sequence[Mapping[str, Any]], predictions: Sequence[str | None], backend: str
) -> dict[str, dict[str, _Frame]]:
  """Returns variant -> split and frame id -> its slots' scores."""
  if len(targets) != len(predictions):
    raise SgdxError(
      f"{len(targets)} targets and {len(predictions)} predictions",
      expected="one prediction per target",
      fix="give the predictions of the same examples, in their order",
    )
  variants: dict[str, dict[str, _Frame]] = {}
  for target, prediction in zip(targets, predictions, strict=True):
    variant, key, slot = _parse_id(target["id"])
    frames = variants.setdefault(variant, {})
    frame = frames.setdefault(key, _Frame(target["service_slots"], bool(target["seen"])))
    if slot in frame.scores:
      raise SgdxError(
        f"example {target['id']} occurs twice",
        expected="each example once: a repeated one would count twice",
        fix="evaluate a data set that does not repeat and whose dialogue ids are unique",
      )
    predicted = [] if prediction is None else [prediction]
    frame.scores[slot] = slot_score(target["values"], predicted, target["categorical"], backend)
  # The original first, then v1 ...: `shared` keeps its order, whatever the order of examples.
  return dict(sorted(variants.items(), key=lambda item: (item[0] != ORIGINAL, item[0])))


def _parse_id(example_id: str) -> tuple[str, str, str]:
  """Splits an example id into variant, "split/frame" and slot; a frame may hold slashes."""
  variant, _, rest = example_id.partition("/")
  key, _, slot = rest.rpartition("/")
  if not (variant and slot and "/" in key):
    raise SgdxError(
      f"example id {example_id!r}",
      expected=_ID_FORM,
      fix="make examples with the tasks of sgdx_t5x.tasks",
    )
  return variant, key, slot
