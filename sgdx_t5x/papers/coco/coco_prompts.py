"""Inputs of CoCo's generator and classifier, the same in training and inference."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.papers.checkdst.values import NAMED_ACTS


def turn_id(dialogue_id: str, turn: int) -> str:
  """Names a turn: "1_00000.t04"."""
  return f"{dialogue_id}.t{turn:02d}"


def asked(heard: str, frames: Sequence[Mapping[str, Any]], key: str) -> str:
  """Returns a generator's input: "[SYSTEM] ... [ACTS] inform city = Elmport ; ...".

  Args:
    heard: the system utterance before.
    frames: of the user's turn, with its acts.
    key: seed for shuffling the acts, as CoCo shuffles the slots of its prompts.
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


def asked_slots(heard: str, utterance: str, service: Service) -> str:
  """Returns a classifier's input: "[SYSTEM] ... [USER] ... [domain] S [slots] a, b, c"."""
  slots = ", ".join(_tracked(service))
  return f"[SYSTEM] {heard} [USER] {utterance} [domain] {service.name} [slots] {slots}"


def told_slots(frame: Mapping[str, Any], service: Service) -> list[str]:
  """Returns the slots that a user frame informs (INFORM), in the order of `asked_slots`."""
  told = {action["slot"] for action in frame["actions"] if action["act"] == "INFORM"}
  return [slot for slot in _tracked(service) if slot in told]


def _tracked(service: Service) -> list[str]:
  return [service.slots[i].name for i in service.tracked_slots]
