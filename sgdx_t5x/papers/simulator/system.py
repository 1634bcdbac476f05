"""The system agent: tracks what was said, calls services, and follows the automaton.

It sees the user's acts and its services' results, never the user's goal.
"""

import bisect
import random
from collections.abc import Mapping, Sequence

from sgdx_t5x.corpus.schema import DONTCARE, Intent
from sgdx_t5x.papers.simulator.acts import Act, CommonGround, FrameOutline, definite, slots_of
from sgdx_t5x.papers.simulator.backend import Backend
from sgdx_t5x.papers.simulator.default_words import CATEGORY, slot_kind, spoken_values
from sgdx_t5x.papers.simulator.scenarios import follow_up
from sgdx_t5x.papers.simulator.transitions import Transitions
from sgdx_t5x.papers.simulator.variation import is_moment, is_name

_GIVE_UP = ("NOTIFY_FAILURE", "REQ_MORE")


class System:
  """The system in one conversation."""

  def __init__(
    self,
    backends: Mapping[str, Backend],
    transitions: Transitions,
    rng: random.Random,
    ground: CommonGround,
  ):
    """Args: see `outline`; `ground` is shared with the user."""
    self._backends, self._transitions, self._rng, self._ground = backends, transitions, rng, ground
    self._results: list[dict[str, str]] = []  # results of the last search
    self._next = 0  # index of the first one not offered yet
    self._row: dict[str, str] = {}  # the result that questions are about
    self._service = ""
    self._asked_for_optional: set[tuple[str, str]] = set()

  def turn(self, frames: Sequence[FrameOutline]) -> FrameOutline:
    """Answers the user's turn, in the frame of the service that the user mentioned last."""
    if self._service != frames[-1].service:
      self._row = {}  # a question is never about another service's result
    self._service = frames[-1].service
    self._backend = self._backends[self._service]
    self._call: tuple[str, dict[str, str]] | None = None
    self._called: Sequence[Mapping[str, str]] = ()
    heard = {act.act for act in frames[-1].acts}
    acts = self._answer(heard, frames[-1].acts)
    self._ground.offers_left = len(self._results) - self._next
    return FrameOutline(self._service, acts, call=self._call, results=self._called)

  @property
  def _state(self) -> dict[str, str]:
    return self._ground.state[self._service]

  @property
  def _intent(self) -> Intent:
    service = self._backend.service
    return service.intents[service.intent_index[self._ground.intent[self._service]]]

  def _move(self, situation: str) -> tuple[str, ...]:
    return self._transitions.system[situation].draw(self._rng)

  def _answer(self, heard: set[str], acts: Sequence[Act]) -> list[Act]:
    if "GOODBYE" in heard or {"NEGATE", "THANK_YOU"} <= heard:
      return self._plain("GOODBYE")
    if heard & {"INFORM_INTENT", "AFFIRM_INTENT", "INFORM"}:
      return self._fill({a.slot for a in acts} if "NEGATE" in heard else None)
    if "AFFIRM" in heard:
      return self._transact(slots_of(acts, "REQUEST"))
    if "REQUEST" in heard:
      return self._inform(slots_of(acts, "REQUEST"))
    if "REQUEST_ALTS" in heard:
      return self._offer_next("REQUEST_ALTS")
    if "SELECT" in heard:
      return self._after_selection()
    return self._plain(next(a for a in ("NEGATE", "NEGATE_INTENT", "THANK_YOU") if a in heard))

  def _plain(self, situation: str) -> list[Act]:
    return list(map(Act, self._move(situation)))

  # --- what is missing ---------------------------------------------------------------------

  def _fill(self, corrected: set[str] | None) -> list[Act]:
    """Requests missing slots; if none are missing, searches, or confirms a transaction."""
    intent = self._intent
    missing = [s for s in intent.required_slots if s not in self._state]
    count = self._transitions.counts["requests"].draw(self._rng)
    requested = self._rng.sample(missing, min(count, len(missing))) or self._optional(intent)
    if requested:
      return [Act("REQUEST", slot, self._choices(slot)) for slot in requested]
    if intent.is_transactional:
      return self._confirm(intent, corrected)
    self._call = (intent.name, self._parameters(intent))
    self._called = self._results = self._backend.call(intent, self._call[1])
    self._next = 0
    return self._offer_next("SEARCH")

  def _optional(self, intent: Intent) -> list[str]:
    """Draws an optional slot to request, at most once per intent."""
    key = (self._service, intent.name)
    open_slots = [s for s in intent.optional_slots if s not in self._state]
    if not open_slots or key in self._asked_for_optional:
      return []
    self._asked_for_optional.add(key)
    asks = self._rng.random() < self._transitions.chances["asks_for_optional"]
    return [self._rng.choice(open_slots)] if asks else []

  def _choices(self, slot: str) -> tuple[str, ...]:
    service = self._backend.service
    definition = service.slots[service.slot_index[slot]]
    if not definition.is_categorical:
      return ()
    is_listed = self._rng.random() < self._transitions.chances["lists_choices"]
    return spoken_values(definition) if is_listed and slot_kind(definition) == CATEGORY else ()

  def _parameters(self, intent: Intent) -> dict[str, str]:
    """The parameters of the service call: the intent's slots in the state, without "dontcare"."""
    slots = (*intent.required_slots, *intent.optional_slots)
    return definite({s: self._state.get(s, DONTCARE) for s in slots})

  # --- searches ----------------------------------------------------------------------------

  def _offer_next(self, situation: str) -> list[Act]:
    if self._next >= len(self._results):
      self._call, self._called = (self._intent.name, self._parameters(self._intent)), ()
      return self._plain("NOTHING_FOUND")
    self._row = dict(self._results[self._next])
    self._next += 1
    self._ground.mentioned[self._service] = {}
    acts = []
    for act in self._move(situation):
      if act == "INFORM_COUNT":
        acts.append(Act(act, "count", (str(len(self._results)),)))
      else:
        acts += self._mention("OFFER", self._headline())
    return acts

  def _headline(self) -> list[str]:
    """Slots of an offer: those that a transaction needs to identify it, and some more."""
    search = self._intent
    things = [s for s in search.result_slots if s not in self._backend.open]
    # Values that differ from the state, e.g. of an earlier search, are mentioned again.
    unsaid = [s for s in things if self._state.get(s) not in (self._row[s], DONTCARE)]
    booking = follow_up(self._backend.service, search)
    keys = [s for s in unsaid if booking and s in booking.required_slots]
    names = [s for s in unsaid if is_name(self._row[s])]
    keys = keys or names[:1] or unsaid[:1] or things[:1] or search.result_slots[:1]
    further = [s for s in unsaid if s not in keys]
    num_further = self._transitions.counts["offers"].draw(self._rng) - len(keys)
    return [*keys, *self._rng.sample(further, max(0, min(num_further, len(further))))]

  def _mention(self, act: str, slots: Sequence[str]) -> list[Act]:
    self._ground.mentioned[self._service].update({slot: self._row[slot] for slot in slots})
    return [Act(act, slot, (self._row[slot],)) for slot in slots]

  def _inform(self, slots: Sequence[str]) -> list[Act]:
    return self._mention("INFORM", [s for s in slots if s in self._row])

  def _after_selection(self) -> list[Act]:
    """Proposes the transaction that follows up the selection, if there is one."""
    booking = follow_up(self._backend.service, self._intent)
    acts = self._move("SELECT")
    if "OFFER_INTENT" not in acts:
      return list(map(Act, acts))
    if booking is None:
      return [Act("REQ_MORE")]
    return [Act(a, "intent", (booking.name,)) if a == "OFFER_INTENT" else Act(a) for a in acts]

  # --- transactions ------------------------------------------------------------------------

  def _confirm(self, intent: Intent, corrected: set[str] | None) -> list[Act]:
    values = definite({**intent.optional_slots, **self._state})
    values = values or definite(intent.optional_slots)
    values = {s: values[s] for s in (*intent.required_slots, *intent.optional_slots) if s in values}
    slots = [s for s in values if corrected is None or s in corrected] or list(values)
    self._ground.mentioned[self._service].update(values)
    return [Act("CONFIRM", slot, (values[slot],)) for slot in slots]

  def _transact(self, questions: Sequence[str]) -> list[Act]:
    """Makes the transaction that the user affirmed, and answers the questions asked with it."""
    intent = self._intent
    parameters = self._parameters(intent)
    self._call = (intent.name, parameters)
    results = self._backend.call(intent, parameters, earlier=self._row)
    for move in self._transitions.system["AFFIRM"].shuffled(self._rng) if results else (_GIVE_UP,):
      if "OFFER" in move:
        instead = self._instead(parameters, results[0])
        if instead is None:
          continue
        self._called = [instead]
        self._row = {**self._row, **instead}
        return [
          Act("NOTIFY_FAILURE"),
          *self._inform(questions),
          *self._mention("OFFER", [s for s in parameters if s in instead]),
        ]
      if "NOTIFY_SUCCESS" in move:
        self._called = results[:1]
        self._row = {**self._row, **results[0]}
        return [*self._inform(questions), *map(Act, move)]
      break
    return list(map(Act, _GIVE_UP))

  def _instead(
    self, parameters: Mapping[str, str], result: Mapping[str, str]
  ) -> dict[str, str] | None:
    """An available alternative: the same at a time or date near the requested one."""
    slots = [s for s in parameters if s in self._backend.open and s in result]
    slots = [s for s in slots if is_moment(parameters[s])]
    if not slots:
      return None
    slot = self._rng.choice(slots)
    requested = parameters[slot]
    moments = sorted({v for v in self._backend.cells[slot] if is_moment(v) and v != requested})
    if not moments:
      return None
    i = bisect.bisect(moments, requested) - self._rng.randrange(2)
    return {**result, slot: moments[min(max(i, 0), len(moments) - 1)]}
