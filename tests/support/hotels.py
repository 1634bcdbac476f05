"""Two hotel services, the same without descriptions, and a dialogue about them."""


def service(name, described=True):
  def slot(name, *values):
    text = f"the {name}" if described else ""
    return {
      "name": name,
      "description": text,
      "is_categorical": bool(values),
      "possible_values": list(values),
    }

  return {
    "service_name": name,
    "description": "hotels",
    "slots": [slot("hotel"), slot("stars", "two stars", "five stars"), slot("pool", "Yes", "No")],
    "intents": [
      {
        "name": "FindHotel",
        "description": "find one",
        "is_transactional": False,
        "required_slots": ["stars"],
        "optional_slots": {"hotel": "", "pool": "dontcare"},
      }
    ],
  }


SCHEMA = [service("Hotels_1"), service("Hotels_2")]
BARE = [service("Lodging_1", False), service("Lodging_2", False)]
OFFER = {"act": "OFFER", "slot": "hotel", "values": ["Ramada"]}
SAID = ["Five stars, please", ("The Ramada?", [OFFER]), "No, two stars"]
