"""A user turn with another goal: its acts and its state, for which an utterance is then found."""

import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.dialogue import NAMED_ACTS
from sgdx_t5x.corpus.schema import DONTCARE, Schema
from sgdx_t5x.papers.checkdst.pi_words import Exchange, NewWords
from sgdx_t5x.papers.checkdst.texts import is_said, normalised
from sgdx_t5x.papers.coco.coco_combinations import Combinations
from sgdx_t5x.papers.coco.coco_goals import Belief, Rules, choose_slots
from sgdx_t5x.papers.coco.coco_values import Value, ValueSource
from sgdx_t5x.papers.coco.turn_examples import turn_id

INFORM = "INFORM"


@dataclasses.dataclass(frozen=True)
class Goal:
  """What a turn is to inform.

  Attributes:
    frame: index of the turn's frame that informs it.
    service: of that frame.
    informed: slot -> value, in the order of the acts; added slots come last.
    changed: changed slots of `informed` -> their old value.
    dropped: dropped slots -> their old value.
    added: slots of `informed` that the user did not inform originally.
  """

  frame: int
  service: str
  informed: Mapping[str, Value]
  changed: Mapping[str, Value] = dataclasses.field(default_factory=dict)
  dropped: Mapping[str, Value] = dataclasses.field(default_factory=dict)
  added: frozenset[str] = frozenset()

  @property
  def is_original(self) -> bool:
    """Whether it is what the user informed originally."""
    return not (self.changed or self.dropped or self.added)

  @property
  def gone(self) -> list[Value]:
    """Values that are no longer informed."""
    return [*self.changed.values(), *self.dropped.values()]

  def to_json(self) -> dict[str, Any]:
    """Returns the edit in the form of changes.jsonl."""
    spoken = {slot: value.spoken for slot, value in self.informed.items()}
    return {
      "service": self.service,
      "kept": sorted(self.informed.keys() - self.changed.keys() - self.added),
      "dropped": sorted(self.dropped),
      "changed": {slot: [v.spoken, spoken[slot]] for slot, v in self.changed.items()},
      "added": {slot: text for slot, text in spoken.items() if slot in self.added},
    }


@dataclasses.dataclass(frozen=True)
class UserTurn:
  """A turn that informs something.

  Attributes:
    exchange: its dialogue.
    number: of the turn.
    goal: what it informs.
    forms: values of the dialogue as said -> canonical ones.
    carried: service -> slots whose value enters the state though neither side said it for this
      service: only the wording of the turn refers to it ("there").
  """

  exchange: Exchange
  number: int
  goal: Goal
  forms: Mapping[str, set[str]]
  carried: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)

  @property
  def data(self) -> Mapping[str, Any]:
    """The decoded turn."""
    return self.exchange.data["turns"][self.number]

  @property
  def id(self) -> str:
    """Its name: "1_00000.t04"."""
    return turn_id(self.exchange.data["dialogue_id"], self.number)

  @property
  def heard(self) -> str:
    """The system utterance before."""
    return self.exchange.data["turns"][self.number - 1]["utterance"] if self.number else ""

  @property
  def state_before(self) -> Mapping[str, Sequence[str]]:
    """Slot values of its service before the turn."""
    return self.exchange.states_before[self.number].get(self.goal.service, {})


def original_goal(turn: Mapping[str, Any]) -> Goal | None:
  """Returns what a turn informs; None if nothing, or in more than one frame."""
  goals = []
  for i, frame in enumerate(turn["frames"]):
    informed = {}
    for action in frame.get("actions") or ():
      if action["act"] == INFORM and (spoken := action["values"]):
        canonical = (action.get("canonical_values") or spoken)[0]
        informed[action["slot"]] = Value(canonical, spoken[-1])
    if informed:
      goals.append(Goal(i, frame["service"], informed))
  return goals[0] if len(goals) == 1 else None


def belief_of(turn: UserTurn, schema: Schema) -> Belief:
  """Returns what determines how the goal of a turn can be changed."""
  goal, service = turn.goal, schema[turn.goal.service]
  heard = normalised(turn.heard)
  state = turn.data["frames"][goal.frame]["state"]
  addable: tuple[str, ...] = ()
  if state["active_intent"] in service.intent_index:
    intent = service.intents[service.intent_index[state["active_intent"]]]
    accepted = {*intent.required_slots, *intent.optional_slots}
    addable = tuple(slot.name for slot in service.slots if slot.name in accepted)
  fixed = set()
  for slot, value in goal.informed.items():
    if DONTCARE in value or is_said(value.spoken, heard):
      fixed.add(slot)
  requested = (a["slot"] for a in turn.exchange.heard(turn.number) if a["act"] == "REQUEST")
  in_state = frozenset((*state["slot_values"], *turn.state_before))
  return Belief(tuple(goal.informed), frozenset(fixed), frozenset(requested), in_state, addable)


def draw_goal(
  turn: UserTurn,
  values: ValueSource,
  combinations: Combinations,
  frequency: str,
  rules: Rules,
  rng: random.Random,
) -> Goal:
  """Draws a counterfactual goal.

  Args:
    turn: whose goal is changed.
    values: where values come from.
    combinations, frequency: what may be added, see `Combinations.allowed`.
    rules: how slots are chosen.
    rng: random number generator.
  """
  goal, service = turn.goal, turn.goal.service

  def allowed(slot: str, added_slot: str) -> bool:
    return combinations.allowed(frequency, service, slot, added_slot)

  choice = choose_slots(belief_of(turn, values.schema), allowed, rules, rng)
  canonical, used = _values_in_state(turn)
  informed: dict[str, Value] = {}
  changed: dict[str, Value] = {}
  for slot in (*choice.retained, *choice.added):
    if slot in choice.retained:
      informed[slot] = goal.informed[slot]
    gets_value = slot in choice.changed or slot in choice.added
    if gets_value and (value := values.draw(service, slot, rng, used, canonical)):
      if slot in choice.changed:
        changed[slot] = goal.informed[slot]
      informed[slot], canonical[slot] = value, value.canonical
      used.update(map(str.lower, value))
  dropped = {slot: goal.informed[slot] for slot in choice.dropped}
  added = frozenset(choice.added).intersection(informed)
  return Goal(goal.frame, service, informed, changed, dropped, added)


def _values_in_state(turn: UserTurn) -> tuple[dict[str, str], set[str]]:
  """Returns slot -> canonical value, and all values in lower case, of the state after a turn."""
  goal = turn.goal
  state = turn.data["frames"][goal.frame]["state"]["slot_values"]
  canonical_values: dict[str, str] = {}
  texts: set[str] = set()
  for slot, values in state.items():
    texts.update(values)
    if values:
      canonical_values[slot] = min(turn.forms.get(values[0], values[:1]))
  for slot, value in goal.informed.items():
    texts.update(value)
    canonical_values[slot] = value.canonical
  texts.update(canonical_values.values())
  return canonical_values, set(map(str.lower, texts))


def outlined_turn(turn: UserTurn, goal: Goal, schema: Schema) -> dict[str, Any]:
  """Returns a turn with the acts and the state of a goal; its utterance only lists the values.

  It has the spans of what is to be said, so that paraphrase providers can find words for it.
  """
  frames = [{**frame} for frame in turn.data["frames"]]
  frame = frames[goal.frame]
  frame["actions"] = _acts(frame["actions"], goal)
  frame["state"] = {**frame["state"], "slot_values": _state(frame, turn.state_before, goal, schema)}
  text = ""
  for frame in frames:
    free, spans = schema[frame["service"]].noncategorical_slots, []
    for action in frame["actions"]:
      if action.get("slot") not in free or action["act"] in NAMED_ACTS:
        continue
      for value in action["values"]:
        if value != DONTCARE:
          start = len(text)
          text += f"{value} | "
          spans.append(
            {"slot": action["slot"], "start": start, "exclusive_end": start + len(value)}
          )
    frame["slots"] = spans
  return {**turn.data, "frames": frames, "utterance": text}


def _acts(actions: Sequence[Mapping[str, Any]], goal: Goal) -> list[Mapping[str, Any]]:
  edited_acts, end = [], 0
  for action in actions:
    slot = action.get("slot", "")
    if action["act"] == INFORM:
      if slot in goal.dropped:
        continue
      if slot in goal.changed:
        action = _inform(slot, goal.informed[slot])
    edited_acts.append(action)
    if action["act"] == INFORM:
      end = len(edited_acts)
  added = [_inform(slot, value) for slot, value in goal.informed.items() if slot in goal.added]
  return [*edited_acts[:end], *added, *edited_acts[end:]]


def _inform(slot: str, value: Value) -> dict[str, Any]:
  return {
    "act": INFORM, "canonical_values": [value.canonical], "slot": slot, "values": [value.spoken]
  }  # fmt: skip


def _state(
  frame: Mapping[str, Any], state_before: Mapping[str, Sequence[str]], goal: Goal, schema: Schema
) -> dict[str, list[str]]:
  """The state after the turn: a dropped slot gets back its value from before the turn, if any."""
  state = dict(frame["state"]["slot_values"])
  free = schema[goal.service].noncategorical_slots
  for slot in goal.dropped:
    state.pop(slot, None)
    if slot in state_before:
      state[slot] = list(state_before[slot])
  for slot in (*goal.changed, *goal.added):
    value = goal.informed[slot]
    state[slot] = [value.spoken if slot in free else value.canonical]
  return state


def worded_turn(outlined: Mapping[str, Any], wording: NewWords) -> dict[str, Any]:
  """Returns an outlined turn with its words."""
  frames = [{**frame, "slots": []} for frame in outlined["frames"]]
  for service, slot, start, end in sorted(wording.spans, key=lambda span: span[2]):
    for frame in frames:
      if frame["service"] == service:
        frame["slots"].append({"slot": slot, "start": start, "exclusive_end": end})
  return {**outlined, "frames": frames, "utterance": wording.text}


def cut_dialogue(turn: UserTurn, last: Mapping[str, Any]) -> dict[str, Any]:
  """Returns a dialogue up to a user turn, with that turn replaced, under the turn's id."""
  data = turn.exchange.data
  turns = [*data["turns"][: turn.number], last]
  used_services: set[str] = set()
  for earlier_turn in turns:
    used_services.update(frame["service"] for frame in earlier_turn["frames"])
  services = [name for name in data["services"] if name in used_services]
  return {**data, "dialogue_id": turn.id, "services": services, "turns": turns}
