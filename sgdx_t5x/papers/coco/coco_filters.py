"""What a generated utterance must say, and what it must not."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.schema import DONTCARE, Schema
from sgdx_t5x.papers.checkdst.entities import free_slots
from sgdx_t5x.papers.checkdst.pi_words import NewWords
from sgdx_t5x.papers.checkdst.split import Split, annotation_of
from sgdx_t5x.papers.checkdst.texts import gaps, same_text, span_texts, words
from sgdx_t5x.papers.checkdst.values import said_values
from sgdx_t5x.papers.coco.coco_turns import Goal
from sgdx_t5x.papers.coco.coco_values import Value
from sgdx_t5x.variants.wording import INTENT, name_words

_SHORTEST = 4  # characters; shorter values ("Us", "Up", "2") are ordinary words, too
_BOOLEAN = frozenset({"true", "false"})


@dataclasses.dataclass(frozen=True)
class KnownValues:
  """Values of the slots of a service, to detect those that are not in a goal.

  Attributes:
    slots: value, as words in lower case -> its slots.
    longest: number of words of the longest value.
    plain: words of the service's names and descriptions, which do not count as values.
  """

  slots: Mapping[str, frozenset[str]]
  longest: int
  plain: frozenset[str]


def known_values(split: Split) -> dict[str, KnownValues]:
  """Reads a split once. Returns service -> values of its slots, free and categorical."""
  found: dict[str, dict[str, set[str]]] = {service.name: {} for service in split.schema}
  free = free_slots(split.schema)
  for service in split.schema:
    for slot in service.slots:
      for value in slot.possible_values:
        found[service.name].setdefault(_plain(value), set()).add(slot.name)
  for data in split.dialogues():
    with annotation_of(data):
      for name, slot, value in said_values(data):
        if slot in free.get(name, ()):
          found[name].setdefault(value, set()).add(slot)
  return {name: _of_service(split.schema, name, values) for name, values in found.items()}


def _of_service(schema: Schema, name: str, values: Mapping[str, set[str]]) -> KnownValues:
  service = schema[name]
  pairs = [(x.name, x.description) for x in service.slots]
  pairs += [(x.name, x.description) for x in service.intents]
  texts = [text for name, about in pairs for text in (name_words(name, INTENT), about)]
  slots: dict[str, set[str]] = {}
  for value, of in values.items():
    text = " ".join(words(value))
    if len(text) >= _SHORTEST and not text.isdecimal() and text not in _BOOLEAN:
      slots.setdefault(text, set()).update(of)
  longest = max((text.count(" ") + 1 for text in slots), default=0)
  plain = frozenset(word for text in texts for word in words(text))
  return KnownValues({x: frozenset(of) for x, of in slots.items()}, longest, plain)


def rejected(
  new: NewWords,
  goal: Goal,
  outlined: Mapping[str, Any],
  known: KnownValues,
  before: str,
) -> str:
  """Returns why words do not fit a goal: empty, missing, old, extra or same; "" if they do.

  Args:
    new: the words, and the spans of values in them.
    goal: what is to be informed.
    outlined: the turn with the goal's acts and spans.
    known: values of the service.
    before: what the user said; "" if the same words are acceptable.
  """
  if not new.text.strip():
    return "empty"
  if new.span_texts != sorted(span_texts(outlined)):
    return "missing"
  pieces = [words(piece) for piece in gaps(new.text, ((a, b) for _, _, a, b in new.spans))]
  if any(_has(pieces, text) for text in _gone(goal)):
    return "old"
  if _extra(pieces, outlined, known):
    return "extra"
  return "same" if before and same_text(new.text, before) else ""


def _gone(goal: Goal) -> set[str]:
  """Values that are no longer informed, as words; without "True", which is never said as such."""
  told = {text for value in goal.told.values() for text in _as_words(value)}
  gone = {text for value in goal.gone for text in _as_words(value)}
  return gone - told - _BOOLEAN


def _as_words(value: Value) -> Iterable[str]:
  return (" ".join(words(_plain(text))) for text in value if text != DONTCARE)


def _has(pieces: Sequence[Sequence[str]], text: str) -> bool:
  return bool(text) and any(f" {text} " in f" {' '.join(piece)} " for piece in pieces)


def _extra(
  pieces: Sequence[Sequence[str]], outlined: Mapping[str, Any], known: KnownValues
) -> bool:
  """Whether the text says a value that no act of the turn has."""
  own = {
    " ".join(words(_plain(value)))
    for frame in outlined["frames"]
    for action in frame["actions"]
    for value in (*action.get("values", ()), *(action.get("canonical_values") or ()))
  }
  for piece in pieces:
    for i in range(len(piece)):
      for j in range(i + 1, min(i + known.longest, len(piece)) + 1):
        text = " ".join(piece[i:j])
        if text in known.slots and text not in own and not known.plain.issuperset(piece[i:j]):
          return True
  return False


def _plain(value: str) -> str:
  return value.replace("_", " ")
