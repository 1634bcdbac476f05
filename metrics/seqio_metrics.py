"""Metric functions for SeqIO tasks with one example per slot of a frame, or one per frame.

The official JGA is a product over all slots of a service. Examples for the tracked slots alone give
the same number: the other slots are never in a gold or predicted state, so each of them scores 1.
(Frames of a service with other slots only, which SGD lacks, have no examples of unit "slot".)

Both functions take the output of a task's postprocessor (`prompts.seqio_steps.read_back`), which
depends on the unit of the task's prompt format.
  targets: one dict per example,
    id: "v3/dev/1_00000-002-Banks_2/account_type", i.e. variant, split, frame and slot,
      with the original names of service and slot; "*" for the slot if the unit is "frame";
    seen: whether the frame's service is also in train.
  A target of unit "slot" also has
    values: acceptable gold values, empty if the slot is not in the gold state;
    service_slots: number of slots with an example in this frame;
    categorical: whether the slot is categorical.
  A target of unit "frame" also has
    state: the gold state, slot -> acceptable gold values;
    slots: slot -> whether it is categorical, for all slots that can be in a state;
    has_slots: whether the service has any (default: True); if not, the frame has no JGA;
    active_intent, requested_slots: gold values.
  predictions: one per example in the same order. For unit "slot" a value, or None for "not in the
    state"; for unit "frame" a `PredictedFrame`.
A frame with missing examples (an evaluation limited by `num_examples`) has no JGA: it is excluded
and counted in `num_frames_incomplete`. Undefined metrics are omitted.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.variants import ORIGINAL, untagged
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics.f1 import multiset_f1
from sgdx_t5x.metrics.frames import PredictedFrame
from sgdx_t5x.metrics.goals import slot_score
from sgdx_t5x.metrics.intents import intent_score
from sgdx_t5x.metrics.sensitivity import summarise

Prediction = str | PredictedFrame | None
JGA, INTENT, REQUESTED = "jga", "active_intent_accuracy", "requested_slots_f1"


@dataclasses.dataclass
class _Frame:
  """The scores of a frame, from the examples seen so far."""

  num_examples: int  # number of examples of a complete frame
  seen: bool
  has_slots: bool = True
  examples: set[str | None] = dataclasses.field(default_factory=set)  # the slots they ask for
  scores: dict[str, float] = dataclasses.field(default_factory=dict)  # per slot
  further: dict[str, float] = dataclasses.field(default_factory=dict)  # INTENT, REQUESTED

  @property
  def complete(self) -> bool:
    return len(self.examples) == self.num_examples

  @property
  def jga(self) -> float:
    return math.prod(self.scores.values()) if self.has_slots else math.nan


def joint_goal_accuracy(
  targets: Sequence[Mapping[str, Any]], predictions: Sequence[Prediction], backend: str = "difflib"
) -> dict[str, float]:
  """Returns JGA of one variant.

  Args:
    targets, predictions: see the module.
    backend: see `fuzzy.match`.

  Returns:
    jga, slot_accuracy (mean over the scored slots of complete frames), num_frames,
    num_frames_incomplete; active_intent_accuracy and requested_slots_f1 if they are predicted. All
    but slot_accuracy and the counts also with _seen and _unseen.

  Raises:
    SgdxError: examples of several variants, a repeated example, or a malformed id.
  """
  variants = _collect(targets, predictions, backend)
  if len(variants) > 1:
    raise SgdxError(
      f"joint_goal_accuracy received examples of {len(variants)} variants",
      expected="examples of a single variant",
      available=", ".join(variants),
      fix="use schema_sensitivity as the metric of a task with several variants",
    )
  frames = [*next(iter(variants.values()), {}).values()]
  complete = [frame for frame in frames if frame.complete]
  slot_scores: list[float] = []
  for frame in complete:
    slot_scores += frame.scores.values()
  result = {"num_frames": float(len(complete))}
  result["num_frames_incomplete"] = float(len(frames) - len(complete))
  if slot_scores:
    result["slot_accuracy"] = float(np.mean(slot_scores))
  for suffix, group in _groups([frame.seen for frame in complete]):
    for key, scores in _scores(complete).items():
      if (has_score := group & ~np.isnan(scores)).any():
        result[f"{key}{suffix}"] = float(np.mean(scores, where=has_score))
  return result


def schema_sensitivity(
  targets: Sequence[Mapping[str, Any]],
  predictions: Sequence[Prediction],
  backend: str = "difflib",
  zero_mean: str = "zero",
) -> dict[str, float]:
  """Returns JGA per variant and schema sensitivity, for a task with several variants.

  All numbers are over the frames that are complete in every variant found.

  Args:
    targets, predictions: see the module.
    backend: see `fuzzy.match`.
    zero_mean: see `sensitivity.schema_sensitivity`.

  Returns:
    The numbers of JGA that `sensitivity.summarise` returns and that are defined: those of the
    variants of the task, and, with all of v1 to v5, jga_v1_5, ss_jga and so on; num_frames. Each
    also with _seen and _unseen; and num_frames_incomplete. If intents or requested slots are
    predicted, active_intent_accuracy_v1 ..., ss_active_intent_accuracy and so on, as jga.

  Raises:
    SgdxError: a repeated example, or a malformed id.
  """
  variants = _collect(targets, predictions, backend)
  num_complete: Counter[tuple[str, str]] = Counter()  # variants in which a frame is complete
  for by_frame in variants.values():
    for key, frame in by_frame.items():
      num_complete[key] += frame.complete
  shared = [key for key, number in num_complete.items() if number == len(variants)]
  result = {"num_frames_incomplete": float(len(num_complete) - len(shared))}
  scores: dict[str, dict[str, np.ndarray]] = {}
  frames: list[_Frame] = []
  for variant, by_frame in variants.items():
    frames = [by_frame[key] for key in shared]
    scores[variant] = _scores(frames)
  for suffix, group in _groups([frame.seen for frame in frames]):  # the same in every variant
    for name in (JGA, INTENT, REQUESTED):
      if not all(name in by_name for by_name in scores.values()):
        continue
      values = {variant: by_name[name][group] for variant, by_name in scores.items()}
      for key, number in summarise(values, zero_mean, name).items():
        # Keys without a name, such as "worst", are JGA's.
        if not math.isnan(number) and (name == JGA or name in key):
          result[f"{key}{suffix}"] = number
    result[f"num_frames{suffix}"] = float(group.sum())
  result.setdefault("num_frames", 0.0)
  return result


def _groups(is_seen: Sequence[bool]) -> Iterator[tuple[str, np.ndarray]]:
  """Yields (key suffix, [F] bool) of all, seen and unseen frames, where there are any."""
  mask = np.array(is_seen, dtype=bool)
  for suffix, group in (("", np.ones(len(mask), dtype=bool)), ("_seen", mask), ("_unseen", ~mask)):
    if group.any():
      yield suffix, group


def _scores(frames: Sequence[_Frame]) -> dict[str, np.ndarray]:
  """Returns JGA, and the other scores that all frames have, each [F]."""
  scores = {JGA: np.array([frame.jga for frame in frames])}
  for key in (INTENT, REQUESTED):
    if all(key in frame.further for frame in frames):
      scores[key] = np.array([frame.further[key] for frame in frames])
  return scores


def _collect(
  targets: Sequence[Mapping[str, Any]], predictions: Sequence[Prediction], backend: str
) -> dict[str, dict[tuple[str, str], _Frame]]:
  """Returns variant -> (split, frame id) -> its scores."""
  if len(targets) != len(predictions):
    raise SgdxError(
      f"{len(targets)} targets and {len(predictions)} predictions",
      expected="one prediction per target",
      fix="pass one prediction per example, in the same order",
    )
  variants: dict[str, dict[tuple[str, str], _Frame]] = {}
  for target, prediction in zip(targets, predictions, strict=True):
    example = ExampleId.parse(target["id"])
    # An example without a slot asks for the whole frame.
    num_examples = 1 if example.slot is None else target["service_slots"]
    variant = untagged(example.variant)[1]  # "ned+v3" is v3, of perturbed dialogues
    frame = variants.setdefault(variant, {}).setdefault(
      (example.split, example.frame_id), _Frame(num_examples, bool(target["seen"]))
    )
    if example.slot in frame.examples:
      raise SgdxError(
        f"example {example} occurs twice",
        expected="unique examples, since a repeated one would count twice",
        fix="evaluate a data set without repeated examples and with unique dialogue ids",
      )
    frame.examples.add(example.slot)
    if example.slot is None:
      _score_frame(frame, target, prediction, backend)  # type: ignore[arg-type]
    else:
      predicted: list[Any] = [] if prediction is None else [prediction]
      score = slot_score(target["values"], predicted, target["categorical"], backend)
      frame.scores[example.slot] = score
  # The original first, then v1 ...: `shared` keeps its order, whatever the order of examples.
  return dict(sorted(variants.items(), key=lambda item: (item[0] != ORIGINAL, item[0])))


def _score_frame(
  frame: _Frame, target: Mapping[str, Any], prediction: PredictedFrame, backend: str
) -> None:
  """Scores an example that asks for the whole frame."""
  gold, predicted = target["state"], prediction.slot_values
  frame.has_slots = target.get("has_slots", True)
  for slot in dict.fromkeys((*target["slots"], *predicted)):
    # A slot that no gold state can have is wrong as soon as it is predicted.
    categorical = target["slots"].get(slot, False)
    values = gold.get(slot, ()), predicted.get(slot, ())
    frame.scores[slot] = slot_score(*values, categorical, backend)
  # A format whose answers have no intents or requested slots has no scores of them.
  if prediction.active_intent is not None:
    frame.further[INTENT] = intent_score(target["active_intent"], prediction.active_intent)
  if prediction.requested_slots is not None:
    f1 = multiset_f1(tuple(target["requested_slots"]), tuple(prediction.requested_slots))
    frame.further[REQUESTED] = f1[0]
