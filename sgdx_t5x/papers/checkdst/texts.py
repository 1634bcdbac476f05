"""Utterances: replacing parts of them, and the positions of spans."""

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
  pairs = ((a, b) for i, a in enumerate(spans) for b in spans[i + 1 :] if b[0] < a[1])
  return {turn["utterance"][start:end] for pair in pairs for start, end in pair}


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
  for start, end, new in edits:
    pieces += [text[last:start], new]
    last = end
  return "".join([*pieces, text[last:]])


def moved(edits: Sequence[Edit]) -> list[tuple[int, int]]:
  """Returns the (start, end) of the new text of each of the sorted edits in the edited text."""
  places, shift = [], 0
  for start, end, new in edits:
    places.append((start + shift, start + shift + len(new)))
    shift += len(new) - (end - start)
  return places


def gaps(text: str, taken: Iterable[tuple[int, int]]) -> list[str]:
  """Returns the pieces of a text that lie between (start, end) pairs."""
  pieces, last = [], 0
  for start, end in sorted(taken):
    pieces.append(text[last : max(start, last)])
    last = max(end, last)
  return [*pieces, text[last:]]


def whole_words(strings: Iterable[str]) -> re.Pattern[str] | None:
  """Returns a pattern that finds the strings as whole words, the longest first; None for none."""
  found = sorted(set(strings), key=lambda text: (-len(text), text))
  if not found:
    return None
  return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, found))})(?!\w)")


def is_said(value: str, text: str) -> bool:
  """Whether a text contains a value as whole words.

  Args:
    value: in any case and spacing.
    text: lower case, with single spaces.
  """
  value = " ".join(value.lower().split())
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
