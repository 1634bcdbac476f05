"""One mapping of strings per dialogue, applied everywhere at once, and how to undo it."""

from collections.abc import Mapping
from typing import Any

from sgdx_t5x.papers.checkdst.answerable import gold_factuality
from sgdx_t5x.papers.checkdst.entities import Slots
from sgdx_t5x.papers.checkdst.texts import Edit, edit_turn, moved, spans_of, whole_words
from sgdx_t5x.papers.checkdst.values import replace_values, unsorted_states

# Shorter strings ("Us", "Up") are ordinary words, too: outside spans they are kept.
SHORTEST_MENTION = 4


def apply_mapping(data: dict[str, Any], slots: Slots, strings: Mapping[str, str]) -> dict[str, Any]:
  """Replaces strings in utterances, spans, acts, states, calls and results.

  In utterances, it replaces the spans of `slots`, and case-sensitive whole-word mentions outside
  spans of the strings of SHORTEST_MENTION characters or more.

  Args:
    data: a decoded dialogue, changed in place.
    slots: whose values are replaced.
    strings: old -> new, one to one; no new string may be in the dialogue already.

  Returns:
    What is needed to undo it: fields `strings`, `mentions` and `unsorted` of a changes.jsonl line.
  """
  kept_order = unsorted_states(data, slots)
  mentions: dict[str, list[list[int]]] = {}
  pattern = whole_words(s for s in strings if len(s) >= SHORTEST_MENTION)
  for number, turn in enumerate(data["turns"]):
    text, spans = turn["utterance"], list(spans_of(turn))
    found: dict[tuple[int, int], tuple[str, bool]] = {}  # place -> new text, whether outside spans
    for service, slot, start, end in spans:
      if slot in slots.get(service, ()) and (new := strings.get(text[start:end])):
        found[start, end] = new, False
    if pattern:
      for match in pattern.finditer(text):
        start, end = match.span()
        if not any(a < end and start < b for _, _, a, b in spans):
          found[start, end] = strings[match[0]], True
    edits: list[Edit] = [(a, b, found[a, b][0]) for a, b in sorted(found)]
    places = [
      [*place]
      for place, (a, b, _) in zip(moved(edits), edits, strict=True)
      if found[a, b][1]
    ]  # fmt: skip
    if places:
      mentions[str(number)] = places
    edit_turn(turn, edits)
  replace_values(data, slots, strings, kept_order)
  line: dict[str, Any] = {"strings": dict(strings)}
  if mentions:
    line["mentions"] = mentions
  if kept_order:
    line["unsorted"] = sorted([*place] for place in kept_order)
  return line


def undo_mapping(data: dict[str, Any], slots: Slots, line: Mapping[str, Any]) -> None:
  """Undoes `apply_mapping`. Args: data, changed in place; line, what it returned."""
  back = {new: old for old, new in line["strings"].items()}
  mentions = line.get("mentions", {})
  for number, turn in enumerate(data["turns"]):
    text = turn["utterance"]
    places = {(start, end) for start, end in mentions.get(str(number), ())}
    places |= {
      (start, end)
      for service, slot, start, end in spans_of(turn)
      if slot in slots.get(service, ()) and text[start:end] in back
    }
    edit_turn(turn, [(a, b, back[text[a:b]]) for a, b in sorted(places)])
  kept_order = {(turn, service, slot) for turn, service, slot in line.get("unsorted", ())}
  replace_values(data, slots, back, kept_order)


def answerable_mapping(
  data: dict[str, Any], slots: Slots, strings: Mapping[str, str]
) -> tuple[dict[str, Any], set[str]]:
  """Applies the part of a mapping that removes no value of a state from the text.

  Where spans are complete, as in SGD, that is all of it.

  Returns:
    What `apply_mapping` returned, and the strings that are kept: a state has them, and the text
    has them only where they cannot be replaced (a short word, or part of another slot's span).
  """
  kept: set[str] = set()
  while True:
    wanted = {old: new for old, new in strings.items() if old not in kept}
    line = apply_mapping(data, slots, wanted)
    _, unsaid = gold_factuality(data, slots)
    back = {new: old for old, new in wanted.items()}
    suspects = {(u.turn, u.service, u.slot, back[u.value]) for u in unsaid if u.value in back}
    if not suspects:
      return line, kept
    undo_mapping(data, slots, line)
    lost = {u[-1] for u in suspects - set(map(tuple, gold_factuality(data, slots)[1]))}
    if not lost:
      return apply_mapping(data, slots, wanted), kept
    kept |= lost
