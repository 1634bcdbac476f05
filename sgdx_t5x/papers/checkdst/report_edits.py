"""Counterfactual turns in a report: what users inform instead, and where in the utterance."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import Dialogue, Turn
from sgdx_t5x.papers.checkdst.changes import read_changes
from sgdx_t5x.report.browser import Edits

KEPT, CHANGED, ADDED, DROPPED = "kept", "changed", "added", "dropped"
# An edit of a turn: {"slots": [status, slot, old, new], "parts": [status, text]}


def read_edits(before: Mapping[str, Dialogue], found: Corpus, split: str) -> Edits:
  """Reads the edits of a set of counterfactuals, or of its control.

  Args:
    before: original dialogues, by id.
    found: the set.
    split: its split.

  Returns:
    Original dialogue id -> turn -> edit. "slots" lists the status of each slot of the goal, with
    the values informed before and after (None: not informed). "parts" is the new utterance, split
    at the values it contains, with the status of their slots; "" for other text.

  Raises:
    SgdxError: changes.jsonl is missing or malformed.
  """
  lines = {name: line for name, (line, *_) in read_changes(found, split).items()}
  edits: dict[str, dict[int, Mapping[str, Any]]] = {}
  for dialogue in found.dialogues(split):
    line = lines.get(dialogue.dialogue_id)
    if line and (original := before.get(line["of"])):
      number = line["turn"]
      edit = _edit(line, original.turns[number], dialogue.turns[-1])
      edits.setdefault(line["of"], {})[number] = edit
  return edits


def _edit(line: Mapping[str, Any], before: Turn, after: Turn) -> dict[str, Any]:
  old, new = (_told(turn, line["service"]) for turn in (before, after))
  status = dict.fromkeys(line["kept"], KEPT)
  status |= dict.fromkeys(line["changed"], CHANGED) | dict.fromkeys(line["added"], ADDED)
  status |= dict.fromkeys(line["dropped"], DROPPED)
  order = (CHANGED, ADDED, DROPPED, KEPT)
  slots = [
    [what, slot, old.get(slot), new.get(slot)]
    for slot, what in sorted(status.items(), key=lambda item: order.index(item[1]))
  ]
  places = sorted(_places(after, line["service"], new))
  parts, last = [], 0
  for start, end, slot in places:
    if start >= last and slot in status:
      parts += [["", after.utterance[last:start]], [status[slot], after.utterance[start:end]]]
      last = end
  parts.append(["", after.utterance[last:]])
  return {"slots": slots, "parts": [part for part in parts if part[1]]}


def _told(turn: Turn, service: str) -> dict[str, str]:
  """Returns slot -> value that a user turn informs for a service (INFORM)."""
  frames = (frame for frame in turn.frames if frame.service == service)
  actions = (action for frame in frames for action in frame.actions or ())
  return {x["slot"]: x["values"][0] for x in actions if x["act"] == "INFORM" and x["values"]}


def _places(turn: Turn, service: str, told: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
  """Yields (start, end, slot) of values: spans, and categorical values that occur verbatim."""
  spans = [x for f in turn.frames if f.service == service for x in f.slots or ()]
  for span in spans:
    yield span["start"], span["exclusive_end"], span["slot"]
  for slot in told.keys() - {span["slot"] for span in spans}:
    value = re.escape(told[slot].replace("_", " "))
    if match := re.search(rf"(?<!\w){value}(?!\w)", turn.utterance, re.IGNORECASE):
      yield *match.span(), slot
