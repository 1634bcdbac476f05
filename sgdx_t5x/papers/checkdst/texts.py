"""Utterances: replacing parts of them, and the positions of spans."""

import functools
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

Edit = tuple[int, int, str]  # start, end (exclusive), replacement; start == end inserts
_WORDS = re.compile(r"\w+")
_WORD = re.compile(r"\w")


def spans_of(turn: Mapping[str, Any]) -> Iterator[tuple[str, str, int, int]]:
  """Yields (service, slot, start, end) of the spans of a decoded turn."""
  for frame in turn["frames"]:
    for span in frame.get("slots") or ():
      yield frame["service"], span["slot"], span["start"], span["exclusive_end"]


def span_texts(turn: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
  """Yields (service, slot, text) of the spans of a decoded turn."""
  for service, slot, start, end in spans_of(turn):
    yield service, slot, turn["utterance"][start:end]


def overlapping_texts(turn: Mapping[str, Any]) -> set[str]:
  """Returns the texts of a decoded turn's spans that overlap other spans; two turns of SGD do."""
  spans = sorted({(start, end) for _, _, start, end in spans_of(turn)})
  texts: set[str] = set()
  for a, b in itertools.combinations(spans, 2):
    if b[0] < a[1]:
      texts |= {turn["utterance"][slice(*a)], turn["utterance"][slice(*b)]}
  return texts


def edit_turn(turn: dict[str, Any], edits: Sequence[Edit]) -> None:
  """Replaces parts of a turn's utterance and adjusts all its spans.

  Args:
    turn: decoded, changed in place.
    edits: sorted, not overlapping; a span may be replaced as a whole, or contain an edit. An
      insertion at the start of a span goes before it.
  """
  if not edits:
    return
  turn["utterance"] = edited(turn["utterance"], edits)
  for frame in turn["frames"]:
    for span in frame.get("slots") or ():
      start, end = span["start"], span["exclusive_end"]
      span["start"] = start + sum(len(t) - (b - a) for a, b, t in edits if b <= start)
      span["exclusive_end"] = end + sum(len(t) - (b - a) for a, b, t in edits if a < end)


def edited(text: str, edits: Sequence[Edit]) -> str:
  """Returns the text with sorted edits applied."""
  pieces, last = [], 0
  for start, end, replacement in edits:
    pieces += [text[last:start], replacement]
    last = end
  return "".join([*pieces, text[last:]])


def moved(edits: Sequence[Edit]) -> list[tuple[int, int]]:
  """Returns the (start, end) of the new text of each of the sorted edits in the edited text."""
  places, shift = [], 0
  for start, end, replacement in edits:
    places.append((start + shift, start + shift + len(replacement)))
    shift += len(replacement) - (end - start)
  return places


def gaps(text: str, spans: Iterable[tuple[str, str, int, int]]) -> list[str]:
  """Returns the pieces of a text that lie between its (service, slot, start, end) spans."""
  pieces, last = [], 0
  for *_, start, end in sorted(spans, key=lambda span: span[2:]):
    pieces.append(text[last : max(start, last)])
    last = max(end, last)
  return [*pieces, text[last:]]


def whole_words(strings: Iterable[str]) -> re.Pattern[str] | None:
  """Returns a pattern that finds the strings as whole words, the longest first; None for none."""
  longest_first = sorted(set(strings), key=lambda text: (-len(text), text))
  if not longest_first:
    return None
  return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")


@functools.lru_cache(maxsize=4096)
def pattern_of(value: str) -> re.Pattern[str]:
  """Returns a pattern that finds a value of a categorical slot as whole words, in any case."""
  return re.compile(rf"(?<!\w){re.escape(value.replace('_', ' '))}(?!\w)", re.IGNORECASE)


def places_outside_spans(turn: Mapping[str, Any], value: str) -> Iterator[tuple[int, int]]:
  """Yields (start, end) of a value of a categorical slot in a decoded turn's utterance."""
  for match in pattern_of(value).finditer(turn["utterance"]):
    start, end = match.span()
    if not any(a < end and start < b for _, _, a, b in spans_of(turn)):
      yield start, end


def normalised(text: str) -> str:
  """Returns a text in lower case, with white space collapsed to single spaces."""
  return " ".join(text.lower().split())


def is_said(value: str, text: str) -> bool:
  """Whether a text contains a value as whole words.

  Args:
    value: in any case and spacing.
    text: `normalised`; it may have several lines.
  """
  value = normalised(value)
  start = text.find(value)
  while start >= 0:
    end = start + len(value)
    if not (_WORD.match(text[start - 1 : start]) or _WORD.match(text[end : end + 1])):
      return True
    start = text.find(value, start + 1)
  return False


def words(text: str) -> list[str]:
  """Returns the words of a text, in lower case."""
  return _WORDS.findall(text.lower())


def overlap(a: Collection[str], b: Collection[str]) -> float:
  """Returns the share of words that two texts have in common (Jaccard), 0 to 1."""
  x, y = set(a), set(b)
  return len(x & y) / len(x | y) if x | y else 1.0


def same_text(a: str, b: str) -> bool:
  """Whether two texts are equal except for case and spaces."""
  return "".join(a.split()).lower() == "".join(b.split()).lower()
