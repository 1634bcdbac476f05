"""Planted trackers: predictions whose scores on perturbed dialogues are known in advance.

gold     the gold state of each set
frozen   the gold state of the original dialogues, on every set
blind    gold without the values that are carried over from another service
taker    gold, except for values that the user corrected: it keeps what was said first
silent   nothing
"""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

from sgdx_t5x.corpus import provenance
from sgdx_t5x.corpus.corpus import Corpus

TRACKERS = ("gold", "frozen", "blind", "taker", "silent")


def write_planted(
  folder: pathlib.Path, tracker: str, original: Corpus, corpus: Corpus, split: str = "test"
) -> pathlib.Path:
  """Writes a tracker's predictions for a set as DSTC8 dialogues; returns the folder.

  Args:
    folder: folder to write.
    tracker: one of TRACKERS.
    original: the corpus that was perturbed.
    corpus: the set, which may be the original.
    split: split of both corpora.
  """
  frozen = {d.dialogue_id: d for d in original.dialogues(split)} if tracker == "frozen" else {}
  repairs = _repairs(corpus, split) if tracker == "taker" else {}
  dialogues = []
  for dialogue in corpus.dialogues(split):
    states: dict[tuple[int, str], Mapping[str, Any]] = {}
    kept: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = {}
    for turn, frame, origins in provenance.trace(dialogue):
      values = {slot: list(found) for slot, found in frame.state.slot_values.items()}
      if tracker == "blind":
        values = {slot: x for slot, x in values.items() if origins[slot].source != "carried"}
      for slot in values if tracker == "taker" else ():
        place, gold = (frame.service, slot), frame.state.slot_values[slot]
        if place in kept and not set(kept[place][1]) & set(gold):
          del kept[place]
        if place in repairs.get((dialogue.dialogue_id, turn), {}):
          kept[place] = repairs[dialogue.dialogue_id, turn][place], gold
        values[slot] = [kept[place][0]] if place in kept else values[slot]
      states[turn, frame.service] = {} if tracker == "silent" else values
    name = dialogue.dialogue_id.rpartition(".t")[0] or dialogue.dialogue_id
    dialogues.append(_predicted(dialogue.to_json(), states, frozen.get(name)))
  folder.mkdir(parents=True)
  (folder / "dialogues_all.json").write_text(json.dumps(dialogues))
  return folder


def _predicted(data, states, original):
  for number, turn in enumerate(data["turns"]):
    for place, frame in enumerate(turn["frames"]):
      for key in ("actions", "slots", "service_call", "service_results"):
        frame.pop(key, None)
      if (number, frame["service"]) not in states:  # before the turn that is scored
        continue
      if "state" in frame:
        frame["state"]["slot_values"] = states[number, frame["service"]]
      if "state" in frame and original is not None:
        state = original.turns[number].frames[place].state
        frame["state"]["slot_values"] = {slot: list(x) for slot, x in state.slot_values.items()}
  return data


def _repairs(corpus, split):
  """Maps (dialogue id, turn) to {(service, slot): the value said first}."""
  repairs: dict[tuple[str, int], dict[tuple[str, str], str]] = {}
  if corpus.perturbed(split) != ("sdi",):
    return repairs
  for line in map(json.loads, corpus.source.read(f"{split}/changes.jsonl").splitlines()):
    for insertion in line["insertions"]:
      if insertion["kind"] == "repair":
        service, _, slot = insertion["slot"].rpartition(".")
        of_turn = repairs.setdefault((line["dialogue_id"], line["turn"]), {})
        of_turn[service, slot] = insertion["instead"]
  return repairs
