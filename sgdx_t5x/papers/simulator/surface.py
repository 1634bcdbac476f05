"""Surface realization: turns outlines into utterances, with exact spans of the values.

Each act has several phrasings, and the acts of a turn are combined into one utterance
(SGD paper, section 3.3; there people paraphrased the result).
"""

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.dialogue import USER, Frame, State, Turn
from sgdx_t5x.corpus.schema import DONTCARE, Service
from sgdx_t5x.papers.simulator.acts import Act, FrameOutline, TurnOutline, slots_of
from sgdx_t5x.papers.simulator.templates import Fragment, Words
from sgdx_t5x.papers.simulator.variation import RELATIVE_DAYS, forms, is_name

_OF_SLOTS = ("INFORM", "OFFER", "CONFIRM")  # acts whose value belongs to a slot of the schema
_P_GO_ON = 0.75  # an open sentence is continued with the next value
_P_SAME_FORM = 0.6  # the system uses the user's form of a value
_ON_RELATIVE_DAY = re.compile(r"\b[Oo]n $")  # "on tomorrow"


class _Text:
  """An utterance being built. `spans`: (service, slot or "", start, end) of the values in it."""

  def __init__(self):
    self.text = ""
    self.spans: list[tuple[str, str, int, int]] = []
    self.is_open = False  # whether the last sentence can be continued

  def sentence(self, text: str) -> None:
    """Ends the last sentence and begins a new one."""
    if self.text:
      self.text += " " if self.text[-1] in ".?!" else ". "
    self.is_open = False
    self.text += text[:1].upper() + text[1:]

  def add(self, fragment: Fragment, spoken: str, service: str, slot: str) -> None:
    """Adds a value and the text around it; `slot` is "" if no span is to be kept."""
    text_before, text_after = fragment
    if spoken in RELATIVE_DAYS or spoken.startswith("next "):
      self.text, text_before = _ON_RELATIVE_DAY.sub("", self.text + text_before), ""
    if not slot and not text_before and self.text[-2:] in ("", ". ", "? ", "! "):
      spoken = spoken[:1].upper() + spoken[1:]  # a value with a span stays unchanged
    start = len(self.text) + len(text_before)
    self.text += f"{text_before}{spoken}{text_after}"
    self.spans.append((service, slot, start, start + len(spoken)))

  def finished(self) -> str:
    """Returns the text with its last sentence ended."""
    return self.text if not self.text or self.text[-1] in ".?!" else f"{self.text}."


class Surface:
  """Words one dialogue; each speaker keeps to one form of a value."""

  def __init__(
    self,
    services: Mapping[str, Service],
    words: Mapping[str, Words],
    rng: random.Random,
  ):
    """Args: services and their words by name; the random generator."""
    self._services, self._words, self._rng = services, words, rng
    self._form: dict[tuple[str, ...], str] = {}  # `_key` -> the speaker's form
    self._said: dict[tuple[str, str, str], set[str]] = {}  # (service, slot, value) -> its forms
    self._asked: list[str] = []  # slots that the previous turn requested

  def turn(self, outline: TurnOutline) -> Turn:
    """Returns the turn in DSTC8 format."""
    self._speaker = outline.speaker
    text = _Text()
    say = self._user if outline.speaker == USER else self._system
    for frame in outline.frames:
      self._service, self._own = frame.service, self._words[frame.service]
      self._acts = self._own.acts["user" if outline.speaker == USER else "system"]
      say(frame, text)
    self._asked = slots_of(outline.frames[-1].acts, "REQUEST")
    frames = tuple(self._frame(frame, text.spans) for frame in outline.frames)
    return Turn(outline.speaker, text.finished(), frames)

  def user_text(
    self, frames: Sequence[FrameOutline], form_by_value: Mapping[str, str], requested: Sequence[str]
  ) -> tuple[str, list[tuple[str, str, int, int]]]:
    """Words the acts of a user turn outside of a simulation.

    Args:
      frames: the acts; their services must be known.
      form_by_value: canonical value of a non-categorical slot -> this user's form of it.
      requested: slots that the system requested in the previous turn.

    Returns:
      The utterance, and (service, slot, start, end) of its values of non-categorical slots.
    """
    self._speaker, self._asked = USER, list(requested)
    text = _Text()
    for frame in frames:
      self._service, self._own = frame.service, self._words[frame.service]
      self._acts = self._own.acts["user"]
      for act in frame.acts:
        for value in act.values:
          if value in form_by_value:
            self._form[self._key(USER, frame.service, act.slot, value)] = form_by_value[value]
      self._user(frame, text)
    return text.finished(), [span for span in text.spans if span[1]]

  # --- frames ------------------------------------------------------------------------------

  def _frame(self, outline: FrameOutline, spans: Sequence[tuple[str, str, int, int]]) -> Frame:
    name = outline.service
    for link in outline.carried:
      value = outline.values[link.target[1]]
      self._said[(*link.target, value)] = set(self._said.get((*link.source, value), ()))
    return Frame(
      name,
      self._state(outline) if self._speaker == USER else None,
      slots=[
        {"slot": slot, "start": start, "exclusive_end": end}
        for service, slot, start, end in spans
        if service == name and slot
      ],
      actions=[self._action(name, act) for act in outline.acts],
      service_call=None
      if outline.call is None
      else {"method": outline.call[0], "parameters": dict(outline.call[1])},
      service_results=None if outline.call is None else [dict(row) for row in outline.results],
    )

  def _state(self, outline: FrameOutline) -> State:
    requested = tuple(sorted(slots_of(outline.acts, "REQUEST")))
    values: dict[str, tuple[str, ...]] = {}
    for slot, value in outline.values.items():
      forms_said = self._said.get((outline.service, slot, value))
      values[slot] = (value,)
      if forms_said and self._is_free(outline.service, slot):
        values[slot] = tuple(sorted(forms_said))
    return State(outline.intent, requested, values)

  def _action(self, service: str, act: Act) -> dict[str, Any]:
    canonical = list(act.values)
    values = canonical
    if act.act in _OF_SLOTS and self._is_free(service, act.slot):
      keys = [self._key(self._speaker, service, act.slot, value) for value in canonical]
      values = [self._form.get(key, value) for key, value in zip(keys, canonical, strict=True)]
    return {"act": act.act, "slot": act.slot, "values": values, "canonical_values": canonical}

  # --- values ------------------------------------------------------------------------------

  def _is_free(self, service: str, slot: str) -> bool:
    return slot in self._services[service].noncategorical_slots

  def _put(self, text: _Text, fragment: Fragment, slot: str, value: str) -> None:
    """Adds a value, in this speaker's form, with the text around it."""
    is_free = self._is_free(self._service, slot)
    text.add(fragment, self._spoken(slot, value), self._service, slot if is_free else "")
    # Exactly as written: non-categorical slots have it in their states, possibly through a link.
    *_, start, end = text.spans[-1]
    self._said.setdefault((self._service, slot, value), set()).add(text.text[start:end])

  def _key(self, speaker: str, service: str, slot: str, value: str) -> tuple[str, ...]:
    """Key of a value's form, which slots share unless theirs has its own ways to say the value."""
    words = self._words[service].slots.get(slot)
    return (speaker, value, service, slot) if words and value in words.say else (speaker, value)

  def _spoken(self, slot: str, value: str) -> str:
    """This speaker's form of a value; for categorical slots, which have no spans, any form."""
    ways = self._own.slots[slot].say.get(value)
    if not self._is_free(self._service, slot):
      return self._rng.choice(ways) if ways else value
    key = self._key(self._speaker, self._service, slot, value)
    if key not in self._form:
      form = self._form.get((USER, *key[1:]))
      if form is None or self._rng.random() >= _P_SAME_FORM:
        form = self._rng.choice((*forms(value), *(ways or ())))
      self._form[key] = form
    return self._form[key]

  # --- the user ----------------------------------------------------------------------------

  def _user(self, frame: FrameOutline, text: _Text) -> None:
    for act in frame.acts:
      if act.act == "INFORM":
        self._tell(text, act.slot, act.values[0])
      elif act.act == "INFORM_INTENT":
        text.sentence(self._rng.choice(self._own.open[act.values[0]]))
        text.is_open = True
        for link in frame.carried:
          if link.say:
            text.text += f" {self._rng.choice(link.say)}"
      elif act.act == "REQUEST":
        text.sentence(self._other(text, self._own.slots[act.slot].question))
      elif act.act == "NEGATE" and frame.acts[-1].act == "THANK_YOU":  # "anything else?"
        text.sentence(self._rng.choice(self._acts["NEGATE_MORE"]))
      else:
        text.sentence(self._rng.choice(self._acts[act.act]))

  def _tell(self, text: _Text, slot: str, value: str) -> None:
    """Adds a fragment that continues a sentence ("from Elmport"), or a new sentence."""
    words = self._own.slots[slot]
    if value == DONTCARE:
      text.sentence(self._rng.choice(words.does_not_matter))
      return
    if text.is_open and self._rng.random() < _P_GO_ON:
      text_before, text_after = self._rng.choice(words.tell)
      self._put(text, (f" {text_before}", text_after), slot, value)
      return
    is_sentence = not words.is_boolean and self._rng.random() < 0.5
    ways = words.inform if is_sentence else words.tell
    # Only a slot that was the only one requested can be answered with the bare value.
    is_clear = self._asked == [slot] and not self._spoken(slot, value)[:1].islower()
    if not is_clear and not words.is_boolean:
      ways = [fragment for fragment in ways if fragment[0]] or words.tell
    self._put_sentence(text, self._other(text, ways), slot, value)
    text.is_open = not is_sentence

  def _other(self, text: _Text, ways: Sequence[Any]) -> Any:
    """Draws one of the ways, preferably not one that begins like a sentence of this turn."""
    for _ in range(3):
      way = self._rng.choice(ways)
      lead = way if isinstance(way, str) else way[0]
      if not lead or lead[:10].lower() not in text.text.lower():
        break
    return way

  def _put_sentence(self, text: _Text, fragment: Fragment, slot: str, value: str) -> None:
    text.sentence(fragment[0])
    self._put(text, ("", fragment[1]), slot, value)

  # --- the system --------------------------------------------------------------------------

  def _system(self, frame: FrameOutline, text: _Text) -> None:
    acts = frame.acts
    for i, act in enumerate(acts):
      if act.act in ("OFFER", "CONFIRM"):  # all acts of a kind at once
        if i == 0 or acts[i - 1].act != act.act:
          values = {a.slot: a.values[0] for a in acts if a.act == act.act}
          self._listed(text, act.act, values, acts[0].act in ("OFFER", "INFORM_COUNT"))
      elif act.act == "INFORM":
        words = self._own.slots[act.slot]
        ways = words.answer_boolean[act.values[0]] if words.is_boolean else words.answer
        self._put_sentence(text, self._rng.choice(ways), act.slot, act.values[0])
      else:
        text.sentence(self._plain(act))

  def _plain(self, act: Act) -> str:
    """The sentence of an act without a value to mark."""
    if act.act == "REQUEST" and act.values:
      say = self._own.slots[act.slot].say
      choices = [self._rng.choice(say[v]) if v in say else v for v in act.values]
      listed = f"{', '.join(choices[:-1])} or {choices[-1]}" if choices[1:] else choices[0]
      template = self._rng.choice(self._own.slots[act.slot].ask_choices)
      return template.replace("{choices}", listed)
    if act.act == "REQUEST":
      return self._rng.choice(self._own.slots[act.slot].ask)
    if act.act == "OFFER_INTENT":
      do = self._rng.choice(self._own.do[act.values[0]])
      return self._rng.choice(self._acts["OFFER_INTENT"]).replace("{do}", do)
    if act.act == "INFORM_COUNT":
      if act.values[0] == "1":
        return self._rng.choice(self._acts["INFORM_COUNT_ONE"])
      return self._rng.choice(self._acts["INFORM_COUNT"]).replace("{count}", act.values[0])
    return self._rng.choice(self._acts[act.act])

  def _listed(self, text: _Text, act: str, values: Mapping[str, str], is_new: bool) -> None:
    """Adds an offer or a confirmation.

    Args:
      text: the utterance being built.
      act: OFFER or CONFIRM.
      values: slot -> value.
      is_new: whether it is a search result, which is offered by name.
    """
    start, _, end = self._other(text, self._acts[act]).partition("{slots}")
    text.sentence(start)
    first_slot, value = next(iter(values.items()))
    # "How about Elmport Camp", but "how about one with fare $22"; not for a booking's alternative.
    is_thing = is_new and is_name(value) and self._is_free(self._service, first_slot)
    if is_new and not is_thing:
      text.text += "one " if self._own.slots[first_slot].is_boolean else "one with "
    for i, (slot, value) in enumerate(values.items()):
      words = self._own.slots[slot]
      is_plain = words.is_boolean or (i == 0 and is_thing)
      noun = "" if is_plain else f"{self._rng.choice(words.noun)} "
      self._put(text, (f"{', ' if i else ''}{noun}", ""), slot, value)
    text.text += end


def find_values(values: Sequence[str], text: str) -> list[tuple[int, int] | None]:
  """Finds each value in a text, as whole words, without overlaps.

  Returns:
    (start, end) of each value, or None if it has no place of its own.
  """
  placed: list[tuple[int, int] | None] = [None] * len(values)
  occupied: list[tuple[int, int]] = []
  # Long values first: "New York Pizza" must not lose its place to "New York".
  for i in sorted(range(len(values)), key=lambda i: (-len(values[i]), i)):
    for match in re.finditer(rf"(?<!\w){re.escape(values[i])}(?!\w)", text):
      start, end = match.span()
      if not any(start < other_end and other_start < end for other_start, other_end in occupied):
        occupied.append((start, end))
        placed[i] = (start, end)
        break
  return placed
