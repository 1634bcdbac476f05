"""Input and output types of paraphrase providers."""

import dataclasses
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.dialogue import USER

Spans = Sequence[tuple[str, str, int, int]]  # service, slot, start, end


@dataclasses.dataclass(frozen=True)
class NewWords:
  """Other words for a turn.

  Attributes:
    text: the utterance.
    spans: of the values in it.
    note: further fields of the line of changes.jsonl.
  """

  text: str
  spans: Spans
  note: Mapping[str, Any] = dataclasses.field(default_factory=dict)

  @property
  def span_texts(self) -> list[tuple[str, str, str]]:
    """(service, slot, text) of the spans, sorted."""
    return sorted((service, slot, self.text[start:end]) for service, slot, start, end in self.spans)


@dataclasses.dataclass(frozen=True)
class Exchange:
  """A dialogue as seen by the providers.

  Attributes:
    data: decoded.
    states_before: per turn, service -> slot -> values before the turn.
  """

  data: Mapping[str, Any]
  states_before: Sequence[Mapping[str, Mapping[str, Sequence[str]]]]

  @classmethod
  def of(cls, data: Mapping[str, Any]) -> "Exchange":
    """Reads the states of a dialogue."""
    states_before: list[Mapping[str, Mapping[str, Sequence[str]]]] = []
    states: dict[str, Mapping[str, Sequence[str]]] = {}
    for turn in data["turns"]:
      states_before.append(dict(states))
      if turn["speaker"] == USER:
        for frame in turn["frames"]:
          states[frame["service"]] = frame["state"]["slot_values"]
    return cls(data, states_before)

  def heard(self, number: int) -> list[Mapping[str, Any]]:
    """The system's acts before a user turn."""
    if not number:
      return []
    frames = self.data["turns"][number - 1]["frames"]
    return [action for frame in frames for action in frame.get("actions") or ()]


# (dialogue, turn, random number generator) -> other words, or why the turn keeps its own.
Provider = Callable[[Exchange, int, random.Random], NewWords | str]


def refers(exchange: Exchange, number: int) -> bool:
  """Whether a state of the turn has a new value that its acts do not convey.

  The user did not inform it, and neither selects nor affirms: only the wording refers to it
  ("there"). Without acts this is unknown, and False is returned.
  """
  for frame in exchange.data["turns"][number]["frames"]:
    actions = frame.get("actions")
    if actions is None:
      continue
    acts = {action["act"] for action in actions}
    if "SELECT" in acts or "AFFIRM" in acts:
      continue
    informed = {action["slot"] for action in actions if action["act"] == "INFORM"}
    values_before = exchange.states_before[number].get(frame["service"], {})
    for slot, values in frame["state"]["slot_values"].items():
      if slot not in informed and set(values).isdisjoint(values_before.get(slot, ())):
        return True
  return False
