"""What CoCo's generator and classifier are asked, the same in training and afterwards."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.perturb.values import NAMED_ACTS


def turn_id(dialogue_id: str, turn: int) -> str:
  """Names a turn: "1_00000.t04"."""
  return f"{dialogue_id}.t{turn:02d}"


def asked(heard: str, frames: Sequence[Mapping[str, Any]], key: str) -> str:
  """Returns what a generator is asked: "[SYSTEM] ... [ACTS] inform city = Elmport ; ...".

  Args:
    heard: what the system said before.
    frames: of the user's turn, with its acts.
    key: shuffles the acts, as CoCo shuffles the slots of its prompts.
  """
  acts = []
  for frame in frames:
    for action in frame["actions"]:
      values = ", ".join(action.get("values") or ())
      slot = "" if action["act"] in NAMED_ACTS else action.get("slot", "")
      parts = [action["act"].lower(), slot, "=" if slot and values else "", values]
      acts.append(" ".join(part for part in parts if part))
  random.Random(key).shuffle(acts)
  return f"[SYSTEM] {heard} [ACTS] {' ; '.join(acts)}"


def asked_slots(heard: str, utterance: str, service: str, slots: Sequence[str]) -> str:
  """Returns what a classifier is asked: "[SYSTEM] ... [USER] ... [domain] S [slots] a, b, c"."""
  listed = ", ".join(slots)
  return f"[SYSTEM] {heard} [USER] {utterance} [domain] {service} [slots] {listed}"


def told_slots(frame: Mapping[str, Any]) -> frozenset[str]:
  """Returns the slots that a user frame tells (INFORM)."""
  return frozenset(action["slot"] for action in frame["actions"] if action["act"] == "INFORM")
