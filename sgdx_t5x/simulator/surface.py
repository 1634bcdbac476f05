"""Words for acts: a step of an outline becomes an utterance, spans and actions.

Phrases come from two places: templates for acts that every service shares (below), and
what a service's own authors wrote for its slots and intents (`SlotWords.tell`,
`SlotWords.ask`, `IntentWords.open`).
"""

import dataclasses
import random
from collections.abc import Mapping
from typing import Any

from sgdx_t5x.dialogue import USER, Frame, State, Turn
from sgdx_t5x.schema import DONTCARE, NO_INTENT, Service
from sgdx_t5x.simulator.outline import Act, Step

VALUE = "{value}"
NOUN = "{noun}"

ASK = ("What {noun} would you like?", "Which {noun}?", "Please tell me the {noun}.")
TELL = ("{value}", "{value}, please.", "The {noun} is {value}.", "Make the {noun} {value}.")
TELL_DONTCARE = ("Any {noun} is fine.", "I do not mind the {noun}.", "The {noun} does not matter.")
TELL_MORE = ("The {noun} is {value}.", "Also, {noun} {value}.")
OFFER = ("How about", "I found", "There is", "I can suggest")
ASK_INFO = ("What is the {noun}?", "Tell me the {noun}.", "And the {noun}?")
GIVE_INFO = ("The {noun} is {value}.", "It is {value}.")
FIXED = {
  "REQUEST_ALTS": ("Anything else?", "Is there another one?", "Not that one."),
  "SELECT": ("That sounds good.", "I will take it.", "Yes, that one."),
  "AFFIRM": ("Yes.", "That is right.", "Yes, go ahead."),
  "NEGATE": ("No.", "Not quite.", "Wait."),
  "THANK_YOU": ("Thanks.", "Thank you, that is all."),
  "NOTIFY_SUCCESS": ("It is done.", "All set.", "That worked."),
  "GOODBYE": ("Goodbye.", "Have a nice day."),
}


@dataclasses.dataclass(frozen=True)
class SlotWords:
  """How people speak of a slot: nouns, phrases with `{value}`, questions, said values."""

  noun: tuple[str, ...]
  tell: tuple[str, ...]
  ask: tuple[str, ...]
  say: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Words:
  """All phrases of a service: per slot, and openings per intent."""

  slots: Mapping[str, SlotWords]
  open: Mapping[str, tuple[str, ...]]


class _Utterance:
  """Text that grows, and the character spans of the values put into it."""

  def __init__(self):
    self.text = ""
    self.spans: list[dict[str, Any]] = []

  def add(self, template: str, slot: str = "", value: str = "", span: bool = False) -> None:
    if self.text and not template.startswith((" ", ",")):
      self.text += " " if self.text.endswith((".", "?", ",")) else ". "
    before, mark, after = template.partition(VALUE)
    self.text += before
    if mark:
      start = len(self.text)
      self.text += value
      if span:
        self.spans.append({"slot": slot, "start": start, "exclusive_end": len(self.text)})
    self.text += after


def realise(steps: list[Step], service: Service, words: Words, rng: random.Random) -> list[Turn]:
  """Returns the turns of an outline in the DSTC8 form, with exact value spans."""
  speaker = _Speaker(service, words, rng)
  return [speaker.turn(step) for step in steps]


class _Speaker:
  def __init__(self, service: Service, words: Words, rng: random.Random):
    self.service, self.words, self.rng = service, words, rng

  def turn(self, step: Step) -> Turn:
    out = _Utterance()
    say = self._user if step.speaker == USER else self._system
    say(step, out)
    out.text = out.text[:1].upper() + out.text[1:]
    state = None
    if step.speaker == USER:
      state = State(
        step.intent or NO_INTENT, step.requested, {s: (v,) for s, v in step.state.items()}
      )
    frame = Frame(
      self.service.name,
      state,
      slots=out.spans,
      actions=[_action(act) for act in step.acts],
      service_call=None
      if step.call is None
      else {"method": step.intent, "parameters": dict(step.call)},
      service_results=None if step.results is None else [dict(row) for row in step.results],
    )
    return Turn(step.speaker, out.text, (frame,))

  def _is_free(self, slot: str) -> bool:
    return not self.service.slots[self.service.slot_index[slot]].is_categorical

  def _spoken(self, slot: str, value: str) -> str:
    say = self.words.slots[slot].say
    return value if self._is_free(slot) else say.get(value, value.lower())

  def _add(self, out: _Utterance, template: str, act: Act) -> None:
    noun = self.rng.choice(self.words.slots[act.slot].noun)
    spoken = self._spoken(act.slot, act.value) if act.value else ""
    out.add(template.replace(NOUN, noun), act.slot, spoken, span=self._is_free(act.slot))

  def _pick(self, *groups: tuple[str, ...]) -> str:
    return self.rng.choice(self.rng.choice([g for g in groups if g]))

  def _user(self, step: Step, out: _Utterance) -> None:
    opened = False
    for act in step.acts:
      if act.act == "INFORM_INTENT":
        out.add(self.rng.choice(self.words.open[act.value]))
        opened = True
      elif act.act == "INFORM" and act.value == DONTCARE:
        self._add(out, self.rng.choice(TELL_DONTCARE), act)
      elif act.act == "INFORM":
        self._inform(out, act, opened)
      elif act.act == "REQUEST":
        self._add(out, self.rng.choice(ASK_INFO), act)
      elif act.act != "SELECT" or not out.text:  # one "that one" for all slots selected
        out.add(self.rng.choice(FIXED[act.act]))
    if opened:
      out.text += "."

  def _inform(self, out: _Utterance, act: Act, opened: bool) -> None:
    tell = self.words.slots[act.slot].tell
    if opened:  # "I need a ferry" + " from X"
      self._add(out, " " + self.rng.choice(tell), act)
    elif out.text:
      self._add(out, self._pick(TELL_MORE, tuple(f" {t}" for t in tell)), act)
    else:
      self._add(out, self._pick(TELL, tell), act)

  def _system(self, step: Step, out: _Utterance) -> None:
    for i, act in enumerate(step.acts):
      if act.act == "REQUEST":
        self._add(out, self._pick(ASK, self.words.slots[act.slot].ask), act)
      elif act.act == "INFORM":
        self._add(out, self.rng.choice(GIVE_INFO), act)
      elif act.act == "CONFIRM":
        self._add(out, ("Please confirm: " if i == 0 else ", ") + VALUE, act)
      elif act.act == "OFFER":
        lead = f"{self.rng.choice(OFFER)} " if i == 0 else ", "
        self._add(out, lead + ("{noun} {value}" if i else "{value}"), act)
      elif act.act == "INFORM_COUNT":
        out.add(f" ({act.value} found)")
      else:
        out.add(self.rng.choice(FIXED[act.act]))


def _action(act: Act) -> dict[str, Any]:
  values = [act.value] if act.value else []
  return {"act": act.act, "slot": act.slot, "values": values, "canonical_values": values}
