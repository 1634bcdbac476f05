"""Which user frames a perturbation changed: those on which both sets are compared."""

import collections
from collections.abc import Mapping
from typing import Any

from sgdx_t5x.corpus.dialogue import USER, frame_id

Snapshot = list[tuple[str, list[dict[str, Any]]]]  # utterance and states of each user turn


def snapshot(data: Mapping[str, Any]) -> Snapshot:
  """Returns the parts of a decoded dialogue that decide whether a frame is changed."""
  return [
    (turn["utterance"], [dict(frame["state"]["slot_values"]) for frame in turn["frames"]])
    for turn in data["turns"][::2]
  ]


def changed_frames(data: Mapping[str, Any], before: Snapshot, by_state: bool) -> list[str]:
  """Returns the ids of the user frames that differ from a snapshot.

  Args:
    data: the perturbed dialogue.
    before: snapshot of the original.
    by_state: whether the gold state is compared (ned, vs) or the frame's utterance (pi, sdi).
  """
  found = []
  for i, (turn, (utterance, states)) in enumerate(zip(data["turns"][::2], before, strict=True)):
    for frame, state in zip(turn["frames"], states, strict=True):
      is_other = turn["utterance"] != utterance
      if frame["state"]["slot_values"] != state if by_state else is_other:
        found.append(frame_id(data["dialogue_id"], 2 * i, frame["service"]))
  return found


def count(
  counts: collections.Counter, data: Mapping[str, Any], before: Snapshot, by_state: bool
) -> None:
  """Adds a dialogue to a manifest's counts, and to those that show what is annotated."""
  counts["dialogues"] += 1
  counts["user_turns"] += len(before)
  counts["frames"] += sum(len(states) for _, states in before)
  counts["turns_changed"] += sum(
    turn["utterance"] != old for turn, (old, _) in zip(data["turns"][::2], before, strict=True)
  )
  counts["frames_changed"] += len(changed_frames(data, before, by_state))
  counts["values"] += sum(bool(state) for _, states in before for state in states)
  for turn in data["turns"]:
    for frame in turn["frames"]:
      counts["spans"] += len(frame.get("slots") or ())
      counts["acts"] += len(frame.get("actions") or ()) if turn["speaker"] == USER else 0
