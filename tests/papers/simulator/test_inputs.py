"""Services backed by SQL, and invalid files: all their problems are reported at once."""

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
from sgdx_t5x.papers.simulator.scenarios import parse_scenarios

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
    assert [r["price"] for r in backend.call(rent, call, about={"price": f"${n}"})] == [f"${n}"]
  assert len(backend.call(rent, call, about={"price": "$5"})) == 4  # there is no such row


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
    *(folder / f"{name}.json" for name in ("scenarios", "templates", "transitions")),
  )  # fmt: skip


def problems(folder, **changes):
  """The lines of the error if `changes` replace some of the files."""
  write_files(folder, files(**changes))
  with pytest.raises(SgdxError) as error:
    load(folder)
  assert error.value.exit_code == 1
  return [line.removeprefix(f"  - {folder}/") for line in error.value.found.splitlines()[1:]]


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


def test_all_problems_of_all_files_at_once(tmp_path):
  found = problems(
    tmp_path,
    **{
      "schema.json": [*SCHEMA, {**SCHEMA[1], "service_name": "Idle_1", "intents": []}],
      "scenarios.json": {
        "links": [{"from": "Boats_1.twon", "to": "Trams_1.destination"}],
        "scenarios": [
          {"intents": ["Boats_1.FindBaot"], "weight": 0},
          {"intents": [FIND] * 6, "wieght": 2},
        ],
      },
      "tables/Boats_1.csv": csv_text(BOATS).replace("town", "harbor").replace("rowing", "flying"),
      "tables/Trams_1.csv": "destination*,departure_time*,fare\n",
      "templates.json": {
        "acts": {"user": {"BYE": ["Bye."]}},
        "services": {
          "Boats_1": {
            "slots": {"twon": {"noun": ["town"]}, "town": {"tell": ["in {valeu}"]}},
            "acts": {"OFFER": ["The {boat}."]},
          }
        },
      },
      "transitions.json": {"user": {"START": {"HELLO": 1}}, "chances": {"luck": 0.5}},
    },
  )
  expected = [
    ("schema.json: Idle_1 has no intents",),
    ("scenarios.json: link 1: 'Boats_1.twon': unknown slot 'twon'; nearest: town",),
    ("scenarios.json: scenario 1: weight 0 is not a positive number",),
    (
      "scenarios.json: scenario 1: 'Boats_1.FindBaot': unknown intent 'FindBaot'",
      "nearest: FindBoat",
    ),
    ("scenarios.json: scenario 2: unknown key 'wieght'",),
    ("scenarios.json: scenario 2: 6 intents, not 1 to 5",),
    ("tables/Boats_1.csv: no column 'town', which an intent of Boats_1 takes or returns",),
    ("tables/Boats_1.csv: column 'harbor' is not a slot of Boats_1",),
    ("tables/Boats_1.csv: line 4: 'boat_type' is 'flying', not one of rowing, sailing",),
    ("tables/Boats_1.csv: line 6: 'boat_type' is 'flying'",),
    ("tables/Trams_1.csv: no rows: no intent of Trams_1 can ever succeed",),
    ("templates.json: acts.user: unknown key 'BYE'",),
    ("templates.json: services.Boats_1.slots: unknown slot 'twon'; nearest: town",),
    (
      "templates.json: services.Boats_1.slots.town.tell: 'in {valeu}'",
      "unknown placeholder {valeu}",
    ),
    ("templates.json: services.Boats_1.slots.town.tell: 'in {valeu}' lacks the placeholder",),
    (
      "templates.json: services.Boats_1.acts.OFFER: 'The {boat}.'",
      "unknown placeholder {boat}",
      "boat_name",
    ),
    ("transitions.json: user.START: unknown move 'HELLO'", "chances.luck is unknown"),
  ]
  for line, words in zip(found, expected, strict=True):
    for word in words:
      assert word in line


@pytest.mark.parametrize(
  ("name", "content", "words"),
  [
    ("scenarios.json", None, ["No such file"]),
    ("scenarios.json", "{", ["not valid JSON"]),
    ("scenarios.json", [], ["not of the form"]),
    ("scenarios.json", "null", ["not of the form"]),
    ("scenarios.json", {"scenarios": []}, ["no scenarios"]),
    ("scenarios.json", {"links": 5, "scenarios": [{"intents": [FIND]}]},
     ["links is a number, not a list"]),
    ("scenarios.json", {"scenarios": [{"intents": [5, "Boats_2.FindBoat"]}]},
     ["scenario 1: 5: unknown service", "'Boats_2.FindBoat': unknown service; nearest: Boats_1"]),
    ("scenarios.json", {"scenarios": [[FIND]]}, ["scenario 1: not of the form"]),
    ("scenarios.json", '{"scenarios": [{"intents": ["Boats_1.FindBoat"], "weight": NaN}]}',
     ["weight nan is not a positive number"]),
    ("scenarios.json", {"links": [{"from": TRAM}], "scenarios": [{"intents": [FIND]}]},
     ["link 1: not of the form"]),
    ("scenarios.json",
     {"links": [{**LINKS[0], "say": "there"}], "scenarios": [{"intents": [FIND]}]},
     ["link 1: say 'there' is not a list of strings"]),
    ("templates.json", "{,", ["not valid JSON"]),
    ("templates.json", "null", ["null, not an object"]),
    ("templates.json", {"acts": [], "services": []},
     ["acts: a list, not an object", "services: a list"]),
    ("templates.json", {"services": {"Boats_2": {}}}, ["unknown service; nearest: Boats_1"]),
    ("templates.json", {"services": {"Boats_1": {"slots": {"town": {"say": ["x"]}}}}},
     ["slots.town.say: a list, not an object"]),
    ("templates.json", {"services": {"Boats_1": {"slots": {"boat_type": {"say": {"sail": "x"}}}}}},
     ["slots.boat_type.say: unknown value 'sail'; nearest: sailing"]),
    ("templates.json", {"services": {"Boats_1": {"intents": {"RentBoat": {"do": []}}}}},
     ["RentBoat.do: not a list of non-empty strings"]),
    ("templates.json", {"services": {"Boats_1": {"acts": {"REQUEST": ["What?"]}}}},
     ["unknown act 'REQUEST'; OFFER, CONFIRM"]),
    ("templates.json", {"acts": {"system": {"OFFER": ["How about it?", "{slots} {slots}"]}}},
     ["'How about it?' lacks the placeholder", "'{slots} {slots}' contains {slots} twice"]),
    ("templates.json", {"acts": {"user": {"INFORM": ["{value!r}", "{{value}}", "{value"]}}},
     ["'{value!r}' has braces", "'{{value}}' has braces", "'{value': expected '}'"]),
    ("transitions.json", "{", ["not valid JSON"]),
    ("transitions.json", {"user": {"OFFER": {"SELECT": "often"}}}, ["no move with a weight"]),
    ("tables/Trams_1.csv", None, ["no such file", "destination,departure_time,fare"]),
    ("tables/Trams_1.csv", "", ["no column 'destination'"]),
    ("tables/Trams_1.csv", "destination;departure_time;fare\na;b;c\n", ["no column 'fare'"]),
    ("tables/Trams_1.csv", "destination,departure_time,fare,fare\na,b,c,d\n",
     ["have the same name"]),
    ("tables/Trams_1.csv", "destination,departure_time,fare\na,b\nc,,d\n",
     ["line 2: 2 cells for 3 columns", "line 3: no value of 'departure_time'"]),
    ("tables/Trams_1.csv", 'destination,departure_time,fare\n\na,b,"c\nd"\na,b\n',
     ["line 5: 2 cells for 3 columns"]),
    ("tables/Trams_1.csv", "destination,departure_time,fare\na,b,dontcare\n",
     ["line 2: 'fare' is 'dontcare'"]),
    ("tables/Trams_1.csv", 'destination,departure_time,fare\na,b,"c\n', ["not a CSV file"]),
  ],
)  # fmt: skip
def test_one_file_is_wrong(tmp_path, name, content, words):
  found = problems(tmp_path, **{name: content})
  assert all(line.startswith(name) for line in found)
  for word in words:
    assert sum(word in line for line in found) == 1, found


@pytest.mark.parametrize(
  ("name", "content", "words"),
  [
    ("schema.json", "[", ["not valid JSON"]),
    ("schema.json", {}, ["the top-level JSON value is an object"]),
    ("schema.json", None, ["No such file"]),
    ("schema.json", [{**SCHEMA[0], "slots": []}], ["FindBoat", "unknown slot 'town'"]),
  ],
)
def test_without_a_schema_nothing_can_be_checked(tmp_path, name, content, words):
  write_files(tmp_path, files(**{name: content}))
  with pytest.raises(SgdxError) as error:
    load(tmp_path)
  for word in words:
    assert word in error.value.found


def test_a_table_that_is_not_utf8(tmp_path):
  write_files(tmp_path, files())
  (tmp_path / "tables/Trams_1.csv").write_bytes("destination,Gebühr\n".encode("latin-1"))
  with pytest.raises(SgdxError, match=r"Trams_1.csv: not a CSV file in UTF-8"):
    load(tmp_path)


def test_intents_that_can_never_be_satisfied(tmp_path):
  # Two guests are RentBoat's default, but no boat is for two.
  boats = csv_text(BOATS).replace("guests*", "guests").replace(",2,$", ",1,$")
  assert problems(tmp_path, **{"tables/Boats_1.csv": boats}) == [
    "  - Boats_1.RentBoat can never succeed with its default: no row of Boats_1.csv has "
    "guests '2'; add one, or make the column open (guests*)"
  ]


@pytest.mark.parametrize(
  ("default", "words"),
  [("", "the default of guests is empty"), ("two", "the default 'two' of guests is not one of")],
)
def test_defaults_that_cannot_be_confirmed(tmp_path, default, words):
  schema = copy.deepcopy(SCHEMA)
  (guests,) = [s for s in schema[0]["slots"] if s["name"] == "guests"]
  guests |= {"is_categorical": True, "possible_values": ["1", "2"]}
  schema[0]["intents"][1]["optional_slots"]["guests"] = default
  found = problems(tmp_path, **{"schema.json": schema})
  assert any(f"Boats_1.RentBoat: {words}" in line for line in found)


def test_a_services_name_may_have_dots(tmp_path):
  schema = parse_schema([{**SCHEMA[0], "service_name": "Boats.v1"}], "schema")
  found = []
  data = {"scenarios": [{"intents": ["Boats.v1.FindBoat"]}]}
  (scenario,) = parse_scenarios(data, schema, "s", found)
  assert (found, scenario.services) == ([], ("Boats.v1",))


def test_links_that_can_never_hold(tmp_path):
  trams = "destination,departure_time*,fare\nRome,09:15,$3\n"
  (found,) = problems(tmp_path, **{"tables/Trams_1.csv": trams})
  assert "link Boats_1.town -> Trams_1.destination can never be used" in found
  load(write_files(tmp_path, files(**{"tables/Trams_1.csv": trams.replace("Rome", "Elmport")})))


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
  (found,) = problems(tmp_path, **{"schema.json": schema})
  assert words in found
  scenarios = {"scenarios": [{"intents": [RENT]}, {"intents": [TRAM]}]}
  load(write_files(tmp_path, files(**{"schema.json": schema, "scenarios.json": scenarios})))


def test_services_that_no_scenario_names_need_no_table(tmp_path):
  scenarios = {"scenarios": [{"intents": [FIND]}]}
  content = files(**{"scenarios.json": scenarios, "tables/Trams_1.csv": None})
  made = load(write_files(tmp_path, content))
  assert set(made.tables) == {"Boats_1"}


def test_many_problems_are_counted(tmp_path):
  rows = "".join(f"{n},{n},\n" for n in range(100))
  found = problems(tmp_path, **{"tables/Trams_1.csv": f"destination,departure_time,fare\n{rows}"})
  assert len(found) == 31
  assert "line 31: no value of 'fare'" in found[29]
  assert found[30] == "  - ... and 70 more"
