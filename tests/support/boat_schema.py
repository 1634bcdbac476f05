"""Two small handwritten services, and a dialogue with them."""

import json
from typing import Any

from places import FIXTURES


def slot(name: str, *values: str) -> dict[str, Any]:
  return {
    "name": name,
    "description": f"The {name.replace('_', ' ')}",
    "is_categorical": bool(values),
    "possible_values": list(values),
  }


def intent(name, is_transactional, required, optional, results) -> dict[str, Any]:
  return {
    "name": name,
    "description": name,
    "is_transactional": is_transactional,
    "required_slots": required,
    "optional_slots": optional,
    "result_slots": results,
  }


BOAT_SLOTS = ["boat_name", "town", "boat_type", "has_cabin", "rental_date", "guests", "price"]
SCHEMA = [
  {
    "service_name": "Boats_1",
    "description": "Find and rent boats",
    "slots": [
      slot("boat_name"), slot("town"), slot("boat_type", "rowing", "sailing"),
      slot("has_cabin", "True", "False"), slot("rental_date"), slot("guests", "1", "2", "3"),
      slot("price"),
    ],
    "intents": [
      intent("FindBoat", False, ["town", "boat_type"], {"has_cabin": "dontcare"},
             ["boat_name", "town", "boat_type", "has_cabin", "price"]),
      intent("RentBoat", True, ["boat_name", "rental_date"], {"guests": "2"},
             ["boat_name", "rental_date", "guests", "price"]),
    ],
  },
  {
    "service_name": "Trams_1",
    "description": "Tickets for trams",
    "slots": [slot("destination"), slot("departure_time"), slot("fare")],
    "intents": [
      intent("BuyTicket", True, ["destination", "departure_time"], {},
             ["destination", "departure_time", "fare"]),
    ],
  },
]  # fmt: skip


def dialogue() -> dict[str, Any]:
  """Returns a short dialogue with a search, a transaction and results, as recorded.

  It is the shortest of `simulate(boats.simulation((boats.FIND, boats.RENT)), numbers=range(40),
  seed="s")`, of the annex of the simulator.
  """
  return json.loads((FIXTURES / "boat_dialogue.json").read_text())
