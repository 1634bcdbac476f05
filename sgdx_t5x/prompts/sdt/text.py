"""The words of "Show, Don't Tell" prompts and targets.

  [example] [user] two tickets for ... [slots] city=paris seats=b of possible values a) 1 b) 2
  [context] [user] i need a seat in rome        ->        [state] city=rome seats=a

As Google's script writes them (google-research/task-oriented-dialogue, state_tracking).
"""

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence

from sgdx_t5x.corpus.dialogue import USER, State
from sgdx_t5x.corpus.schema import NO_INTENT, Service
from sgdx_t5x.prompts.protocol import ServicePair
from sgdx_t5x.prompts.sdt.demonstrations import NONE, SYSTEM_TAG, USER_TAG, Demonstration
from sgdx_t5x.prompts.sdt.layout import Layout
from sgdx_t5x.prompts.sdt.style import SdtStyle
from sgdx_t5x.prompts.values import LETTERS, check_letters

STATE_TAG, INTENT_TAG = "[state]", "[intent]"
_FEW = 4  # so few choices recur in the same order often enough to be one part with their slot
_LETTERED = [f"{letter}) " for letter in LETTERS]


@functools.lru_cache(maxsize=4096)  # the order of the demonstrations recurs
def before_text(service: ServicePair, layout: Layout, style: SdtStyle) -> str:
  """Returns what precedes the history."""
  return " ".join(before_parts(service, layout, style))


def before_parts(service: ServicePair, layout: Layout, style: SdtStyle) -> tuple[str, ...]:
  """Returns what precedes the history, in parts that recur in any order."""
  pieces: list[str] = []
  for k, (demo, slots) in enumerate(zip(layout.demos, layout.slots, strict=True)):
    numbered = slots if layout.separate else layout.target_slots
    names = dict(zip(numbered, slot_names(service.variant, numbered, style), strict=True))
    if style.descriptions and (layout.separate or k == 0):  # else the first describes all slots
      lines = _descriptions(service.variant, k, numbered, names, layout, style)
      pieces += [case(part, style) for part in lines]
    pieces += _opening(demo, style)
    write_slot = _slot_writer(service, demo, style)
    for i in slots:
      pieces += write_slot(i, names[i], layout.values.get(i))
    if style.intents != "absent":
      lines = _shown_intent(service, k, layout, style)
      pieces += [INTENT_TAG, *(case(part, style) for part in lines)]
  return (*pieces, case("[CONTEXT]", style))


@functools.lru_cache(maxsize=4096)
def _opening(demo: Demonstration, style: SdtStyle) -> tuple[str, ...]:
  return tuple(case(part, style) for part in ("[EXAMPLE]", demo.text, "[slots]"))


# Maps a slot, its name and the order of its possible values to its parts in a demonstration.
_WriteSlot = Callable[[int, str, tuple[int, ...] | None], tuple[str, ...]]


@functools.lru_cache(maxsize=4096)
def _slot_writer(service: ServicePair, demo: Demonstration, style: SdtStyle) -> _WriteSlot:
  """Returns a function that writes the slots of a demonstration, with a cache."""

  @functools.lru_cache(maxsize=5_000)
  def write(slot: int, name: str, order: tuple[int, ...] | None) -> tuple[str, ...]:
    value = demo.slots[service.original.slots[slot].name]
    if order is None:
      return (case(f"{name}={value}", style),)
    answer = value_text(service, slot, value, order, style)
    subject = f"slot {service.variant.slots[slot].name!r}"
    choices = _choices(ordered_values(service.variant, slot, order), style.values, subject)
    texts = [f"{name}={answer} of possible values", *choices]
    if len(choices) <= _FEW:
      texts = [" ".join(texts)]
    return tuple(case(text, style) for text in texts)

  return write


def turn_text(speaker: str, utterance: str, style: SdtStyle) -> str:
  """Returns one turn of the history; spaces within it are kept."""
  tag = USER_TAG if speaker == USER else SYSTEM_TAG
  return case(f"{tag} {utterance}".replace("\n", " "), style)


def target_text(service: ServicePair, state: State, layout: Layout, style: SdtStyle) -> str:
  """Returns the target text. Args: state, the gold state in original names."""
  index = service.original.slot_index
  gold = {index.get(name): values for name, values in state.slot_values.items() if values}
  answers = []
  slots = layout.target_slots
  for i, name in zip(slots, slot_names(service.variant, slots, style), strict=True):
    if i in gold:
      answers.append(f"{name}={value_text(service, i, gold[i][0], layout.values.get(i), style)}")
    elif style.target == "all":
      answers.append(f"{name}={NONE}")
  text = f"{STATE_TAG} {' '.join(answers)}"
  if style.intents != "absent":
    text += f" {INTENT_TAG} {intent_text(service, state.active_intent, layout, style)}"
  return case(text, style)


def slot_names(service: Service, slots: Sequence[int], style: SdtStyle) -> list[str]:
  """Returns what prompts and answers call these slots: numbers, or names in the variant's schema.

  Args:
    service: the variant's.
    slots: positions in the schema, in the order of the prompt or target.
    style: of the prompt.
  """
  if style.slot_ids:
    return [str(number) for number in range(len(slots))]
  return [service.slots[i].name for i in slots]


def value_text(
  service: ServicePair, slot: int, value: str, order: tuple[int, ...] | None, style: SdtStyle
) -> str:
  """Returns a value, or its letter.

  Args:
    service, slot: whose value it is.
    value: a gold one.
    order: of the possible values, as in `Layout.values`; None for a slot without any.
    style: of the prompt.
  """
  if order is not None and style.values == "letters":
    possible = service.original.slots[slot].possible_values
    if value in possible:
      return LETTERS[order.index(possible.index(value))]
  return value


def intent_text(service: ServicePair, intent: str, layout: Layout, style: SdtStyle) -> str:
  """Returns an intent's letter or name in the variant. Args: intent, original name or NONE."""
  position = service.original.intent_index.get(intent)
  if style.intents == "letters":
    return NONE if position is None else LETTERS[layout.intents.index(position)]
  return NO_INTENT if position is None else service.variant.intents[position].name


def ordered_values(service: Service, slot: int, order: tuple[int, ...] | None) -> tuple[str, ...]:
  """Returns the possible values of a slot as a prompt orders them; () if it has none."""
  possible = service.slots[slot].possible_values
  return tuple(possible[k] for k in order or ())


def _shown_intent(service: ServicePair, k: int, layout: Layout, style: SdtStyle) -> list[str]:
  own_order = layout.separate and style.intents == "list"  # letters have one order for all
  order = layout.listed[k] if own_order else layout.intents
  names = [service.variant.intents[i].name for i in order]
  answer = intent_text(service, layout.demos[k].active_intent, layout, style)
  subject = f"service {service.variant.name}"
  return [f"{answer} of possible values", *_choices(names, style.intents, subject)]


def _choices(values: Sequence[str], style: str, subject: str) -> list[str]:
  if style == "list":
    return [", ".join(values)]
  check_letters(subject, len(values), 'use SdtStyle(values="list", intents="list")')
  return lettered(values)


def lettered(values: Iterable[str]) -> list[str]:
  """Returns "a) small", "b) large"."""
  return list(map(operator.add, _LETTERED, values))


def _descriptions(
  service: Service,
  k: int,
  slots: Iterable[int],
  names: Mapping[int, str],
  layout: Layout,
  style: SdtStyle,
) -> list[str]:
  """Returns the parts before demonstration k. Google's script never shuffles those of intents."""
  texts = []
  for i in slots:
    texts.append(f"{names[i]}={service.slots[i].description}")
    if style.values == "letters":
      texts += lettered(ordered_values(service, i, layout.values.get(i)))
  if style.intents != "absent":
    order = layout.listed[k] if layout.separate else layout.intents
    for i in order:
      texts.append(f"{service.intents[i].name}={service.intents[i].description}")
  return texts


def case(text: str, style: SdtStyle) -> str:
  """Returns the text in lower case, if the style says so."""
  return text.lower() if style.lowercase else text
