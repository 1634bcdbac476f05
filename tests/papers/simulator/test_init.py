"""A starting point from a schema alone: kinds, words, tables in which searches find results."""

import copy
import json
import random
import re

import pytest

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import DONTCARE, Intent, Schema, Slot, parse_schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.simulator.backend import Backend
from sgdx_t5x.papers.simulator.default_words import (
  default_intent_words,
  default_slot_words,
  slot_kind,
)
from sgdx_t5x.papers.simulator.load import load_simulation
from sgdx_t5x.papers.simulator.starting_point import (
  make_table,
  open_slots,
  starting_point,
  write_starting_point,
)

BOATS = {
  "service_name": "Boats_1",
  "description": "Find and rent boats",
  "slots": [
    {"name": "boat_name", "description": "Name of the boat", "is_categorical": False},
    {"name": "from_lake", "description": "Town where the trip starts", "is_categorical": False},
    {"name": "to_lake", "description": "Town where the trip ends", "is_categorical": False},
    {"name": "rental_date", "description": "Day of the rental", "is_categorical": False},
    {
      "name": "boat_type",
      "description": "Type of the boat",
      "is_categorical": True,
      "possible_values": ["rowing", "sailing"],
    },
    {
      "name": "has_cabin",
      "description": "Whether the boat has a cabin",
      "is_categorical": True,
      "possible_values": ["True", "False"],
    },
    {
      "name": "num_guests",
      "description": "How many come along",
      "is_categorical": True,
      "possible_values": ["1", "2", "3"],
    },
    {"name": "day_rate", "description": "Price of a day", "is_categorical": False},
    {"name": "color", "description": "Nothing uses it", "is_categorical": False},
  ],
  "intents": [
    {
      "name": "FindBoat",
      "description": "Find a boat for a trip",
      "is_transactional": False,
      "required_slots": ["from_lake", "to_lake", "rental_date"],
      "optional_slots": {"boat_type": "rowing", "has_cabin": "dontcare"},
      "result_slots": ["boat_name", "from_lake", "to_lake", "boat_type", "has_cabin", "day_rate"],
    },
    {
      "name": "RentBoat",
      "description": "Rent the boat",
      "is_transactional": True,
      "required_slots": ["boat_name", "rental_date"],
      "optional_slots": {"num_guests": "2"},
      "result_slots": ["boat_name", "rental_date", "num_guests", "day_rate"],
    },
  ],
}


def schema_of(*services) -> Schema:
  return parse_schema([copy.deepcopy(service) for service in services], "schema.json")


@pytest.fixture(scope="module")
def boats():
  return schema_of(BOATS)


def slot(name: str, description: str = "", values: tuple[str, ...] = ()) -> Slot:
  return Slot(name, description, bool(values), values)


@pytest.mark.parametrize(
  ("name", "description", "kind"),
  [
    ("date_of_visit", "", "date"),
    ("check_in_date", "", "date"),
    ("number_of_days", "", "count"),
    ("passenger_count", "", "count"),
    ("phone_number", "", "phone"),
    ("wait_time", "", "duration"),
    ("startTime", "", "time"),
    ("price_per_night", "", "price"),
    ("to_town", "", "city"),
    ("location", "Where the hotel is", "city"),
    ("pickup_location", "Where to pick it up", "address"),
    ("city_of_event", "", "city"),
    ("written_by", "", "person"),
    ("guide_name", "", "person"),
    ("ferry_name", "", "title"),
    ("leader", "Name of the teacher of the class", "person"),
    ("chance_of_rain", "Chance of rain in percent", "number"),
    ("thing", "No idea", "title"),
    ("_", "", "title"),
  ],
)
def test_kinds_are_guessed_by_name_then_description(name, description, kind):
  assert slot_kind(slot(name, description)) == kind


def test_categorical_slots_are_of_their_values():
  assert slot_kind(slot("visit_date", "", ("today", "tomorrow"))) == "category"
  assert slot_kind(slot("visit_date", "", ("True", "False"))) == "boolean"
  # Regression: a category, said as "with the has cabin True".
  assert slot_kind(slot("has_cabin", "", ("True", "False", DONTCARE))) == "boolean"


def test_words_of_slots():
  words = default_slot_words(slot("departure_date"))
  assert words["noun"] == ["departure date"]
  assert "leaving on {value}" in words["tell"]
  words = default_slot_words(slot("number_of_seats"))
  assert words["ask"][0] == "How many seats?"
  words = default_slot_words(slot("museum_name"))
  assert words["noun"] == ["museum name", "museum"]
  assert "Which museum would you like?" in words["ask"]


@pytest.mark.parametrize(
  ("name", "description", "yes", "no"),
  [
    ("has_cabin", "Whether it has a cabin", "with a cabin", "without a cabin"),
    ("add_insurance", "", "with insurance", "without insurance"),
    ("is_heated", "", "that is heated", "that is not heated"),
    ("refundable", "", "that is refundable", "that is not refundable"),
    ("allows_dogs", "", "that allows dogs", "that does not allow dogs"),
  ],
)
def test_booleans_are_said_in_words(name, description, yes, no):
  words = default_slot_words(slot(name, description, ("True", "False")))
  assert words["say"] == {"True": [yes], "False": [no]}


@pytest.mark.parametrize(
  ("name", "description", "do"),
  [
    ("FindRestaurants", "", ["find restaurants"]),
    ("BookFerry", "Reserve a seat on a ferry", ["book a ferry", "reserve a seat"]),
    ("SearchHotel", "", ["search for a hotel"]),
    ("CheckBalance", "Get the balance", ["check the balance", "get the balance"]),
    ("EnrollInClass", "", ["enroll in a class"]),
    ("FindHomeByArea", "", ["find a home"]),
    ("GetWeather", "", ["get weather"]),
  ],
)
def test_words_of_intents(name, description, do):
  words = default_intent_words(Intent(name, description, False, (), {}, ()))
  assert words["do"] == do
  assert f"I want to {words['do'][0]}" in words["open"]


def test_open_slots_are_those_that_callers_decide(boats):
  # The date and the number of guests. The boat type has a default, but of a search: it is matched,
  # as the service has boats of either type.
  assert open_slots(boats["Boats_1"]) == {"rental_date", "num_guests"}
  rides = copy.deepcopy(BOATS)
  rides["intents"] = rides["intents"][1:]  # no search: nothing to choose from
  assert open_slots(schema_of(rides)["Boats_1"]) == {"boat_name", "rental_date", "num_guests"}


def test_searches_find_several_results_with_defaults_too(boats):
  service = boats["Boats_1"]
  table = make_table(service)
  assert "color" not in table.columns
  assert len(table.rows) == 200
  names, starts, ends = ([row[i] for row in table.rows] for i in range(3))
  assert len(set(names)) == 200
  assert all(a != b for a, b in zip(starts, ends, strict=True))
  backend = Backend(service, table)
  search = service.intents[0]
  for start, end in set(zip(starts, ends, strict=True)):
    call = {"from_lake": start, "to_lake": end, "rental_date": "2031-01-01", "boat_type": "rowing"}
    assert len(backend.call(search, call)) >= 2


def test_dates_of_a_row_are_in_order():
  stays = copy.deepcopy(BOATS)
  stays["slots"].append({**BOATS["slots"][3], "name": "return_date"})
  stays["intents"][1]["required_slots"].append("return_date")
  table = make_table(schema_of(stays)["Boats_1"])
  first, last = (table.columns.index(name) for name in ("rental_date", "return_date"))
  assert all(row[first] <= row[last] for row in table.rows)


def test_seeds(boats):
  assert starting_point(boats, 1) == starting_point(boats, 1)
  assert starting_point(boats, 1) != starting_point(boats, 2)


def check_readable(folder, schema):
  """Reads a starting point as the simulator does."""
  (folder / "schema.json").write_text(json.dumps(schema.to_json()))
  made = load_simulation(
    folder / "schema.json",
    folder / "tables",
    folder / "scenarios.json",
    folder / "templates.json",
  )
  alone = {
    (s.steps[0].service.name, s.steps[0].intent.name) for s in made.scenarios if len(s.steps) == 1
  }
  assert alone == {(service.name, i.name) for service in schema for i in service.intents}
  assert set(made.words) == set(schema.names)


def test_files_are_what_the_simulator_reads(boats, tmp_path):
  names = write_starting_point(boats, tmp_path / "start", 3)
  assert names == ["tables/Boats_1.csv", "scenarios.json", "templates.json"]
  header = (tmp_path / "start/tables/Boats_1.csv").read_text().splitlines()[0]
  assert (
    header == "boat_name,from_lake,to_lake,rental_date*,boat_type,has_cabin,num_guests*,day_rate"
  )
  check_readable(tmp_path / "start", boats)
  intents = [
    s["intents"] for s in json.loads((tmp_path / "start/scenarios.json").read_text())["scenarios"]
  ]
  assert ["Boats_1.FindBoat", "Boats_1.RentBoat"] in intents


def test_nothing_is_overwritten_and_nothing_is_left(boats, tmp_path):
  (tmp_path / "start").mkdir()
  (tmp_path / "start/mine.txt").write_text("mine")
  with pytest.raises(SgdxError, match="already exists and is not empty"):
    write_starting_point(boats, tmp_path / "start")
  with pytest.raises(SgdxError, match=r"fix:"):
    write_starting_point(boats, tmp_path / "start/mine.txt/below")
  assert [path.name for path in tmp_path.rglob("*")] == ["start", "mine.txt"]


def test_schemas_without_a_table_are_refused(tmp_path):
  without_values, starred = copy.deepcopy(BOATS), copy.deepcopy(BOATS)
  without_values["slots"][4]["possible_values"] = []
  starred["slots"][8]["name"] = "color*"
  for services, found in (
    ([without_values], "'boat_type': categorical"),
    ([starred], "color*: not the name of a column"),
    ([{**BOATS, "service_name": "Idle_1", "intents": []}], "Idle_1: no intents"),
    ([{**BOATS, "service_name": "a/b"}], "'a/b': not a valid file name"),
    ([], "no services"),
  ):
    with pytest.raises(SgdxError, match=re.escape(found)):
      write_starting_point(schema_of(*services), tmp_path / "start")
  assert list(tmp_path.iterdir()) == []


def test_odd_schemas_get_files_that_fit(tmp_path):
  odd = copy.deepcopy(BOATS)
  odd["service_name"] = "Boats.v1"
  odd["slots"][4]["possible_values"] += [DONTCARE]
  odd["intents"][0] |= {"name": "_", "description": ""}
  long = "GetCurrentUserAccountBalanceAndRecentTransactionHistorySummaryReportDetails"
  odd["intents"][1] |= {"name": long, "description": ""}
  schema = schema_of(odd)
  write_starting_point(schema, tmp_path / "start")
  check_readable(tmp_path / "start", schema)
  assert DONTCARE not in (tmp_path / "start/tables/Boats.v1.csv").read_text()


def test_many_searches_of_their_own_slots():
  """12 ** 9 combinations of values, which once were all made."""
  names = [f"thing_{i}" for i in range(9)]
  searches = [
    {"name": f"Find{i}", "description": "", "is_transactional": False, "required_slots": [name],
     "optional_slots": {}, "result_slots": [name]}
    for i, name in enumerate(names)
  ]  # fmt: skip
  slots = [{"name": name, "description": "", "is_categorical": False} for name in names]
  schema = schema_of({**BOATS, "slots": slots, "intents": searches})
  backend = Backend(schema.services[0], make_table(schema.services[0]))
  row = backend.row(random.Random(0), {})
  for name, intent in zip(names, schema.services[0].intents, strict=True):
    assert backend.call(intent, {name: row[name]})


@pytest.fixture(scope="module", params=["train", "dev", "test"])
def real_schema(request, real_archive):
  return open_corpus(str(real_archive)).schema(request.param)


# Suffixes of SGD's slot names and the kind they must have, unless the name is an exception.
ENDS = {
  "_date": "date", "date": "date", "_time": "time", "phone_number": "phone", "address": "address",
  "city": "city", "price": "price", "fare": "price", "director": "person", "artist": "person",
  "number_of_days": "count", "_station": "station", "rating": "rating", "genre": "style",
  "restaurant_name": "title", "song_name": "title", "doctor_name": "person", "amount": "price",
}  # fmt: skip
EXCEPTIONS = {"wait_time": "duration", "transfer_time": "count", "percent_rating": "number"}


@pytest.mark.real
def test_kinds_of_sgd(real_schema):
  wrong, num_checked = [], 0
  for service in real_schema:
    for one in service.slots:
      ends = [kind for end, kind in ENDS.items() if one.name.endswith(end)]
      if one.is_categorical or not ends:
        continue
      num_checked += 1
      if slot_kind(one) != EXCEPTIONS.get(one.name, ends[0]):
        wrong.append((service.name, one.name, slot_kind(one)))
  assert wrong == []
  assert num_checked > 40


@pytest.mark.real
def test_a_starting_point_for_sgd(real_schema, tmp_path):
  write_starting_point(real_schema, tmp_path / "start")
  check_readable(tmp_path / "start", real_schema)
  rng = random.Random(0)
  for service in real_schema:
    backend = Backend(service, make_table(service))
    for intent in service.intents:
      for _ in range(20):
        row = backend.row(rng, {})
        call = {name: row[name] for name in intent.required_slots}
        call |= {s: v for s, v in intent.optional_slots.items() if v != DONTCARE}
        fewest = 1 if intent.is_transactional else 2
        assert len(backend.call(intent, call)) >= fewest, (service.name, intent.name, call)


@pytest.mark.real
def test_words_for_sgd_read_like_text(real_schema):
  for service in real_schema:
    words = [default_slot_words(one) for one in service.slots]
    phrases = [p for w in words for part in ("noun", "tell", "ask") for p in w[part]]
    for intent in service.intents:
      phrases += [p for part in default_intent_words(intent).values() for p in part]
    for phrase in phrases:
      assert not re.search(r"  |_|^ | $|\ba [aei]|\bthe the\b", phrase), phrase
