"""What is done in a dialogue, before any words: acts, states, service calls.

A user with a goal and a system with a service take turns, after the SGD paper
(Rastogi et al. 2020, section 3): the user states an intent and some slots, the
system requests what is missing, offers a result or asks to confirm a
transaction, the user selects, asks for more, or corrects. This first version
knows one service per dialogue and up to two of its intents (search, then book).
"""

import dataclasses
import random
from collections.abc import Iterator, Mapping

from sgdx_t5x.dialogue import SYSTEM, USER
from sgdx_t5x.schema import DONTCARE, Intent, Service
from sgdx_t5x.simulator.values import ValuePool

# How often a user or the system takes the less usual way.
P_EXTRA_INFORM = 0.6  # a slot that nobody asked for
P_ASK_OPTIONAL = 0.25  # the system asks for a slot it could do without
P_DONTCARE = 0.2  # the user does not mind, for optional slots
P_REQUEST_INFO = 0.2  # the user asks about the offer
P_SAY_COUNT = 0.3  # the system says how many results there are
P_ALTERNATIVE = 0.1  # the user wants another offer
P_BOOK_AFTER_SEARCH = 0.15
P_START_WITH_BOOKING = 0.5
P_CORRECT = 0.15  # the user corrects a slot when asked to confirm
FIRST_INFORMS = (0, 1, 2, 2, 3)  # how many slots the user names at once


@dataclasses.dataclass(frozen=True)
class Act:
  """One dialogue act; `value` as in the state, "" where the act has none."""

  act: str
  slot: str = ""
  value: str = ""


@dataclasses.dataclass(frozen=True)
class Step:
  """One turn of an outline. `state` is the state after a user turn."""

  speaker: str
  acts: tuple[Act, ...]
  intent: str = ""
  requested: tuple[str, ...] = ()
  state: Mapping[str, str] = dataclasses.field(default_factory=dict)
  call: Mapping[str, str] | None = None
  results: tuple[Mapping[str, str], ...] | None = None


class _Conversation:
  """The state both agents share while one outline is drawn."""

  def __init__(self, service: Service, pools: Mapping[str, ValuePool], rng, held_out: float):
    self.service, self.pools, self.rng, self.held_out = service, pools, rng, held_out
    self.state: dict[str, str] = {}
    self.intent = ""
    self.steps: list[Step] = []

  def chance(self, p: float) -> bool:
    return self.rng.random() < p

  def draw(self, slot: str) -> str:
    """A value for a slot; never the one that the state holds."""
    known = self.service.slots[self.service.slot_index[slot]]
    for _ in range(20):
      if known.is_categorical:
        value = self.rng.choice(known.possible_values)
      else:
        value = self.pools[slot].draw(self.rng, self.chance(self.held_out))
      if value != self.state.get(slot):
        break
    return value

  def user(self, *acts: Act, requested: tuple[str, ...] = ()) -> None:
    for act in acts:
      if act.act in ("INFORM", "SELECT") and act.slot:
        self.state[act.slot] = act.value
    self.steps.append(Step(USER, acts, self.intent, requested, dict(self.state)))

  def system(self, *acts: Act, call=None, results=None) -> None:
    self.steps.append(Step(SYSTEM, acts, self.intent, call=call, results=results))


def outline(
  service: Service, pools: Mapping[str, ValuePool], rng: random.Random, held_out: float = 0.0
) -> list[Step]:
  """Draws the acts of one dialogue.

  Args:
    service: the service both talk about; its first non-transactional intent is the
      search, its first transactional one the booking.
    pools: where the values of free slots come from, by slot name.
    rng: the only source of chance.
    held_out: share of free values drawn from the test-only part of their pool.

  Returns:
    Steps that alternate from USER to SYSTEM; the system has the last word.
  """
  talk = _Conversation(service, pools, rng, held_out)
  search = next((i for i in service.intents if not i.is_transactional), None)
  book = next((i for i in service.intents if i.is_transactional), None)
  opening: list[Act] = []
  if search and not (book and talk.chance(P_START_WITH_BOOKING)):
    opening = _search(talk, search, ends=book is None or not talk.chance(P_BOOK_AFTER_SEARCH))
    if not opening:
      return _goodbye(talk)
  if book:
    _book(talk, book, opening)
  return _goodbye(talk)


def _fill(talk: _Conversation, intent: Intent, opening: list[Act]) -> None:
  """The user states the intent, the system asks until every required slot is known."""
  talk.intent = intent.name
  talk.state.update({act.slot: act.value for act in opening if act.slot})  # selected from an offer
  wanted = [s for s in (*intent.required_slots, *intent.optional_slots) if s not in talk.state]
  talk.rng.shuffle(wanted)
  first = wanted[: talk.rng.choice(FIRST_INFORMS)]
  talk.user(*opening, Act("INFORM_INTENT", "intent", intent.name), *_informs(talk, first))
  for slot in _to_request(talk, intent):
    if slot in talk.state:  # told in passing
      continue
    talk.system(Act("REQUEST", slot))
    if slot in intent.optional_slots and talk.chance(P_DONTCARE):
      talk.user(Act("INFORM", slot, DONTCARE))
      continue
    others = [s for s in intent.required_slots if s not in talk.state and s != slot]
    extra = others[:1] if talk.chance(P_EXTRA_INFORM) else []
    talk.user(*_informs(talk, [slot, *extra]))


def _to_request(talk: _Conversation, intent: Intent) -> Iterator[str]:
  yield from intent.required_slots
  for slot in intent.optional_slots:
    if talk.chance(P_ASK_OPTIONAL):
      yield slot


def _informs(talk: _Conversation, slots: list[str]) -> list[Act]:
  return [Act("INFORM", slot, talk.draw(slot)) for slot in slots]


def _search(talk: _Conversation, intent: Intent, ends: bool) -> list[Act]:
  """Fills and runs a search, and discusses offers. Returns what opens a booking, or []."""
  _fill(talk, intent, [])
  known = {s: v for s, v in talk.state.items() if v != DONTCARE}
  rows = [_row(talk, intent, known) for _ in range(talk.rng.choice((1, 2, 3)))]
  headline = [s for s in intent.result_slots if s not in talk.state][: talk.rng.choice((1, 2))]
  acts = [Act("INFORM_COUNT", "count", str(len(rows)))] if talk.chance(P_SAY_COUNT) else []
  for i, row in enumerate(rows):
    offer = [Act("OFFER", slot, row[slot]) for slot in headline]
    talk.system(*offer, *acts, **({} if i else {"call": dict(known), "results": tuple(rows)}))
    acts = []
    unknown = [s for s in intent.result_slots if s not in talk.state and s not in headline]
    if unknown and talk.chance(P_REQUEST_INFO):
      slot = talk.rng.choice(unknown)
      talk.user(Act("REQUEST", slot), requested=(slot,))
      talk.system(Act("INFORM", slot, row[slot]))
    if i + 1 < len(rows) and talk.chance(P_ALTERNATIVE):
      talk.user(Act("REQUEST_ALTS"))
      continue
    tracked = {talk.service.slots[i].name for i in talk.service.tracked_slots}
    chosen = [Act("SELECT", a.slot, a.value) for a in offer if a.slot in tracked]
    if ends:
      talk.user(*chosen or [Act("SELECT")], Act("THANK_YOU"))
      return []
    return chosen or [Act("SELECT")]
  return [Act("SELECT")]


def _book(talk: _Conversation, intent: Intent, opening: list[Act]) -> None:
  """Fills a transaction, asks to confirm it, lets the user correct a slot, makes it."""
  _fill(talk, intent, opening)
  slots = [s for s in (*intent.required_slots, *intent.optional_slots) if s in talk.state]
  talk.system(*(Act("CONFIRM", s, talk.state[s]) for s in slots if talk.state[s] != DONTCARE))
  if talk.chance(P_CORRECT):
    slot = talk.rng.choice(intent.required_slots)
    talk.user(Act("NEGATE"), *_informs(talk, [slot]))
    talk.system(Act("CONFIRM", slot, talk.state[slot]))
  talk.user(Act("AFFIRM"))
  known = {s: talk.state[s] for s in slots if talk.state[s] != DONTCARE}
  row = _row(talk, intent, known)
  talk.system(Act("NOTIFY_SUCCESS"), call=known, results=(row,))


def _row(talk: _Conversation, intent: Intent, known: Mapping[str, str]) -> dict[str, str]:
  """A row of the service's table that satisfies what is known."""
  return {slot: known.get(slot) or talk.draw(slot) for slot in intent.result_slots}


def _goodbye(talk: _Conversation) -> list[Step]:
  if talk.steps[-1].speaker == USER:
    talk.system(Act("GOODBYE"))
  return talk.steps
