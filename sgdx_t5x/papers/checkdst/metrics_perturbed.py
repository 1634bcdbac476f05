"""The effect of a perturbed test set on a tracker: other names, other words, disfluent speech.

The definitions are those of CheckDST (Cho et al. 2022) where it has one, over the same frames: the
frames that the perturbation changed and that have a score in both the original and the perturbed
set. A frame is right if its JGA is 1. For the set E of these frames, before and after,

  before     = #(right before) / #E              the original set, on the frames of E
  perturbed  = #(right after) / #E
  cjga       = #(right before and after) / #E
  broken     = #(right before, wrong after) / #E          regressions
  fixed      = #(wrong before, right after) / #E          improvements
  retained   = #(right before and after) / #(right before)
  conditional = #(right before and after) / #(right before or after)
  agreement  = #(the same state predicted before and after) / #E
  drop       = (perturbed - before) / before

so perturbed = before - broken + fixed, and cjga is at most before, perturbed, and
1 - |before - perturbed| (the paper's Lemma 1, which holds only over the same frames). Other
numbers are over all frames of a set: JGA, slots (`slots`), names (`factuality`), coreference
(`corpus.provenance`).
"""

import dataclasses
import itertools
from collections.abc import Callable, Collection, Mapping

from sgdx_t5x.corpus.provenance import ACCEPTED, CARRIED
from sgdx_t5x.corpus.schema import DONTCARE, Service
from sgdx_t5x.metrics import fuzzy
from sgdx_t5x.metrics.agreement import frame_agreement
from sgdx_t5x.metrics.failures import State
from sgdx_t5x.metrics.frames import GoldFrame
from sgdx_t5x.metrics.slots import right_slots
from sgdx_t5x.papers.checkdst.metrics_counterfactual import COUNTERFACTUAL
from sgdx_t5x.papers.checkdst.metrics_factuality import History
from sgdx_t5x.papers.checkdst.ratios import Ratio, share

_EITHER = {"right_before": 1, "right_after": 1, "right_both": -1}
PAIRED: dict[str, Ratio] = {  # over the frames that a perturbation changed
  "before": share("right_before", "changed"),
  "perturbed": share("right_after", "changed"),
  "cjga": share("right_both", "changed"),
  "broken": Ratio({"right_before": 1, "right_both": -1}, {"changed": 1}),
  "fixed": Ratio({"right_after": 1, "right_both": -1}, {"changed": 1}),
  "retained": share("right_both", "right_before"),
  "conditional": Ratio({"right_both": 1}, _EITHER),
  "agreement": share("agreeing", "compared"),
  "drop": Ratio({"right_after": 1, "right_before": -1}, {"right_before": 1}),
  "reverted": share("reverted", "changed_entities"),
  "repair_taken": share("repairs_taken", "repairs"),
}
ALONE: dict[str, Ratio] = {  # over all frames of a set
  "jga": share("jga", "scored"),
  "factuality": share("factual", "entities"),
  "from_train": share("from_train", "looked_up"),
  "slot_precision": share("right_slots", "predicted_slots"),
  "slot_recall": share("right_slots", "gold_slots"),
  "slot_f1": Ratio({"right_slots": 2}, {"predicted_slots": 1, "gold_slots": 1}),
  "coref_jga": share("coref_right", "coref_frames"),
  "coref_slot_accuracy": share("carried_right", "carried"),
  "coref_new_slot_accuracy": share("carried_new_right", "carried_new"),
  "accepted_jga": share("accepted_right", "accepted_frames"),
}
LIKE_CHECKDST: dict[str, Ratio] = {  # CheckDST's own definitions, where they differ
  "coref_jga_sticky": share("sticky_right", "sticky_frames"),
  "factuality_part": share("factual_part", "entities"),
}
_RATIOS = (*ALONE.values(), *PAIRED.values(), *LIKE_CHECKDST.values(), *COUNTERFACTUAL.values())
_NAMES = ((*ratio.denominator, *ratio.numerator) for ratio in _RATIOS)
COUNTS = tuple(dict.fromkeys(itertools.chain.from_iterable(_NAMES)))


@dataclasses.dataclass(frozen=True)
class Before:
  """A frame's counterpart in the original set.

  Attributes:
    state: the state predicted there, in original names.
    jga: its official JGA, 0 to 1; nan if the service has no slots.
    changed: whether the perturbation changed the frame.
    names: replaced string -> its replacement, in this dialogue; None if the perturbation replaces
      no strings.
    choices: categorical slot -> replaced value -> its replacement.
    same_goal: False if the user's goal was edited, which leaves nothing to agree on.
  """

  state: State
  jga: float
  changed: bool
  names: Mapping[str, str] | None = None
  choices: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
  same_goal: bool = True


@dataclasses.dataclass(frozen=True)
class FrameFacts:
  """The context of a frame, besides its states.

  Attributes:
    history: the utterances of its dialogue.
    entities: slots of its service whose values are names.
    replaced: slots of its service whose values a perturbation replaced.
    repairs: slot -> the value that the user says first and corrects ("Oslo, I mean Bergen").
    in_train: whether a value occurs in a state of train; None if not known (nothing is counted).
  """

  history: History
  entities: frozenset[str] = frozenset()
  replaced: frozenset[str] = frozenset()
  repairs: Mapping[str, str] = dataclasses.field(default_factory=dict)
  in_train: Callable[[str], bool] | None = None


def frame_counts(
  service: Service,
  gold: GoldFrame,
  state: State,
  jga: float,
  original: Before | None,
  facts: FrameFacts,
  backend: str = "difflib",
) -> dict[str, float]:
  """Returns the counts of a frame: `COUNTS` -> number; absent ones are 0.

  Args:
    service: the frame's service, in the original schema.
    gold: the frame in its set, with origins.
    state: the predicted state, in original names.
    jga: its official JGA; nan if the service has no slots.
    original: its counterpart in the original set; None if there is none, or for the original set.
    facts: see `FrameFacts`.
    backend: see `fuzzy.match`.
  """
  counts = {"scored": 1.0, "jga": jga} if jga == jga else {}
  counts |= _slots(service, gold, state, jga, backend)
  counts |= _coreference(gold, jga)
  counts |= _entities(gold, state, facts)
  if original is not None and jga == jga and original.jga == original.jga and original.changed:
    counts |= _pair(service, state, jga, original, facts, backend)
  counts |= {"repairs": len(facts.repairs), "repairs_taken": 0}
  for slot, first_said in facts.repairs.items():
    if state.get(slot) and fuzzy.equal(state[slot][0], first_said, backend):
      counts["repairs_taken"] += 1
  return counts


def mapped(
  original: Before, perturbed: State, slots: frozenset[str], backend: str = "difflib"
) -> State:
  """Returns the state predicted before, with the perturbation's replacements applied.

  Args:
    original: the counterpart in the original set, with the names of its dialogue.
    perturbed: the state predicted from the perturbed dialogue. If a slot's several values are the
      same set there, its order is used, since sorted values change order when they are replaced.
    slots: slots whose values were replaced, besides those in `original.choices`.
    backend: "exact" looks up names exactly, others also match them as `fuzzy.equal` does.
  """
  if not (original.names or original.choices):
    return original.state
  state, names = dict(original.state), original.names or {}
  for slot in slots.intersection(state) if names else ():
    values = tuple(_mapped(value, names, backend) for value in state[slot])
    values_after = perturbed.get(slot, ())
    state[slot] = values_after if len(values) > 1 and set(values) == set(values_after) else values
  for slot, choices in original.choices.items():
    if slot in state:
      state[slot] = tuple(choices.get(value, value) for value in state[slot])
  return state


# --- parts -----------------------------------------------------------------------------------


def _slots(
  service: Service, gold: GoldFrame, state: State, jga: float, backend: str
) -> dict[str, float]:
  slots_of_service = service.slot_index
  gold_slots = [slot for slot in gold.slot_values if slot in slots_of_service]
  right_slots_of_frame: Collection[str] = gold_slots  # as in most frames
  if not jga >= 1:
    right_slots_of_frame = right_slots(service, gold.slot_values, state, backend)
  counts: dict[str, float] = {
    "predicted_slots": sum([slot in slots_of_service for slot in state]),
    "gold_slots": len(gold_slots),
    "right_slots": len(right_slots_of_frame),
  }
  carried = [slot for slot, origin in gold.origins.items() if origin.source == CARRIED]
  if carried:
    entering = [slot for slot in carried if gold.origins[slot].turn == gold.turn]
    counts["carried"] = len(carried)
    counts["carried_right"] = sum(slot in right_slots_of_frame for slot in carried)
    counts["carried_new"] = len(entering)
    counts["carried_new_right"] = sum(slot in right_slots_of_frame for slot in entering)
  return counts


def _coreference(gold: GoldFrame, jga: float) -> dict[str, float]:
  if jga != jga:
    return {}
  sources = {origin.source for origin in gold.origins.values()}
  counts = {"sticky_frames": 1.0, "sticky_right": jga} if gold.is_sticky else {}
  if CARRIED in sources:
    return counts | {"coref_frames": 1.0, "coref_right": jga}
  return counts | ({"accepted_frames": 1.0, "accepted_right": jga} if ACCEPTED in sources else {})


def _entities(gold: GoldFrame, state: State, facts: FrameFacts) -> dict[str, float]:
  names = ("entities", "factual", "factual_part", "looked_up", "from_train")
  counts = dict.fromkeys(names, 0.0)
  for value in predicted_values(state, facts.entities):
    counts["entities"] += 1
    counts["factual_part"] += facts.history.has_part(value, gold.turn)
    if facts.history.has(value, gold.turn):
      counts["factual"] += 1
    elif facts.in_train is not None:
      counts["looked_up"] += 1
      counts["from_train"] += facts.in_train(value)
  return counts


def predicted_values(state: State, slots: frozenset[str]) -> list[str]:
  """Returns the first value of each of these slots in a state, without "dontcare"."""
  values = (next(iter(state[slot]), DONTCARE) for slot in slots if slot in state)
  return [value for value in values if value != DONTCARE]


def _pair(
  service: Service, state: State, jga: float, original: Before, facts: FrameFacts, backend: str
) -> dict[str, float]:
  was_right, is_right = original.jga >= 1, jga >= 1
  counts = {
    "changed": 1.0,
    "right_before": was_right,
    "right_after": is_right,
    "right_both": was_right and is_right,
  }
  if original.same_goal:
    expected = mapped(original, state, facts.replaced, backend)
    agreement = frame_agreement(service, [expected, state], backend)
    if agreement == agreement:
      counts |= {"compared": 1.0, "agreeing": agreement}
  if original.names is not None:
    names = predicted_values(state, facts.replaced)
    counts["changed_entities"] = len(names)
    counts["reverted"] = sum(_is_reverted(value, original.names, backend) for value in names)
  return counts


def _is_reverted(value: str, names: Mapping[str, str], backend: str) -> bool:
  """Whether a value is a replaced name, and not also a replacement."""
  if backend == "exact" or value in names:
    return value in names and value not in names.values()
  is_replaced = any(fuzzy.equal(name, value, backend) for name in names)
  return is_replaced and not any(fuzzy.equal(name, value, backend) for name in names.values())


def _mapped(value: str, names: Mapping[str, str], backend: str) -> str:
  if value in names or backend == "exact":
    return names.get(value, value)
  for name, replacement in names.items():
    if fuzzy.equal(name, value, backend):
      return replacement
  return value
