"""SDT-seq as a prompt format: "Show, Don't Tell" prompts, targets and answers.

  [example] [user] two tickets for ... [slots] city=paris seats=b of possible values a) 1 b) 2
  [context] [user] i need a seat in rome        ->        [state] city=rome seats=a

As Google's script writes them (google-research/task-oriented-dialogue, state_tracking). Reading an
answer never raises; unknown names are ignored. Google's converter leaves possible values in lower
case, which the official scorer counts as wrong: here they get the schema's spelling.
"""

import dataclasses
import functools
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import USER, State
from sgdx_t5x.corpus.example_id import FRAME, ExampleId, Unit
from sgdx_t5x.corpus.schema import DONTCARE, NO_INTENT, Service
from sgdx_t5x.metrics.frames import GoldFrame, PredictedFrame, utterance_crc
from sgdx_t5x.prompts.base import TextExamples
from sgdx_t5x.prompts.protocol import History, Prompt, Provenance, ServicePair, turn_writer
from sgdx_t5x.prompts.sdt.demonstrations import (
  SYSTEM_TAG,
  USER_TAG,
  Demonstration,
  Demonstrations,
  check_services,
  load_demonstrations,
)
from sgdx_t5x.prompts.sdt.layout import Layout, chosen, frame_layout, written_layout
from sgdx_t5x.prompts.sdt.style import SdtStyle
from sgdx_t5x.prompts.values import LETTERS, NONE, check_letters, choice_of_letter, matching_value

STATE_TAG, INTENT_TAG = "[state]", "[intent]"
LEAST_WORDS = 7  # shorter utterances ("Yes, please.") are not specific
_FEW = 4  # so few choices recur in the same order often enough to be one part with their slot
_LETTERED = [f"{letter}) " for letter in LETTERS]


@dataclasses.dataclass(frozen=True)
class SDT(TextExamples):
  """One example per frame: a demonstration of the service, then the dialogue."""

  style: SdtStyle = dataclasses.field(default_factory=SdtStyle)
  name: ClassVar[str] = "sdt"
  unit: ClassVar[Unit] = FRAME
  answer: ClassVar[str] = '"[state] slot=value ...", as in the example, "none" for no value'

  @functools.cached_property
  def demonstrations(self) -> Demonstrations:
    """Those of the style, as they are at the first access. Raises SgdxError: unreadable."""
    return load_demonstrations(self.style.demos)

  def layout(self, frame: ExampleId, service: ServicePair) -> Layout:
    """Returns the order of a frame's prompt. Raises SgdxError without a demonstration."""
    return frame_layout(_written(service, self.demonstrations, self.style), frame, self.style)

  def prompts(self, frame: ExampleId, service: ServicePair, history: History) -> list[Prompt]:
    """The demonstration, then the history."""
    layout = self.layout(frame, service)
    turns = turn_writer(turn_text, self.style)(history)
    return [Prompt(turns, before=before_parts(service, layout, self.style))]

  def targets(self, frame: ExampleId, service: ServicePair, state: State) -> list[str]:
    """The state, and the active intent if the style asks for it."""
    return [target_text(service, state, self.layout(frame, service), self.style)]

  def read(self, text: str, example: ExampleId, service: ServicePair) -> PredictedFrame:
    """The state, and the active intent if the style asks for it."""
    return read_answer(text, service, self.layout(example, service), self.style)

  def provenance(self, corpus: Corpus, gold: Sequence[GoldFrame]) -> Provenance:
    """Which demonstrations prompts show, and how many of their utterances are scored ones.

    Raises:
      SgdxError: a demonstration of a service that the corpus does not have.
    """
    demos = self.demonstrations
    check_services(demos, [corpus.schema(split) for split in corpus.splits])
    services = {frame.service for frame in gold}
    utterances: set[str] = set()  # of the user, in the demonstrations that prompts show
    for name, of_service in demos.by_service.items():
      for demo in chosen(of_service, self.style) if name in services else ():
        for speaker, text in demo.turns:
          if speaker == USER and len(text.split()) >= LEAST_WORDS:
            utterances.add(text)
    scored_crcs = {frame.utterance_crc for frame in gold}
    num_leaked = sum(utterance_crc(text) in scored_crcs for text in utterances)
    fields = {"demos": f"{demos.source}:{demos.crc}", "leak": f"{num_leaked}of{len(utterances)}"}
    notes = (
      f"LEAK: {num_leaked} of {len(utterances)} user utterances of {LEAST_WORDS} words or more in "
      "the demonstrations occur in the scored dialogues (docs/demonstrations.md)",
    )
    return Provenance(fields, notes if num_leaked else ())


@functools.lru_cache(maxsize=4096)  # services of all variants, which recur in dialogues
def _written(service: ServicePair, demos: Demonstrations, style: SdtStyle) -> Layout:
  demonstration = chosen(demos.of(service.original), style)
  return written_layout(demonstration, service.original, separate=style.order == "demonstration")


def before_parts(service: ServicePair, layout: Layout, style: SdtStyle) -> tuple[str, ...]:
  """Returns what precedes the history, in parts that recur in any order."""
  pieces: list[str] = []
  for k, (demo, slots) in enumerate(zip(layout.demos, layout.slots, strict=True)):
    numbered = slots if layout.separate else layout.target_slots
    numbers = {i: str(number) for number, i in enumerate(numbered)} if style.slot_ids else {}
    if style.descriptions and (layout.separate or k == 0):  # else the first describes all slots
      lines = _descriptions(service.variant, k, numbered, numbers, layout, style)
      pieces += [case(part, style) for part in lines]
    pieces += _opening(demo, style)
    write_slot = _slot_writer(service, demo, style)
    for i in slots:
      pieces += write_slot(i, numbers.get(i), layout.values.get(i))
    if style.intents != "absent":
      lines = _shown_intent(service, k, layout, style)
      pieces += [INTENT_TAG, *(case(part, style) for part in lines)]
  return (*pieces, case("[CONTEXT]", style))


@functools.lru_cache(maxsize=4096)
def _opening(demo: Demonstration, style: SdtStyle) -> tuple[str, ...]:
  return tuple(case(part, style) for part in ("[EXAMPLE]", demo.text, "[slots]"))


@functools.lru_cache(maxsize=4096)
def _slot_writer(
  service: ServicePair, demo: Demonstration, style: SdtStyle
) -> Callable[..., tuple[str, ...]]:
  """Returns a function from a slot, its number and the order of its values to its parts, cached."""

  @functools.lru_cache(maxsize=5_000)
  def write(slot: int, number: str | None, order: tuple[int, ...] | None) -> tuple[str, ...]:
    name = number or service.variant.slots[slot].name
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
  for number, i in enumerate(layout.target_slots):
    name = number if style.slot_ids else service.variant.slots[i].name
    if i in gold:
      answers.append(f"{name}={value_text(service, i, gold[i][0], layout.values.get(i), style)}")
    elif style.target == "all":
      answers.append(f"{name}={NONE}")
  text = f"{STATE_TAG} {' '.join(answers)}"
  if style.intents != "absent":
    text += f" {INTENT_TAG} {intent_text(service, state.active_intent, layout, style)}"
  return case(text, style)


def value_text(
  service: ServicePair, slot: int, value: str, order: tuple[int, ...] | None, style: SdtStyle
) -> str:
  """Returns a gold value, or its letter. Args: order, see `Layout.values`; None for free text."""
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
  numbers: Mapping[int, str],
  layout: Layout,
  style: SdtStyle,
) -> list[str]:
  """Returns the parts before demonstration k. Google's script never shuffles those of intents."""
  texts = []
  for i in slots:
    texts.append(f"{numbers.get(i, service.slots[i].name)}={service.slots[i].description}")
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


def read_answer(text: str, service: ServicePair, layout: Layout, style: SdtStyle) -> PredictedFrame:
  """Reads an answer to a prompt of this layout and style.

  Returns:
    The state, in original names, and the active intent if the style asks for it; `ignored` counts
    the slots and intents that the prompt did not have.
  """
  text, _, intent_text = text.partition(INTENT_TAG)
  intent, ignored = None, 0
  if style.intents != "absent":
    intent = _read_intent(intent_text, service, layout, style)
    ignored += intent is None and intent_text.strip().lower() not in ("", NONE)
    intent = intent or NO_INTENT
  text = text.partition(STATE_TAG)[2] if STATE_TAG in text else text
  # An answer is in lower case where the style's prompts are.
  slots = {service.variant.slots[i].name.lower(): i for i in layout.target_slots}
  if style.slot_ids:
    slots = {str(number): i for number, i in enumerate(layout.target_slots)}
  state, answered = {}, set()
  # Text before the first name belongs to none; then name and value alternate.
  _, *pieces = _names(tuple(slots)).split(text)
  for name, answer in zip(pieces[::2], pieces[1::2], strict=True):
    slot = slots.get(name.lower())
    ignored += slot is None
    if slot is not None and slot not in answered:  # the first answer counts
      answered.add(slot)
      value = read_value(answer, service, slot, layout, style)
      if value is not None:
        state[service.original.slots[slot].name] = (value,)
  return PredictedFrame(state, intent, ignored=ignored)


@functools.lru_cache(maxsize=1024)
def _names(names: tuple[str, ...]) -> re.Pattern[str]:
  """Matches a name and "="; an unknown name ends the previous answer too, and is dropped.

  Known names are tried first, as they need not be one word; of these, the longest first.
  """
  longest_first = sorted(names, key=len, reverse=True)
  alternatives = "|".join(map(re.escape, longest_first))
  return re.compile(rf"(?:^|(?<=\s))({alternatives}|\w+)=", re.IGNORECASE)


def read_value(
  text: str, service: ServicePair, slot: int, layout: Layout, style: SdtStyle
) -> str | None:
  """Returns the value of a slot as the schema writes it, or None for "none"."""
  text = " ".join(text.split())
  possible = ordered_values(service.original, slot, layout.values.get(slot))
  if style.values == "list" and not style.lowercase and text in possible:
    return text  # before "none": SGD has a possible value "None"
  if not text or text.lower() == NONE:
    return None
  if text.lower() == DONTCARE:
    return DONTCARE
  return _choice(text, possible, style.values) or text


def _read_intent(text: str, service: ServicePair, layout: Layout, style: SdtStyle) -> str | None:
  intents = [service.original.intents[i].name for i in layout.intents]
  names = [service.variant.intents[i].name for i in layout.intents]
  name = _choice(" ".join(text.split()), names, style.intents)
  return None if name is None else intents[names.index(name)]


def _choice(text: str, choices: Sequence[str], style: str) -> str | None:
  """Returns the chosen option: by its letter, or by its name ignoring case and punctuation."""
  if style == "letters" and (letter := choice_of_letter(text, len(choices))) is not None:
    return choices[letter]
  return matching_value(text, choices)
