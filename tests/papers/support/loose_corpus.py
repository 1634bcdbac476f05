"""Small corpora that are annotated as loosely as some outside SGD: our own invention.

Values differ in case, white space or form of a time, contain one another, are carried to later
turns and other services, and often have no span; some are never said.
"""

import copy
import json
import pathlib
import random
from typing import Any

NAMES = (
  "Alder House", "alder house", "ALDER HOUSE", "Alder  House", "Alder", "House", "North",
  "north star", "İstanbul", "i̇stanbul", "Straße", "STRASSE", "straße", "Us", "us", "The Elm Tree",
  "elm tree", "Centre", "12", "5 Alder Road", "alder house hotel", "SÃO", "São",
)  # fmt: skip
TIMES = ("20:00", "8pm", "8 pm", "8 PM", "8:00 pm")
AREAS = ("north", "centre", "Alder")
_SLOTS = (
  ("Lodging", "hotel_name", NAMES), ("Lodging", "city", NAMES), ("Lodging", "note", NAMES),
  ("Lodging", "check_in", TIMES), ("Lodging", "area", AREAS),
  ("Cab", "destination", NAMES), ("Cab", "leave_at", TIMES),
)  # fmt: skip
_DESCRIPTIONS = {"leave_at": "time of departure", "check_in": "time of arrival"}


def write_corpus(folder: pathlib.Path, dialogues: list[dict[str, Any]]) -> pathlib.Path:
  """Writes dialogues of the services Lodging and Cab as a corpus with a split test."""
  (folder / "test").mkdir(parents=True)
  schema = [_service(name) for name in ("Lodging", "Cab")]
  (folder / "test/schema.json").write_text(json.dumps(schema))
  (folder / "test/dialogues_001.json").write_text(json.dumps(dialogues))
  return folder


def _service(name: str) -> dict[str, Any]:
  slots = [
    {"name": slot, "description": _DESCRIPTIONS.get(slot, slot), "is_categorical": slot == "area",
     "possible_values": list(AREAS) if slot == "area" else []}
    for service, slot, _ in _SLOTS if service == name
  ]  # fmt: skip
  optional = {slot["name"]: "dontcare" for slot in slots}
  intent = {
    "name": "Find", "description": "find one", "is_transactional": False, "required_slots": [],
    "optional_slots": optional, "result_slots": [],
  }  # fmt: skip
  return {"service_name": name, "description": name, "slots": slots, "intents": [intent]}


def frame(service: str, slot_values: dict, text: str = "", spans: tuple = ()) -> dict[str, Any]:
  """Returns a user frame. Args: spans, pairs of a slot and its value in the text."""
  slots = [
    {"slot": slot, "start": text.index(value), "exclusive_end": text.index(value) + len(value)}
    for slot, value in spans
  ]
  state = {"active_intent": "NONE", "requested_slots": [], "slot_values": slot_values}
  return {"service": service, "slots": slots, "actions": [], "state": state}


def user(text: str, *frames: dict) -> dict[str, Any]:
  """Returns a user turn."""
  return {"speaker": "USER", "utterance": text, "frames": list(frames)}


def system(text: str) -> dict[str, Any]:
  """Returns a system turn without annotation."""
  frames = [{"service": "Lodging", "actions": [], "slots": []}]
  return {"speaker": "SYSTEM", "utterance": text, "frames": frames}


def dialogue(name: str, *turns: dict) -> dict[str, Any]:
  """Returns a dialogue of both services."""
  return {"dialogue_id": name, "services": ["Lodging", "Cab"], "turns": list(turns)}


def random_dialogue(name: str, rng: random.Random) -> dict[str, Any]:
  """Returns a dialogue of one to four user turns."""
  turns, state = [], {"Lodging": {}, "Cab": {}}
  for _ in range(rng.randint(1, 4)):
    pieces = []  # (service, slot, text); service "" for other words
    for _ in range(rng.randint(1, 4)):
      service, slot, pool = rng.choice(_SLOTS)
      values = _values(rng, slot, pool, state)
      state[service][slot] = values
      pieces += [
        (service, slot, rng.choice((value, value, value.upper(), value.lower())))
        for value in values
        if rng.random() < 0.6
      ]
      pieces.append(("", "", rng.choice(("please", "I want", "and the", "House", "north"))))
    rng.shuffle(pieces)
    turns.append(_user_turn(rng, pieces, state))
    turns.append(system(f"There is {rng.choice((*NAMES, *TIMES, *AREAS))}."))
  return dialogue(name, *turns)


def _values(rng: random.Random, slot: str, pool: tuple[str, ...], state: dict) -> list[str]:
  if slot == "area":
    return [rng.choice(pool)]
  earlier = [
    value
    for slot_values in state.values()
    for values in slot_values.values()
    for value in values
    if value in pool
  ]
  if earlier and rng.random() < 0.3:
    value = rng.choice(earlier)
    return [value, value.swapcase()] if value.swapcase() != value else [value]
  return rng.sample(pool, rng.choice((1, 1, 2, 3)))


def _user_turn(rng: random.Random, pieces: list[tuple[str, str, str]], state: dict) -> dict:
  text, spans = "", {"Lodging": [], "Cab": []}
  for service, slot, words in pieces:
    start = len(text)
    text += f"{words} "
    if service and slot != "area" and words in state[service][slot] and rng.random() < 0.4:
      span = {"slot": slot, "start": start, "exclusive_end": start + len(words)}
      spans[service].append(span)
  frames = [frame(name, copy.deepcopy(values)) for name, values in state.items()]
  for each in frames:
    each["slots"] = spans[each["service"]]
  return user(f"{text}.", *frames)
