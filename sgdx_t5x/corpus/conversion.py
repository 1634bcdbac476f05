"""Converts dialogues to a variant's names: the SGD-X conversion, by position.

The rules are those of the official converter (dstc8 repository,
sgd_x/generate_sgdx_dialogues.py as fixed in 2023-08): services, slots and intents are
renamed wherever a dialogue names them; utterances, values and spans stay. Always convert
from the original, never from a variant.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.schema import Schema, check_aligned

INTENT_ACTS = ("OFFER_INTENT", "INFORM_INTENT")


@dataclasses.dataclass(frozen=True)
class Renaming:
  """Names of one service in one schema -> names in another."""

  service: str
  slots: Mapping[str, str]
  intents: Mapping[str, str]


def renamings(source: Schema, target: Schema) -> dict[str, Renaming]:
  """Returns the renaming of every service of `source`, by its name there.

  Raises:
    SgdxError: the schemas do not align by position.
  """
  check_aligned(source, target)
  by_service = {}
  for a, b in zip(source, target, strict=True):
    # The tables are in the order of the files, by which variants align.
    slots = dict(zip(a.slot_index, b.slot_index, strict=True))
    intents = dict(zip(a.intent_index, b.intent_index, strict=True))
    by_service[a.name] = Renaming(b.name, slots, intents)
  return by_service


def convert_dialogue(dialogue: Dialogue, names: Mapping[str, Renaming]) -> Dialogue:
  """Returns the dialogue with all names of `names` replaced; unknown names stay."""
  converted = Dialogue.from_json(convert_json(dialogue.to_json(), names))
  return dataclasses.replace(converted, last_only=dialogue.last_only)


def convert_json(dialogue: Mapping[str, Any], names: Mapping[str, Renaming]) -> dict[str, Any]:
  """Returns a decoded dialogue, whose form `Dialogue.from_json` accepts, with names replaced."""
  services = [names[s].service if s in names else s for s in dialogue["services"]]
  turns = []
  for turn in dialogue["turns"]:
    frames = [_frame(frame, names.get(frame["service"])) for frame in turn["frames"]]
    turns.append({**turn, "frames": frames})
  return {**dialogue, "services": services, "turns": turns}


def _frame(frame: Mapping[str, Any], to: Renaming | None) -> Mapping[str, Any]:
  if to is None:  # a service without new names
    return frame
  # Keys that are absent, empty or unknown stay as they are, as in the official converter.
  renamed: dict[str, Any] = {**frame, "service": to.service}
  if frame.get("slots"):
    renamed["slots"] = [_with_slot(span, to) for span in frame["slots"]]
  if state := frame.get("state"):
    renamed["state"] = {
      **state,
      "active_intent": to.intents.get(state["active_intent"], state["active_intent"]),
      "requested_slots": _names(state["requested_slots"], to.slots),
      "slot_values": _keys(state["slot_values"], to.slots),
    }
  if frame.get("actions"):
    renamed["actions"] = [_action(action, to) for action in frame["actions"]]
  if call := frame.get("service_call"):
    method = to.intents.get(call["method"], call["method"])
    parameters = _keys(call["parameters"], to.slots)
    renamed["service_call"] = {**call, "method": method, "parameters": parameters}
  if frame.get("service_results"):
    renamed["service_results"] = [_keys(result, to.slots) for result in frame["service_results"]]
  return renamed


def _action(action: Mapping[str, Any], to: Renaming) -> Mapping[str, Any]:
  # Homes_2 has a real slot called "intent": only in these two acts does it mean an intent.
  if action.get("slot") == "intent" and action["act"] in INTENT_ACTS:
    renamed = dict(action)
    for key in ("values", "canonical_values"):
      if key in action:  # SGD's older files have no canonical values
        renamed[key] = _names(action[key], to.intents)
    return renamed
  return _with_slot(action, to) if "slot" in action else action


def _with_slot(item: Mapping[str, Any], to: Renaming) -> dict[str, Any]:
  return {**item, "slot": to.slots.get(item["slot"], item["slot"])}


def _names(names: Sequence[str], to: Mapping[str, str]) -> list[str]:
  return [to.get(name, name) for name in names]


def _keys(data: Mapping[str, Any], to: Mapping[str, str]) -> dict[str, Any]:
  """Renames keys into a new dict: a new name may equal another original name."""
  return {to.get(key, key): value for key, value in data.items()}
