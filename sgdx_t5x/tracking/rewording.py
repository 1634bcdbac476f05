"""How often a tracker's states change when only the wording of the schema does."""

import collections
import dataclasses
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.errors import SgdxError, nearest, quoted
from sgdx_t5x.files.reading import decode_json, read_input
from sgdx_t5x.tracking.conversations import States, Utterance, from_utterances, states
from sgdx_t5x.tracking.protocol import Shown, Tracker

_EXPECTED = (
  "a JSON list of dialogues, each a list of texts, the user's first, or a dialogue in SGD's format"
)
_FIX = 'for example [["I need a taxi.", "Where to?"]]'


@dataclasses.dataclass(frozen=True)
class TypedDialogue:
  """A dialogue without labels.

  Attributes:
    utterances: of user and system in turn, the user's first.
    services: that it is about; None for all.
  """

  utterances: tuple[Utterance, ...]
  services: tuple[str, ...] | None = None

  def tracked(self, services: Sequence[str]) -> list[str]:
    """Returns those of some services that it is about."""
    return [name for name in services if self.services is None or name in self.services]


@dataclasses.dataclass
class Changes:
  """What changed in the states of a variant, against those of the original wording.

  Attributes:
    turns: number of user turns.
    changed: turns in whose state some slot's value differs.
    by_slot: (service, slot) -> turns in which its value differs.
  """

  turns: int = 0
  changed: int = 0
  by_slot: collections.Counter[tuple[str, str]] = dataclasses.field(
    default_factory=collections.Counter
  )


def read_typed(path: str | os.PathLike) -> list[TypedDialogue]:
  """Reads dialogues from a file.

  Raises:
    SgdxError: it is not a list of dialogues in one of the two forms.
  """
  data = decode_json(read_input(pathlib.Path(path), "dialogues"), str(path), _EXPECTED, _FIX)
  if not isinstance(data, list) or not data:
    raise _unreadable(path, "not a list of dialogues")
  return [_typed(dialogue, f"{path}: dialogue {i}") for i, dialogue in enumerate(data)]


def _typed(dialogue: Any, place: str) -> TypedDialogue:
  """Returns a dialogue of either form."""
  if isinstance(dialogue, list) and all(isinstance(text, str) for text in dialogue):
    return TypedDialogue(tuple(dialogue))
  try:
    turns = [(turn["speaker"], turn["utterance"]) for turn in dialogue["turns"]]
    services = dialogue["services"]
  except (KeyError, TypeError):
    raise _unreadable(place, "neither a list of texts nor SGD's format") from None
  for number, (speaker, text) in enumerate(turns):
    expected = "SYSTEM" if number % 2 else "USER"
    if speaker != expected or not isinstance(text, str):
      raise _unreadable(place, f"turn {number} is not an utterance of {expected}")
  if not isinstance(services, list) or not all(isinstance(name, str) for name in services):
    raise _unreadable(place, f"services is {quoted(services)}, not a list of names")
  return TypedDialogue(tuple(text for _, text in turns), tuple(services))


def _unreadable(place: Any, problem: str) -> SgdxError:
  return SgdxError(f"{place}: {problem}", expected=_EXPECTED, fix=_FIX)


def count_changes(
  tracker: Tracker,
  dialogues: Sequence[TypedDialogue],
  original: Shown,
  variants: Mapping[str, Shown],
  services: Sequence[str],
) -> tuple[dict[str, Changes], collections.Counter[tuple[str, str]]]:
  """Tracks dialogues under every wording and compares the states.

  Args:
    tracker: that is tried.
    dialogues: whose texts are read, not the system's acts.
    original: the schema itself.
    variants: name -> the same schema in other words.
    services: to track; of a dialogue that names its own, only those.

  Raises:
    SgdxError: a dialogue names a service that the schema does not have.

  Returns:
    Variant -> what changed; and (service, slot) -> turns in which any wording gives it a value.
  """
  changes = {name: Changes() for name in variants}
  filled: collections.Counter[tuple[str, str]] = collections.Counter()
  for number, typed in enumerate(dialogues):
    for name in typed.services or ():
      if name not in original.original:  # before any is tracked
        raise SgdxError(
          f"dialogue {number}: unknown service {name!r}",
          expected=f"services of {original.original.origin}",
          available=nearest(name, original.original.names),
          fix="correct its services",
        )
  for typed in dialogues:
    services_of = typed.tracked(services)
    if not services_of:
      continue
    dialogue = from_utterances(typed.utterances, original.original, services_of)
    expected = _values(states(tracker, dialogue, original))
    tracked = {name: _values(states(tracker, dialogue, x)) for name, x in variants.items()}
    for turn, values in enumerate(expected):
      slots = set(values)
      for name, turns in tracked.items():
        reworded_values = turns[turn]
        slots |= reworded_values.keys()
        # A slot without a value in one of the states differs too: `get` returns None for it.
        different = []
        for slot in values.keys() | reworded_values:
          if values.get(slot) != reworded_values.get(slot):
            different.append(slot)
        changes[name].turns += 1
        changes[name].changed += bool(different)
        changes[name].by_slot.update(different)
      filled.update(slots)
  return changes, filled


def _values(turns: States) -> list[dict[tuple[str, str], tuple[str, ...]]]:
  """Returns (service, slot) -> values for each user turn."""
  values_of_turns = []
  for frames in turns:
    values = {}
    for service, frame in frames.items():
      for slot, slot_values in frame.slot_values.items():
        values[service, slot] = slot_values
    values_of_turns.append(values)
  return values_of_turns
