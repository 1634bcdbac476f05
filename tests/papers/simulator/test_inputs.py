"""Services with their tables, and invalid files."""

import copy
import random

import pytest
from boat_schema import intent, slot
from boats import BOATS, FIND, LINKS, RENT, SCHEMA, TRAM, csv_text, files, simulation, write_files

from sgdx_t5x.corpus.schema import parse_schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.simulator.backend import MAX_RESULTS, Backend, ServiceTable
from sgdx_t5x.papers.simulator.generate import simulate
from sgdx_t5x.papers.simulator.load import load_simulation
from sgdx_t5x.papers.simulator.scenarios import ScenarioEntry, ScenarioFile, parse_scenarios

# --- services ----------------------------------------------------------------------------------


@pytest.fixture
def boats():
  return simulation().backends["Boats_1"]


def names(results):
  return [result["boat_name"] for result in results]


def test_results_have_the_callers_values(boats):
  find, rent = boats.service.intents
  found = boats.call(find, {"town": "Elmport", "boat_type": "sailing"})
  assert sorted(names(found)) == ["Heron", "Tern"]
  assert [r for r in found if r["boat_name"] == "Tern"] == [
    {"boat_name": "Tern", "town": "Elmport", "boat_type": "sailing", "has_cabin": "False",
     "price": "$30"}
  ]  # fmt: skip
  call = {"town": "Elmport", "boat_type": "sailing", "has_cabin": "True"}
  assert names(boats.call(find, call)) == ["Heron"]
  assert names(boats.call(find, {**call, "boat_type": "rowing"})) == []
  # The day and the guests are up to the caller: there is a boat for any of them.
  call = {"boat_name": "Swan", "rental_date": "2031-01-01", "guests": "1"}
  assert boats.call(rent, call) == [{**call, "price": "$12"}]
  assert boats.call(rent, {**call, "boat_name": "Gull"}) == []


def test_what_callers_do_not_mind_matches_all(boats):
  find, _ = boats.service.intents
  call = {"town": "Elmport", "boat_type": "dontcare", "has_cabin": "dontcare"}
  assert sorted(names(boats.call(find, call))) == ["Heron", "Swan", "Tern"]


@pytest.mark.parametrize("given", [{}, {"town": "Elmport"}, {"boat_type": "sailing"}])
def test_calls_need_all_required_slots(boats, given):
  find, _ = boats.service.intents
  with pytest.raises(ValueError, match=r"Boats_1\.FindBoat called without"):
    boats.call(find, given)


def test_a_call_about_a_result_gets_it_first(boats):
  """Of boats with the same name, the one that was talked about is rented."""
  rows = tuple(("Heron", "Elmport", "sailing", "True", "2019-03-05", "2", f"${n}") for n in "1234")
  backend = Backend(boats.service, ServiceTable(BOATS.columns, BOATS.open, rows))
  _, rent = backend.service.intents
  call = {"boat_name": "Heron", "rental_date": "2019-03-09"}
  for n in "1234":
    assert [r["price"] for r in backend.call(rent, call, earlier={"price": f"${n}"})] == [f"${n}"]
  assert len(backend.call(rent, call, earlier={"price": "$5"})) == 4  # there is no such row


def test_at_most_ten_results_in_table_order_from_a_start_of_the_calls_own(boats):
  rows = tuple(
    (f"{town} {n:02}", town, "sailing", "True", "2019-03-05", "2", "$1")
    for n in range(40)
    for town in "ABCDEFGH"
  )
  backend = Backend(boats.service, ServiceTable(BOATS.columns, BOATS.open, rows))
  find, _ = backend.service.intents
  starts = set()
  for town in "ABCDEFGH":
    call = {"town": town, "boat_type": "sailing"}
    found = names(backend.call(find, call))
    assert found == names(backend.call(find, call))
    assert len(set(found)) == MAX_RESULTS == 10
    numbers = [int(name.split()[1]) for name in found]
    assert all(name.startswith(town) for name in found)
    assert numbers == [(numbers[0] + i) % 40 for i in range(10)]
    starts.add(numbers[0])
  assert len(starts) > 4
  rng = random.Random(0)
  assert {backend.row(rng, {"town": "A"})["town"] for _ in range(9)} == {"A"}
  assert backend.row(rng, {"town": "Z"}) is None


def test_slots_may_have_any_name():
  schema = copy.deepcopy(SCHEMA)
  schema[1]["slots"] = [slot('a "b" c'), slot("select"), slot("id")]
  schema[1]["intents"] = [intent("Buy", True, ['a "b" c', "id"], {}, ["select"])]
  trams = ServiceTable(('a "b" c', "select", "id"), frozenset(), (("x", "'; DROP TABLE t", "7"),))
  backend = simulation((FIND,), schema=schema, trams=trams, links=[]).backends["Trams_1"]
  assert backend.call(backend.service.intents[0], {'a "b" c': "x", "id": "7"}) == [
    {"select": "'; DROP TABLE t"}
  ]


# --- files -------------------------------------------------------------------------------------


def load(folder):
  return load_simulation(
    folder / "schema.json", folder / "tables",
    *(folder / f"{name}.json" for name in ("scenarios", "templates")),
  )  # fmt: skip


def test_files_make_the_same_simulation_as_objects(tmp_path):
  made = load(write_files(tmp_path, files()))
  numbers = range(20)
  assert list(simulate(made, numbers=numbers, seed="s")) == list(
    simulate(simulation(), numbers=numbers, seed="s")
  )


def test_tables_as_spreadsheets_write_them(tmp_path):
  """A byte order mark, blanks, quotes, blank lines, CRLF, columns in another order."""
  table = '\ufeffdeparture_time* ,"fare",destination*\r\n09:15, $3 ,"Hill, 12"\r\n\r\n'
  made = load(write_files(tmp_path, files(**{"tables/Trams_1.csv": table})))
  assert made.tables["Trams_1"] == ServiceTable(
    ("departure_time", "fare", "destination"),
    frozenset({"departure_time", "destination"}),
    (("09:15", "$3", "Hill, 12"),),
  )


BOAT_SLOTS = {"town": {"say": ["x"]}}


@pytest.mark.parametrize(
  ("name", "content", "words"),
  [
    ("scenarios.json", None, "no file at"),
    ("scenarios.json", "{", "truncated"),
    ("scenarios.json", [], "Expected `object`, got `array`"),
    ("scenarios.json", {"scenarios": []}, "length >= 1"),
    ("scenarios.json", {"scenarios": [{"intents": [FIND] * 6}]}, "length <= 5"),
    ("scenarios.json", {"scenarios": [{"intents": [FIND], "wieght": 2}]}, "`wieght`"),
    ("scenarios.json", {"scenarios": [{"intents": [FIND], "weight": 0}]}, "> 0.0"),
    ("scenarios.json", {"scenarios": [{"intents": ["Boats_1.FindBaot"]}]}, "unknown intent"),
    ("scenarios.json", {"scenarios": [{"intents": ["Boats_2.FindBoat"]}]}, "unknown service"),
    ("scenarios.json", {"links": [{"from": TRAM}], "scenarios": [{"intents": [FIND]}]}, "`to`"),
    ("scenarios.json",
     {"links": [{**LINKS[0], "from": "Boats_1.twon"}], "scenarios": [{"intents": [FIND]}]},
     "'Boats_1.twon': unknown slot"),
    ("templates.json", "{,", "malformed"),
    ("templates.json", {"services": {"Boats_2": {}}}, "unknown name 'Boats_2'"),
    ("templates.json", {"services": {"Boats_1": {"slots": BOAT_SLOTS}}}, "slots[...].say"),
    ("templates.json", {"services": {"Boats_1": {"intents": {"RentBoat": {"do": []}}}}}, ">= 1"),
    ("templates.json", {"services": {"Boats_1": {"slots": {"town": {"tell": ["in {valeu}"]}}}}},
     "services.Boats_1.slots.town.tell: 'in {valeu}'"),
    ("templates.json", {"services": {"Boats_1": {"slots": {"town": {"noun": ["town {value}"]}}}}},
     "services.Boats_1.slots.town.noun: 'town {value}'"),
    ("templates.json", {"services": {"Boats_1": {"intents": {"FindBoat": {"do": ["go {x}"]}}}}},
     "services.Boats_1.intents.FindBoat.do: 'go {x}'"),
    ("templates.json", {"services": {"Boats_1": {"slots": {"has_cabin": {"say": {"true": "w"}}}}}},
     "services.Boats_1.slots.has_cabin.say: unknown name 'true'"),
    ("templates.json", {"services": {"Boats_1": {"slots": {"town": {"say": {"Elmport": ""}}}}}},
     "length >= 1"),
    ("tables/Trams_1.csv", None, "no file at"),
    ("tables/Trams_1.csv", "", "0 rows"),
    ("tables/Trams_1.csv", "destination;departure_time;fare\na;b;c\n", "with the columns dest"),
    ("tables/Trams_1.csv", "destination,departure_time,fare,fare\na,b,c,d\n", "fare, fare"),
    ("tables/Trams_1.csv", "destination,departure_time,fare\na,b\n", "2 cells for 3 columns"),
    ("tables/Trams_1.csv", "destination,departure_time,fare\nc,,d\n", "'' of departure_time"),
    ("tables/Trams_1.csv", "destination,departure_time,fare\na,b,dontcare\n", "'dontcare'"),
    ("tables/Boats_1.csv", csv_text(BOATS).replace("rowing", "flying"), "'flying' of boat_type"),
    ("tables/Trams_1.csv", 'destination,departure_time,fare\na,b,"c\n', "unexpected end"),
    ("tables/Trams_1.csv", "destination,Geb\xfchr\n".encode("latin-1"), "can't decode byte 0xfc"),
    ("schema.json", "[", "not valid JSON"),
    ("schema.json", None, "no file at"),
    ("schema.json", [{**SCHEMA[0], "slots": []}], "unknown slot 'town'"),
  ],
)  # fmt: skip
def test_one_file_is_wrong(tmp_path, name, content, words):
  write_files(tmp_path, files())
  (tmp_path / name).unlink()
  if isinstance(content, bytes):
    (tmp_path / name).write_bytes(content)
  else:
    write_files(tmp_path, {name: content})
  with pytest.raises(SgdxError) as error:
    load(tmp_path)
  assert name in error.value.found
  assert words in str(error.value)


def test_a_services_name_may_have_dots():
  schema = parse_schema([{**SCHEMA[0], "service_name": "Boats.v1"}], "schema")
  (scenario,) = parse_scenarios(
    ScenarioFile([ScenarioEntry(["Boats.v1.FindBoat"])]), schema, "scenarios.json"
  )
  assert scenario.services == ("Boats.v1",)


@pytest.mark.parametrize(
  ("changes", "words"),
  [
    ({"result_slots": []}, "FindBoat: a search without result_slots returns nothing"),
    ({"is_transactional": True, "required_slots": []}, "FindBoat: a transaction needs"),
  ],
)
def test_intents_that_nobody_can_use(tmp_path, changes, words):
  schema = copy.deepcopy(SCHEMA)
  schema[0]["intents"][0].update(changes)
  write_files(tmp_path, files(**{"schema.json": schema}))
  with pytest.raises(SgdxError, match=words):
    load(tmp_path)
  scenarios = {"scenarios": [{"intents": [RENT]}, {"intents": [TRAM]}]}
  load(write_files(tmp_path, {"scenarios.json": scenarios}))


def test_examples_in_a_schema_do_not_limit_what_is_said(tmp_path):
  """Regression: of a slot that is not categorical, only listed values could have another form."""
  schema = copy.deepcopy(SCHEMA)
  schema[0]["slots"][1]["possible_values"] = ["Oakham"]
  words = {"services": {"Boats_1": {"slots": {"town": {"say": {"New York": "the Big Apple"}}}}}}
  made = load(write_files(tmp_path, files(**{"schema.json": schema, "templates.json": words})))
  assert made.words["Boats_1"].slots["town"].say == {"New York": ("the Big Apple",)}


def test_services_that_no_scenario_names_need_no_table(tmp_path):
  scenarios = {"scenarios": [{"intents": [FIND]}]}
  content = files(**{"scenarios.json": scenarios, "tables/Trams_1.csv": None})
  made = load(write_files(tmp_path, content))
  assert set(made.tables) == {"Boats_1"}
