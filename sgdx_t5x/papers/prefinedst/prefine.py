"""Texts of the pre-finetuning tasks: skills that a tracker needs, as text-to-text tasks.

After PrefineDST (Cho et al., 2022, section 5), which trains a model on copying, paraphrase and
coreference tasks before dialogue state tracking. Its public data sets are downloads; these tasks
are built from SGD's own annotation, and show the schema, which its SGD task does not:

  [USER] i need cash [SYSTEM] how much? [USER] fifty dollars [domain] Banks [slot] amount Amount of
  money to withdraw Which words of the last turn say it?

As there, each example asks in one of several wordings, selected by its id.
"""

import dataclasses
import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sgdx_t5x.corpus.dialogue import SYSTEM, USER, example_pick
from sgdx_t5x.corpus.schema import NO_INTENT, Service
from sgdx_t5x.papers.checkdst.ned import letters
from sgdx_t5x.prompts.t5dst.text import PromptStyle, base_name, slot_text, utterance_text
from sgdx_t5x.prompts.values import NONE
from sgdx_t5x.records.turns import NONE as NOWHERE
from sgdx_t5x.records.turns import SYSTEM_ACTS, Act, FrameContext, Gold, States

_STYLE = PromptStyle(values="absent")
_SEED = 1  # for the letters of `copy_ned`; test sets use 0

# Task -> five wordings of its question; PrefineDST asks for at least as many.
WORDINGS: Mapping[str, Sequence[str]] = {
  "intent": (
    "Which intent is active?",
    "What does the user want to do now?",
    "Name the active intent.",
    "Which of these intents does the user have?",
    "The user's intent is",
  ),
  "requested": (
    "Which slots does the user ask about?",
    "What does the user want to know?",
    "Name the requested slots.",
    "Which of these slots are requested?",
    "The user asks for",
  ),
  "next_action": (
    "What does the system do next?",
    "Name the system's next acts.",
    "How should the system act?",
    "Which acts follow?",
    "The system will",
  ),
  "response": (
    "What does the system say?",
    "Put these acts into words.",
    "How does the system say this?",
    "Write the system's next turn.",
    "The system says",
  ),
  "span": (
    "Which words of the last turn say it?",
    "Copy the value from the last turn.",
    "What does the last turn say of this slot?",
    "Repeat the words for this slot.",
    "The last turn's value is",
  ),
  "same_meaning": (
    "Do both users mean the same?",
    "Is the second a paraphrase of the first?",
    "Are these two turns equal in meaning?",
    "Could one of them replace the other?",
    "Same meaning, yes or no?",
  ),
  "refers": (
    "Whose value does the user refer to?",
    "Which earlier slot is meant?",
    "From where is this value carried over?",
    "Name the slot that this one takes its value from.",
    "This slot's value comes from",
  ),
}


class Text(NamedTuple):
  """An example.

  Attributes:
    history: turns; the oldest are cut if the input is too long.
    question: what follows them, which is never cut.
    target: the answer.
    id_suffix: what distinguishes it from other examples of its id: a slot, an answer, or "".
  """

  history: str
  question: str
  target: str
  id_suffix: str = ""


@dataclasses.dataclass(frozen=True)
class Frame:
  """A user frame of the records.

  Attributes:
    services: of the split's schema, by position.
    utterances: from the first turn, the user first.
    context, states, gold: its input, the states before it, and its labels.
    names: slots of each service that hold named entities, see `checkdst.entities.entity_slots`.
  """

  services: Sequence[Service]
  utterances: Sequence[str]
  context: FrameContext
  states: States
  gold: Gold
  names: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)

  @property
  def service(self) -> Service:
    """The frame's service."""
    return self.services[self.context.service]


Task = Callable[[Frame], Iterator[Text]]


def wording(task: str, key: str) -> str:
  """Returns a wording. Args: task, a key of `WORDINGS`; key, the id that selects it."""
  return WORDINGS[task][example_pick(key) % len(WORDINGS[task])]


def _wording(frame: Frame, task: str) -> str:
  return wording(task, frame.context.frame_id)


def history(utterances: Sequence[str]) -> str:
  """Returns turns in T5DST's form: "[USER] ... [SYSTEM] ...". Args: utterances, user first."""
  turns = zip((USER, SYSTEM) * len(utterances), utterances, strict=False)
  return " ".join(utterance_text(speaker, text, _STYLE) for speaker, text in turns)


def intent(frame: Frame) -> Iterator[Text]:
  """Yields history + intents of the schema -> the active intent, or NONE."""
  intents = " ; ".join(f"{x.name}: {x.description}" for x in frame.service.intents)
  question = f"{_domain(frame.service)} [intents] {intents} {_wording(frame, 'intent')}"
  active = frame.gold.intent
  name = NO_INTENT if active == NOWHERE else frame.service.intents[active].name
  yield Text(history(frame.utterances), question, name)


def requested(frame: Frame) -> Iterator[Text]:
  """Yields history + slots of the schema -> the slots that the user asks about, or none."""
  slots = ", ".join(slot.name for slot in frame.service.slots)
  question = f"{_domain(frame.service)} [slots] {slots} {_wording(frame, 'requested')}"
  names = sorted(frame.service.slots[i].name for i in frame.gold.requested)
  yield Text(history(frame.utterances), question, ", ".join(names) or NONE)


def next_action(frame: Frame) -> Iterator[Text]:
  """Yields history + state -> acts of the system turn before this frame, once per turn.

  Records are of user turns, so none contains a dialogue's last system turn.
  """
  if acts := _acts_before(frame):
    question = f"[state] {_state(frame)} {_wording(frame, 'next_action')}"
    yield Text(history(frame.utterances[:-2]), question, acts)


def response(frame: Frame) -> Iterator[Text]:
  """Yields history + acts -> the system's utterance before this frame, once per turn."""
  if acts := _acts_before(frame):
    question = f"[ACTS] {acts} {_wording(frame, 'response')}"
    yield Text(history(frame.utterances[:-2]), question, frame.context.system.strip())


def span(frame: Frame) -> Iterator[Text]:
  """Yields the user's utterance + slot -> words that give its value, or "none"."""
  user = frame.context.user
  words_by_slot = {x.slot: user[x.start : x.end] for x in frame.gold.spans if x.by_user}
  service, key = frame.service, frame.context.frame_id
  unsaid = []
  for slot in service.tracked_slots:
    if slot not in words_by_slot and not service.slots[slot].is_categorical:
      unsaid.append(slot)
  if unsaid:  # one contrast, so that the model learns to answer "none"
    words_by_slot[unsaid[example_pick(key) % len(unsaid)]] = NONE
  for slot, words in words_by_slot.items():
    yield _span_of(frame, user, slot, words)


def copy_ned(frame: Frame) -> Iterator[Text]:
  """Yields `span` examples of names with permuted letters: unseen words.

  Changes utterances as `sgdx checkdst perturb ned ` does, with a seed other than its default. It
  resembles the test set `ned`, so there are mixtures without it.
  """
  names = frame.names.get(frame.service.name, frozenset())
  spans = sorted((x for x in frame.gold.spans if x.by_user), key=lambda x: x.start)
  if any(a.end > b.start for a, b in itertools.pairwise(spans)):
    return
  text, last, names_in_turn = "", 0, []
  for x in spans:
    words, slot = frame.context.user[x.start : x.end], frame.service.slots[x.slot].name
    new_words = words
    if slot in names:
      new_words = letters(words, random.Random(f"{_SEED}/{frame.context.frame_id}/{words}"))
      names_in_turn.append((x.slot, new_words))
    text += frame.context.user[last : x.start] + new_words
    last = x.end
  for slot, new_words in names_in_turn:
    yield _span_of(frame, text + frame.context.user[last:], slot, new_words)


# Task name after "sgd_" -> function that yields a frame's examples, annotation that it needs.
FRAME_TASKS: Mapping[str, tuple[Task, str]] = {
  "intent": (intent, "acts"),
  "requested": (requested, "acts"),
  "next_action": (next_action, "acts"),
  "response": (response, "acts"),
  "span": (span, "spans"),
  "copy_ned": (copy_ned, "spans"),
}


def _domain(service: Service) -> str:
  return f"[domain] {base_name(service.name)}"


def _span_of(frame: Frame, utterance: str, slot: int, value: str) -> Text:
  schema_slot = frame.service.slots[slot]
  key = f"{frame.context.frame_id}/{schema_slot.name}"
  question = f"{slot_text(frame.service, schema_slot, _STYLE)} {wording('span', key)}"
  return Text(utterance_text(USER, utterance, _STYLE), question, value, schema_slot.name)


def _acts_before(frame: Frame) -> str:
  """Returns the preceding system turn's acts; "" in later frames of the same user turn."""
  if frame.context.service != frame.context.turn_services[0]:
    return ""
  acts = (act for act in frame.context.acts if act.turn == frame.context.turn - 1)
  return " ; ".join(_act(frame.services[act.service], act) for act in acts)


def _act(service: Service, act: Act) -> str:
  name, values = SYSTEM_ACTS[act.act].lower(), ", ".join(act.values)
  if act.slot == NOWHERE:
    return name
  if name == "offer_intent":
    return f"{name} {service.intents[act.slot].name}"
  return f"{name} {service.slots[act.slot].name}" + (f" = {values}" if values else "")


def _state(frame: Frame) -> str:
  """Returns the previous user turn's states, as PrefineDST's "domain slot value, ..."."""
  last = max((state.turn for state in frame.states.values()), default=NOWHERE)
  items: list[str] = []
  for position, state in frame.states.items():
    service = frame.services[position]
    for slot, values in state.values.items() if state.turn == last else ():
      items.append(f"{base_name(service.name)} {service.slots[slot].name} {values[0]}")
  return ", ".join(items) or NONE
