"""SGP-DST (Ruan et al. 2020, arXiv:2002.00181): its sub-models' labels, and how answers combine.

Four models answer for a frame: which intent is active (intent); for each slot, its span, its option
and whether it is requested (combine); whether the user accepts the value that the system gave it
(copy), or that of another service's slot (cross). Labels come from the states, not from the user's
acts. Labels and rules are pure functions, so that a ceiling can be computed.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence

from sgdx_t5x.corpus.schema import DONTCARE, Service
from sgdx_t5x.records.turns import (
  CONFIRM,
  INFORM,
  NONE,
  OFFER,
  OFFER_INTENT,
  REQUEST,
  Act,
  FrameContext,
  Gold,
  ServiceState,
  Span,
  States,
)

PARTS = ("intent", "combine", "copy", "cross")
NULL, ANY = 0, 1  # options of every slot; 2 is its first possible value
Place = tuple[int, int]  # positions of a service and of its slot
Values = Mapping[int, tuple[str, ...]]  # position of a slot -> its values
Pair = tuple[int, Place]  # a slot of the frame's service, and the slot whose value it may take


# Thresholds above which answers count. A span's score is the sum of two probabilities.
MIN_SPAN, MIN_OPTION, MIN_REQUESTED, MIN_COPY, MIN_CROSS = 1.0, 0.8, 0.9, 0.85, 0.9


@dataclasses.dataclass(frozen=True, slots=True)
class Answers:
  """The sub-models' answers for a frame, or their labels, whose scores are the maximum.

  Attributes:
    spans: position of a slot -> span, and the sum of the probabilities of its two ends.
    options: position of a slot -> option, and its probability; `NULL`, which changes nothing, may
      be left out.
    requested: position of a slot -> probability that the user requests it.
    copies: position of a slot -> probability that the user accepts the system's value.
    crosses: pair of slots -> probability that the first takes the second's value.
  """

  spans: Mapping[int, tuple[Span, float]]
  options: Mapping[int, tuple[int, float]]
  requested: Mapping[int, float]
  copies: Mapping[int, float]
  crosses: Mapping[Pair, float]


def offers(acts: Iterable[Act], inform: bool = False) -> dict[Place, tuple[str, ...]]:
  """Returns the values that the system gave last, by service and slot.

  Args:
    acts: of the system, of which OFFER, CONFIRM, and REQUEST with one value count.
    inform: whether INFORM counts too.
  """
  values: dict[Place, tuple[str, ...]] = {}
  kinds = (OFFER, CONFIRM, INFORM) if inform else (OFFER, CONFIRM)
  for act in acts:
    gives = act.act in kinds or (act.act == REQUEST and len(act.values) == 1)
    if gives and act.slot != NONE and act.values:
      values[act.service, act.slot] = act.values
  return values


def history(context: FrameContext, states: States) -> dict[Place, tuple[str, ...]]:
  """Returns values that other services' slots have had: in states, else given by the system."""
  values_of_slots = offers(context.acts, True)
  for service, state in states.items():
    values_of_slots |= {(service, slot): values for slot, values in state.values.items()}
  return {place: values for place, values in values_of_slots.items() if place[0] != context.service}


def right_answers(service: Service, context: FrameContext, gold: Gold, states: States) -> Answers:
  """Returns the gold answers for a frame, with scores of 1 (spans: 2).

  A slot is new in a frame if it was not in the service's state, or shares no value with it. A new
  value is a span if it is annotated in the user's utterance; an option if the slot is categorical
  or the user does not care; else the system's value, else another service's.

  Args:
    service: the frame's, in the original schema.
    context: of the frame.
    gold: its labels.
    states: gold states of all services before the turn.
  """
  previous = own_values(context, states)
  mine, from_services = offers(context.acts), history(context, states)
  from_system = offers(context.acts, inform=True)
  tagged = {span.slot: span for span in reversed(gold.spans) if span.by_user}
  spans, options, copies, crosses = {}, {}, {}, {}
  for slot, values in gold.values.items():
    if _meet(values, previous.get(slot, ())):
      continue
    schema_slot, offered = service.slots[slot], mine.get((context.service, slot), ())
    if slot in tagged and not schema_slot.is_categorical:
      spans[slot] = tagged[slot], 2.0
    elif values[0] == DONTCARE:
      options[slot] = ANY, 1.0
    elif _meet(values, offered) and not (schema_slot.is_categorical and slot in previous):
      copies[slot] = 1.0  # filled slots are never copied to: options may still overwrite them
    elif schema_slot.is_categorical:
      if values[0] in schema_slot.possible_values:
        options[slot] = 2 + schema_slot.possible_values.index(values[0]), 1.0
    elif slot not in previous and (context.service, slot) not in from_system:
      places = (p for p, alternatives in from_services.items() if _meet(values, alternatives))
      crosses |= dict.fromkeys(itertools.product([slot], places), 1.0)
  return Answers(spans, options, dict.fromkeys(gold.requested, 1.0), copies, crosses)


def system_answers(service: Service, context: FrameContext, gold: Gold) -> Answers:
  """Returns combine's gold answers for the system turn before a frame, from the system's acts.

  Args:
    service: the frame's, in the original schema.
    context: of the frame.
    gold: of the frame, whose spans are also those of the system's utterance.
  """
  spans, options, requested = {}, {}, {}
  for span in reversed(gold.spans):  # the first of several of a slot counts
    if not span.by_user and not service.slots[span.slot].is_categorical:
      spans[span.slot] = span, 2.0
  for act in context.acts:
    if act.turn != context.turn - 1 or act.service != context.service or act.slot == NONE:
      continue
    if act.act == OFFER_INTENT:  # its slot is the position of an intent
      continue
    possible = service.slots[act.slot].possible_values
    if act.act == REQUEST and not act.values:
      requested[act.slot] = 1.0
    elif len(act.values) == 1 and act.values[0] in possible:
      options[act.slot] = 2 + possible.index(act.values[0]), 1.0
  return Answers(spans, options, requested, {}, {})


def own_values(context: FrameContext, states: States) -> Values:
  """Returns the values of the frame's service before the turn."""
  state = states.get(context.service)
  return state.values if state else {}


def intent_before(context: FrameContext, states: States) -> int:
  """Returns the intent that was active before the turn. Args: a frame, the states before it."""
  state: ServiceState | None = states.get(context.service)
  return state.intent if state else NONE


def new_values(
  service: Service,
  context: FrameContext,
  states: States,
  answers: Answers,
  gold: States | None = None,
) -> dict[int, tuple[str, ...]]:
  """Returns the service's values after a frame.

  Spans and options overwrite old values; then other services' values and the system's fill empty
  slots. Slots that no intent requires or accepts are never filled.

  Args:
    service: the frame's, in the original schema.
    context: of the frame.
    states: before the turn, of all services.
    answers: of the sub-models.
    gold: gold states before the turn, which then determine which slots are empty and what other
      services' slots hold (an oracle; the released pipeline reads gold for its inputs alone); None
      uses predictions.
  """
  from_combine = {slot: (text,) for slot, text in _texts(service, context, answers).items()}
  for slot, (option, score) in answers.options.items():
    possible = (DONTCARE, *service.slots[slot].possible_values)
    is_requested = answers.requested.get(slot, 0.0) > MIN_REQUESTED
    if score > MIN_OPTION and not is_requested and NULL < option <= len(possible):
      from_combine[slot] = (possible[option - 1],)
  # Of several places that a slot may be copied from, the likeliest.
  from_services, best = history(context, states if gold is None else gold), {}
  for (slot, place), score in answers.crosses.items():
    if place in from_services and score > max(MIN_CROSS, best.get(slot, (0.0,))[0]):
      best[slot] = score, place
  filled = {*own_values(context, states if gold is None else gold), *from_combine}
  carried = {slot: from_services[place] for slot, (_, place) in best.items() if slot not in filled}
  # What the system offered of this service comes last: only where no other service has the value.
  mine = offers(context.acts)
  for slot, score in answers.copies.items():
    place = context.service, slot
    if score > MIN_COPY and slot not in filled and place in mine:
      carried.setdefault(slot, mine[place])
  values = {**own_values(context, states), **from_combine, **carried}
  # Slots that no intent requires or accepts may be answered, but never enter the state.
  return {slot: values[slot] for slot in sorted(set(values) & set(service.tracked_slots))}


def _texts(service: Service, context: FrameContext, answers: Answers) -> dict[int, str]:
  """Returns the texts of spans that count; of slots with the same text, the best-scoring one."""
  texts_of_slots: dict[int, tuple[str, float]] = {}
  for slot, (span, score) in answers.spans.items():
    utterance = context.user if span.by_user else context.system
    text = utterance[span.start : span.end].strip()
    if text and score > MIN_SPAN and not service.slots[slot].is_categorical:
      texts_of_slots[slot] = text, score
  best: dict[str, float] = {}
  for text, score in texts_of_slots.values():
    best[text] = max(score, best.get(text, 0.0))
  return {slot: text for slot, (text, score) in texts_of_slots.items() if score == best[text]}


def _meet(values: Sequence[str], alternatives: Sequence[str]) -> bool:
  """Whether two lists of alternatives share a value."""
  return not set(values).isdisjoint(alternatives)


# --- which examples a model is trained on -------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Sampling:
  """Which examples of a sub-model without anything to answer an epoch uses.

  Attributes:
    negatives: fraction of them.
    words: minimum number of words that a slot's name shares with that of a changed slot of the
      frame for its example to be always kept; None keeps no extra ones.
  """

  negatives: float = 1.0
  words: int | None = None


# The released code's log says .02 for combine; the code itself keeps .3 of the positives instead.
# "mild" is for small networks from random weights, which need to see more negatives.
SAMPLING = {
  "meant": {
    "intent": Sampling(),
    "combine": Sampling(0.02, words=3),
    "copy": Sampling(0.1, words=3),
    "cross": Sampling(0.01, words=2),
  },
  "mild": {
    "intent": Sampling(),
    "combine": Sampling(0.2, words=3),
    "copy": Sampling(0.5, words=3),
    "cross": Sampling(0.5, words=2),
  },
}


def share_kept(sampling: Sampling, positive: bool, name: str, changed: Iterable[str]) -> float:
  """Returns the probability that an epoch uses an example.

  Args:
    sampling: of the sub-model.
    positive: whether there is something to answer.
    name: of the slot, words joined by "_".
    changed: names of the frame's slots with something to answer.
  """
  words = set(name.split("_"))
  alike = sampling.words is not None and any(
    len(words & set(changed_name.split("_"))) >= sampling.words for changed_name in changed
  )
  return 1.0 if positive or alike else sampling.negatives
