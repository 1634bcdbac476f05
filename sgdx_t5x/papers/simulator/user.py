"""The user agent: goes through a scenario with a goal for each step, following the automaton.

Goals are drawn from the services' tables, so that what users ask for exists.
"""

import random
from collections.abc import Callable, Container, Mapping, Sequence

from sgdx_t5x.corpus.schema import DONTCARE, NO_INTENT, Intent
from sgdx_t5x.papers.simulator.acts import Act, CommonGround, FrameOutline, definite, slots_of
from sgdx_t5x.papers.simulator.backend import Backend
from sgdx_t5x.papers.simulator.scenarios import Link, Scenario, Step
from sgdx_t5x.papers.simulator.transitions import Transitions

ENOUGH = "ENOUGH"  # situation in which the user says goodbye, even with intents left


class User:
  """The user in one conversation."""

  def __init__(
    self,
    scenario: Scenario,
    backends: Mapping[str, Backend],
    transitions: Transitions,
    rng: random.Random,
    ground: CommonGround,
  ):
    """Args: see `outline`; `ground` is shared with the system."""
    self._backends, self._transitions, self._rng, self._ground = backends, transitions, rng, ground
    self._left = list(scenario.steps)  # steps not begun yet
    self._step = scenario.steps[0]  # or the one begun last
    self._goal: dict[str, str] = {}
    self._carried: list[Link] = []
    self._offered: dict[str, str] = {}
    self._confirmed: dict[str, str] = {}
    self._change: dict[str, str] | None = None  # drawn when considering a move, used if it is made
    self._questions: list[str] = []
    self._say: Mapping[str, Callable[[], list[Act]]] = {
      "INFORM": self._inform,
      "REQUEST": lambda: [Act("REQUEST", slot) for slot in self._questions],
      "SELECT": self._select,
      "INFORM_INTENT": self._inform_intent,
      "AFFIRM_INTENT": self._affirm_intent,
      "NEGATE_INTENT": self._negate_intent,
      "AFFIRM": self._affirm,
    }

  def turn(self, situation: str, heard: Sequence[Act]) -> list[FrameOutline]:
    """Answers the system's acts: draws moves until one is possible.

    Args:
      situation: a key of the user's part of the transitions; or ENOUGH, to say goodbye.
      heard: the system's acts.

    Returns:
      One frame, or two if the user switches from one service to another.
    """
    self._heard = heard
    self._carried = []
    self._listen(situation)
    moves = () if situation == ENOUGH else self._transitions.user[situation].shuffled(self._rng)
    move = next((move for move in moves if self._is_possible(move)), ("GOODBYE",))
    acts: dict[str, list[Act]] = {}  # by service, which may change when an intent is stated
    for act in move:
      if act in ("INFORM_INTENT", "AFFIRM_INTENT"):
        self._begin(self._left.pop(0))
      new_acts = self._say[act]() if act in self._say else [Act(act)]
      acts.setdefault(self._step.service.name, []).extend(new_acts)
    if move == ("NEGATE", "THANK_YOU"):
      self._ground.intent[self._step.service.name] = NO_INTENT
    return [self._frame(service, new_acts) for service, new_acts in acts.items()]

  def _frame(self, service: str, acts: Sequence[Act]) -> FrameOutline:
    state, intent = dict(self._ground.state[service]), self._ground.intent[service]
    carried = self._carried if service == self._step.service.name else ()
    return FrameOutline(service, acts, intent, state, carried)

  @property
  def _state(self) -> dict[str, str]:
    return self._ground.state[self._step.service.name]

  @property
  def _backend(self) -> Backend:
    return self._backends[self._step.service.name]

  def _chance(self, name: str) -> bool:
    return self._rng.random() < self._transitions.chances[name]

  def _values_of(self, act: str) -> dict[str, str]:
    """Slot -> value for one kind of act in the system's turn."""
    return {a.slot: a.values[0] for a in self._heard if a.act == act}

  def _listen(self, situation: str) -> None:
    """Remembers offered and to-be-confirmed values; drops steps that a failure makes moot."""
    self._offered = self._values_of("OFFER") or self._offered
    self._confirmed.update(self._values_of("CONFIRM"))
    if situation == "NOTIFY_FAILURE":
      while self._left and self._left[0].of_selected:
        self._left.pop(0)

  # --- which moves can be made ---------------------------------------------------------------

  def _is_possible(self, move: Sequence[str]) -> bool:
    """Whether a move fits the scenario and what is known; draws its content."""
    self._change, self._questions = None, []
    if not self._suits_scenario(move):
      return False
    if "REQUEST" in move:
      self._questions = self._draw_questions()
      return bool(self._questions)
    if "SELECT" in move and self._lacks_linked() and self._chance("asks_for_linked"):
      return False  # ask for the address before going on to the ride
    if "REQUEST_ALTS" in move or "NEGATE" in move:
      if "INFORM" in move:
        self._change = self._draw_change("REQUEST_ALTS" in move)
        return self._change is not None
      return "NEGATE" in move or self._ground.offers_left > 0 or self._chance("asks_beyond_last")
    return True

  def _suits_scenario(self, move: Sequence[str]) -> bool:
    if ("GOODBYE" in move or move == ("NEGATE", "THANK_YOU")) and self._left:
      return False
    if "INFORM_INTENT" in move and not self._left:
      return False
    proposed = [a.values[0] for a in self._heard if a.act == "OFFER_INTENT"]
    if not proposed:
      return True
    is_next = (
      bool(self._left)
      and self._left[0].service is self._step.service
      and self._left[0].intent.name == proposed[0]
    )
    return is_next == ("AFFIRM_INTENT" in move)

  def _lacks_linked(self) -> set[str]:
    """Slots of this service that the next step would take over but that are not known yet."""
    if not self._left:
      return set()
    name = self._step.service.name
    needed = {link.source[1] for link in self._left[0].links if link.source[0] == name}
    known_slots = (*self._ground.mentioned[name], *self._state)
    return {s for s in needed if s in self._step.intent.result_slots and s not in known_slots}

  def _draw_questions(self) -> list[str]:
    mentioned = self._ground.mentioned[self._step.service.name]
    slots = self._step.intent.result_slots
    unknown = [s for s in slots if s not in (*mentioned, *self._state, *self._backend.open)]
    linked = self._lacks_linked()
    unknown = [s for s in unknown if s in linked] or unknown
    count = self._transitions.counts["questions"].draw(self._rng)
    return self._rng.sample(unknown, min(count, len(unknown)))

  def _draw_change(self, of_search: bool) -> dict[str, str] | None:
    """Another value for one slot that is compatible with the others; None if there is none."""
    intent = self._step.intent
    slots_of_intent = (*intent.required_slots, *intent.optional_slots)
    current = definite({s: self._state.get(s, DONTCARE) for s in slots_of_intent})
    # A new search changes a matched slot; a correction at confirmation changes an open one.
    if of_search:
      slots = [s for s in current if s not in self._backend.open]
    else:
      slots = [a.slot for a in self._heard if a.slot in current and a.slot in self._backend.open]
    linked = {link.target[1] for link in self._step.links}
    slots = [s for s in slots if s not in linked]
    self._rng.shuffle(slots)
    for slot in slots:
      row = self._backend.row(self._rng, {s: v for s, v in current.items() if s != slot})
      value = self._draw_value(slot, row) if row else current[slot]
      if value != current[slot]:
        return {slot: value}
    return None

  # --- goals -----------------------------------------------------------------------------------

  def _begin(self, step: Step) -> None:
    """Begins the next step of the scenario: draws its goal and carries over linked values."""
    search = self._step.intent if step.of_selected else None
    self._step, self._confirmed = step, {}
    self._ground.take_up(step.service.name)
    self._ground.intent[step.service.name] = step.intent.name
    links: dict[str, Link] = {}  # by target slot, as the values that they carry over
    linked: dict[str, str] = {}
    for link in step.links:
      if value := self._linked(link):
        links[link.target[1]], linked[link.target[1]] = link, value
    selected = self._selected(search) if search else {}
    fixed = {**selected, **linked}
    row = self._backend.row(self._rng, fixed)
    if row is None:  # this service does not have what the other one had
      linked = {slot: value for slot, value in linked.items() if slot in self._backend.open}
      fixed = {**selected, **linked}
      row = self._backend.row(self._rng, fixed) or self._backend.any_row(self._rng)
    self._goal = {s: self._draw_value(s, row) for s in self._wanted(step.intent, linked)}
    self._goal.update({slot: value for slot, value in fixed.items() if slot in self._goal})
    for slot in step.intent.optional_slots:
      if slot not in self._goal and self._chance("does_not_care"):
        self._goal[slot] = DONTCARE
    self._carried = [links[slot] for slot in linked]
    self._state.update(linked)

  def _selected(self, search: Intent) -> dict[str, str]:
    """Known values of the selected result; not values mentioned of earlier results."""
    search_slots = (*search.required_slots, *search.optional_slots)
    values = {**{s: self._state[s] for s in search_slots if s in self._state}, **self._offered}
    return definite(values)

  def _wanted(self, intent: Intent, linked: Container[str]) -> list[str]:
    """Slots for which the user wants a value; a slot that was "dontcare" before is not wanted."""
    wanted_slots = list(intent.required_slots)
    for slot in intent.optional_slots:
      is_wanted = slot in linked or self._state.get(slot, DONTCARE) != DONTCARE
      if is_wanted or (slot not in self._state and self._chance("wants_optional")):
        wanted_slots.append(slot)
    return wanted_slots

  def _linked(self, link: Link) -> str | None:
    """The value that a link carries over: known, valid for the target, and not yet set there."""
    service, slot = link.source
    if self._state.get(link.target[1], DONTCARE) != DONTCARE:
      return None
    value = {**self._ground.mentioned[service], **self._ground.state[service]}.get(slot)
    target = self._step.service.slots[self._step.service.slot_index[link.target[1]]]
    if value == DONTCARE or (target.is_categorical and value not in target.possible_values):
      return None
    return value

  def _draw_value(self, slot: str, row: Mapping[str, str]) -> str:
    """A value for a slot: the row's, or if the slot is open, any value in its column."""
    return self._rng.choice(self._backend.cells[slot]) if slot in self._backend.open else row[slot]

  # --- acts --------------------------------------------------------------------------------

  def _inform(self) -> list[Act]:
    """Informs a changed value, or what was requested, or some values not yet known."""
    if self._change is not None:
      return self._tell(self._change)
    requested = slots_of(self._heard, "REQUEST")
    pending = [s for s, v in self._goal.items() if s not in self._state and s not in requested]
    self._rng.shuffle(pending)
    if requested:
      count = len(requested) + self._chance("informs_unasked")
    else:
      count = self._transitions.counts["informs"].draw(self._rng)
    slots = [*requested, *pending][:count]
    return self._tell({s: self._goal.get(s, DONTCARE) for s in slots})

  def _tell(self, values: Mapping[str, str]) -> list[Act]:
    self._state.update(values)
    return [Act("INFORM", slot, (value,)) for slot, value in values.items()]

  def _inform_intent(self) -> list[Act]:
    """States the intent, and values that differ from an earlier step."""
    return [Act("INFORM_INTENT", "intent", (self._step.intent.name,)), *self._tell_changes()]

  def _affirm_intent(self) -> list[Act]:
    return [Act("AFFIRM_INTENT"), *self._tell_changes()]

  def _tell_changes(self) -> list[Act]:
    return self._tell({s: v for s, v in self._goal.items() if self._state.get(s, v) != v})

  def _negate_intent(self) -> list[Act]:
    self._ground.intent[self._step.service.name] = NO_INTENT
    return [Act("NEGATE_INTENT")]

  def _select(self) -> list[Act]:
    """Adds to the state what a transaction needs from the offer, as in SGD."""
    transactions = (i for i in self._step.service.intents if i.is_transactional)
    needed = set().union(*(transaction.required_slots for transaction in transactions))
    self._state.update({slot: v for slot, v in self._offered.items() if slot in needed})
    return [Act("SELECT")]

  def _affirm(self) -> list[Act]:
    """Accepts the values to be confirmed, or the alternative to a failed transaction."""
    self._state.update({**self._confirmed, **self._values_of("OFFER")})
    return [Act("AFFIRM")]
