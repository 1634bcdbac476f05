"""What a generated utterance must say, and what it must not."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.schema import DONTCARE, Intent, Slot
from sgdx_t5x.papers.checkdst.entities import free_slots
from sgdx_t5x.papers.checkdst.pi_words import NewWords
from sgdx_t5x.papers.checkdst.split import Split, annotation_of
from sgdx_t5x.papers.checkdst.texts import gaps, same_text, span_texts, words
from sgdx_t5x.papers.checkdst.values import said_values, values_of_act
from sgdx_t5x.papers.coco.coco_turns import Goal
from sgdx_t5x.papers.coco.coco_values import Value
from sgdx_t5x.variants.wording import INTENT, name_words

_SHORTEST = 4  # characters; shorter values ("Us", "Up", "2") are ordinary words, too
_BOOLEAN = frozenset({"true", "false"})


@dataclasses.dataclass(frozen=True)
class KnownValues:
  """Values of the slots of a service, to detect those that are not in a goal.

  Attributes:
    values: as words in lower case.
    longest: number of words of the longest value.
    plain: words of the service's names and descriptions, which do not count as values.
  """

  values: frozenset[str]
  longest: int
  plain: frozenset[str]


def known_values(split: Split) -> dict[str, KnownValues]:
  """Reads a split once. Returns service -> values of its slots, free and categorical."""
  values_by_service: dict[str, set[str]] = {}
  for service in split.schema:
    values = values_by_service[service.name] = set()
    for slot in service.slots:
      values.update(map(_plain, slot.possible_values))
  free = free_slots(split.schema)
  for data in split.dialogues():
    with annotation_of(data):
      for name, slot, value in said_values(data):
        if slot in free.get(name, ()):
          values_by_service[name].add(value)
  known_values_by_service: dict[str, KnownValues] = {}
  for service in split.schema:
    elements: list[Slot | Intent] = [*service.slots, *service.intents]
    plain: set[str] = set()
    for element in elements:
      plain.update(words(f"{name_words(element.name, INTENT)} {element.description}"))
    # Numbers, "true" and short words are said without these values being meant.
    texts = {" ".join(words(value)) for value in values_by_service[service.name]} - _BOOLEAN
    detectable = frozenset(x for x in texts if len(x) >= _SHORTEST and not x.isdecimal())
    longest = max((text.count(" ") + 1 for text in detectable), default=0)
    known_values_by_service[service.name] = KnownValues(detectable, longest, frozenset(plain))
  return known_values_by_service


def rejected(
  wording: NewWords,
  goal: Goal,
  outlined: Mapping[str, Any],
  known_values: KnownValues,
  original_utterance: str,
) -> str:
  """Returns why words do not fit a goal: empty, missing, old, extra or same; "" if they do.

  Args:
    wording: the words, and the spans of values in them.
    goal: what is to be informed.
    outlined: the turn with the goal's acts and spans.
    known_values: values of the service.
    original_utterance: what the user said; "" if the same words are acceptable.
  """
  if not wording.text.strip():
    return "empty"
  if wording.span_texts != sorted(span_texts(outlined)):
    return "missing"
  pieces = [words(piece) for piece in gaps(wording.text, wording.spans)]
  if any(_has(pieces, text) for text in _gone(goal)):
    return "old"
  if _extra(pieces, outlined, known_values):
    return "extra"
  return "same" if original_utterance and same_text(wording.text, original_utterance) else ""


def _gone(goal: Goal) -> set[str]:
  """Values that are no longer informed, as words; without "True", which is never said as such."""
  gone = set().union(*map(_as_words, goal.gone))
  return gone.difference(_BOOLEAN, *map(_as_words, goal.informed.values()))


def _as_words(value: Value) -> set[str]:
  return {" ".join(words(_plain(text))) for text in value if text != DONTCARE}


def _has(pieces: Sequence[Sequence[str]], text: str) -> bool:
  return bool(text) and any(f" {text} " in f" {' '.join(piece)} " for piece in pieces)


def _extra(
  pieces: Sequence[Sequence[str]], outlined: Mapping[str, Any], known_values: KnownValues
) -> bool:
  """Whether the text says a value that no act of the turn has."""
  allowed: set[str] = set()
  for frame in outlined["frames"]:
    for action in frame["actions"]:
      allowed.update(" ".join(words(_plain(value))) for value in values_of_act(action))
  unwanted = known_values.values - allowed
  for piece in pieces:
    for i in range(len(piece)):
      for j in range(i + 1, min(i + known_values.longest, len(piece)) + 1):
        text = " ".join(piece[i:j])
        if text in unwanted and not known_values.plain.issuperset(piece[i:j]):
          return True
  return False


def _plain(value: str) -> str:
  return value.replace("_", " ")
