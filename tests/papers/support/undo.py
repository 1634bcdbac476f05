"""From perturbed dialogues and their lines of changes.jsonl back to the originals.

That this works shows that the changes are complete: nothing else in a dialogue was touched.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.manifest import Manifest
from sgdx_t5x.papers.checkdst import vs
from sgdx_t5x.papers.checkdst.changes import read_changes
from sgdx_t5x.papers.checkdst.entities import Slots
from sgdx_t5x.papers.checkdst.split import Line, Split
from sgdx_t5x.papers.checkdst.texts import edit_turn, spans_of
from sgdx_t5x.papers.checkdst.values import replace_values
from sgdx_t5x.papers.checkdst.write import encode_like


def undo_dialogue(
  data: dict[str, Any], lines: Sequence[Line], manifest: Manifest
) -> dict[str, Any]:
  """Undoes the changes of one dialogue. Args: data, changed in place and returned."""
  for line in lines:
    if manifest.kind == "ned":
      undo_mapping(data, manifest.slots, line)
    elif manifest.kind == "vs":
      undo_values(data, manifest.slots, line)
    elif manifest.kind == "sdi":
      undo_insertions(data["turns"][line["turn"]], line["insertions"])
    else:
      assert manifest.kind == "pi", "a new kind needs its inverse here"
      undo_words(data["turns"][line["turn"]], line)
  return data


def undone_files(corpus: Corpus, split: str) -> Iterator[tuple[str, bytes]]:
  """Yields name and content of each file as it was before the perturbation."""
  manifest, changes = corpus.manifest(split), read_changes(corpus, split)
  for name, raw, dialogues in Split(corpus, split).files():
    for data in dialogues:
      undo_dialogue(data, changes.pop(data["dialogue_id"], ()), manifest)
    yield name, encode_like(raw, dialogues)
  assert not changes


def undo_mapping(data: dict[str, Any], slots: Slots, line: Mapping[str, Any]) -> None:
  """Undoes `mapping.apply_mapping`. Args: data, changed in place; line, what it returned."""
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


def undo_words(turn: dict[str, Any], line: Mapping[str, Any]) -> None:
  """Gives a turn its original words again. Args: turn, changed in place; line, of changes.jsonl."""
  turn["utterance"] = line["utterance"]
  for frame in turn["frames"]:
    places = line.get("spans", {}).get(frame["service"], ())
    for span, (start, end) in zip(frame.get("slots") or (), places, strict=True):
      span["start"], span["exclusive_end"] = start, end


def undo_insertions(turn: dict[str, Any], insertions: Sequence[Mapping[str, Any]]) -> None:
  """Cuts the insertions out of a turn. Args: turn, decoded, changed in place."""
  edits = [(x["at"], x["at"] + len(x["text"]), "") for x in insertions]
  edit_turn(turn, edits)
  if insertions and insertions[0].get("lowered"):
    text, place = turn["utterance"], insertions[0]["at"]
    turn["utterance"] = f"{text[:place]}{text[place].upper()}{text[place + 1 :]}"


def undo_values(data: dict[str, Any], slots: Slots, line: Mapping[str, Any]) -> None:
  """Undoes the changes of a dialogue. Args: data, changed in place; line, of changes.jsonl."""
  undo_mapping(data, slots, line)
  swaps = [
    (*place.rsplit(".", 1), value, other)
    for place, pairs in line.get("categorical", {}).items()
    for value, other in pairs.items()
  ]
  for number, places in line.get("said", {}).items():
    edit_turn(data["turns"][int(number)], [tuple(place) for place in places])
  vs._exchange_annotation(data, swaps)
