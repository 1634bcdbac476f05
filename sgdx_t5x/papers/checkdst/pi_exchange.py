"""Paraphrases in human words: another user's turn with the same acts, filled with own values."""

import collections
import dataclasses
import functools
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.dialogue import NAMED_ACTS, USER
from sgdx_t5x.corpus.schema import DONTCARE, Schema
from sgdx_t5x.papers.checkdst.pi_words import Exchange, NewWords, Provider, refers
from sgdx_t5x.papers.checkdst.split import Split, annotation_of
from sgdx_t5x.papers.checkdst.texts import overlap, same_text, whole_words, words
from sgdx_t5x.papers.checkdst.values import said_values, values_of_act

_DRAWN = 10  # donors; the one that shares the fewest words with the turn is used
_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_IN_WORDS = {str(n): word for n, word in enumerate(_NUMBERS, start=2)}


@dataclasses.dataclass(frozen=True)
class Donor:
  """A turn with its values cut out.

  Attributes:
    dialogue_id, turn: its position.
    pieces: its text around and between the values; one more than there are values.
    holes: (frame of the turn, slot) of each value.
    words: of the pieces.
  """

  dialogue_id: str
  turn: int
  pieces: tuple[str, ...]
  holes: tuple[tuple[int, str], ...]
  words: frozenset[str]


def provider(split: Split) -> Provider:
  """Returns the provider; it reads the split once, for all turns whose words may be reused."""
  return functools.partial(exchanged, split.schema, lenders(split))


def lenders(split: Split) -> dict[tuple, list[Donor]]:
  """Returns the turns of a split whose words may be reused, by `signature`."""
  donors: dict[tuple, list[Donor]] = collections.defaultdict(list)
  for data in split.dialogues():
    with annotation_of(data):
      for key, donor in _lent(data, split.schema):
        donors[key].append(donor)
  return donors


def _lent(data: Mapping[str, Any], schema: Schema) -> Iterator[tuple[tuple, Donor]]:
  exchange = Exchange.of(data)
  outside = _outside_pattern(data)
  for number, turn in enumerate(data["turns"]):
    if turn["speaker"] == USER:
      key, donor = signature(exchange, number, schema), cut(data, number)
      if not key or not donor or _says_more(donor, turn, schema, outside):
        continue
      if not refers(exchange, number):  # "there" means something in its own dialogue only
        yield key, donor


def exchanged(
  schema: Schema,
  donors: Mapping[tuple, Sequence[Donor]],
  exchange: Exchange,
  number: int,
  rng: random.Random,
) -> NewWords | str:
  """Returns another user's words for a turn, or why it keeps its own. See `Provider`."""
  key, borrower = signature(exchange, number, schema), cut(exchange.data, number)
  if key is None:
    return "no-acts"
  if borrower is None:
    return "no-donor"
  name, turn = exchange.data["dialogue_id"], exchange.data["turns"][number]
  # Donors of the same dialogue are skipped after the draw, so that it does not depend on them.
  alike = donors.get(key, ())
  sampled = [alike[i] for i in rng.sample(range(len(alike)), min(_DRAWN, len(alike)))]
  best = None
  for donor in sampled:
    if donor.dialogue_id == name:
      continue
    share = overlap(borrower.words, donor.words)
    if best is None or share < best[0]:
      reworded = filled(donor, borrower, turn)
      if not same_text(reworded.text, turn["utterance"]):
        best = share, reworded
  return best[1] if best else "no-donor"


def signature(exchange: Exchange, number: int, schema: Schema) -> tuple | None:
  """Returns a key that is equal for turns that can exchange their words; None without acts.

  It has services, acts with slots (and values that are categorical, "dontcare" or intents), spans,
  and the system's acts and requests before: "yes" does not answer a question for a city.
  """
  frames = []
  for frame in exchange.data["turns"][number]["frames"]:
    if frame.get("actions") is None:
      return None
    free = schema[frame["service"]].noncategorical_slots
    acts = sorted(_act(action, free) for action in frame["actions"])
    spans = sorted(span["slot"] for span in frame.get("slots") or ())
    frames.append((frame["service"], tuple(acts), tuple(spans)))
  heard = exchange.heard(number)
  requested = sorted(a["slot"] for a in heard if a["act"] == "REQUEST")
  return tuple(frames), tuple(sorted({a["act"] for a in heard})), tuple(requested)


def _act(action: Mapping[str, Any], free: frozenset[str]) -> tuple[str, str, str]:
  values = "" if _is_open(action, free) else "|".join(_canonical(action))
  return action["act"], action.get("slot", ""), values


def _is_open(action: Mapping[str, Any], free: frozenset[str]) -> bool:
  """Whether turns with the same signature may have other values in this act."""
  is_free = action.get("slot", "") in free and action["act"] not in NAMED_ACTS
  return is_free and list(_canonical(action)) != [DONTCARE]


def _canonical(action: Mapping[str, Any]) -> Sequence[str]:
  return action.get("canonical_values") or action.get("values", ())


def cut(data: Mapping[str, Any], number: int) -> Donor | None:
  """Cuts the values out of a turn; None if their spans overlap."""
  turn = data["turns"][number]
  text, pieces, holes, last = turn["utterance"], [], [], 0
  for start, end, frame, slot in _spans(turn):
    if start < last:
      return None
    pieces.append(text[last:start])
    holes.append((frame, slot))
    last = end
  pieces.append(text[last:])
  content = frozenset(words(" ".join(pieces)))
  return Donor(data["dialogue_id"], number, tuple(pieces), tuple(holes), content)


def _spans(turn: Mapping[str, Any]) -> list[tuple[int, int, int, str]]:
  """Returns (start, end, frame of the turn, slot) of each span, in the order of the text."""
  spans: list[tuple[int, int, int, str]] = []
  for i, frame in enumerate(turn["frames"]):
    for span in frame.get("slots") or ():
      spans.append((span["start"], span["exclusive_end"], i, span["slot"]))
  return sorted(spans)


def filled(donor: Donor, borrower: Donor, turn: Mapping[str, Any]) -> NewWords:
  """Returns the donor's words with the turn's values in them."""
  values: dict[tuple[int, str], list[str]] = collections.defaultdict(list)
  for start, end, frame, slot in _spans(turn):
    values[frame, slot].append(turn["utterance"][start:end])
  text, placed = donor.pieces[0], []
  for (frame, slot), piece in zip(donor.holes, donor.pieces[1:], strict=True):
    value = values[frame, slot].pop(0)
    service = turn["frames"][frame]["service"]
    placed.append((service, slot, len(text), len(text) + len(value)))
    text += value + piece
  return NewWords(text, placed, {"donor": f"{donor.dialogue_id}/{donor.turn}"})


def _outside_pattern(data: Mapping[str, Any]) -> re.Pattern[str] | None:
  """Finds values of a dialogue; boolean ones are never said as they are written."""
  values = {value for _, _, value in said_values(data)} - {"True", "False", ""}
  values |= {_IN_WORDS[value] for value in values if value in _IN_WORDS}
  return whole_words({value.lower() for value in values})


def _says_more(
  donor: Donor, turn: Mapping[str, Any], schema: Schema, outside: re.Pattern[str] | None
) -> bool:
  """Whether a turn says, outside its spans, a value of its dialogue that borrowers may not have."""
  if outside is None or not (mentioned := outside.findall(" | ".join(donor.pieces).lower())):
    return False
  shared: set[str] = set()
  for frame in turn["frames"]:
    free = schema[frame["service"]].noncategorical_slots
    for action in frame["actions"]:
      if not _is_open(action, free):
        shared.update(value.lower() for value in values_of_act(action))
  shared |= {_IN_WORDS[value] for value in shared if value in _IN_WORDS}
  return not shared.issuperset(mentioned)
