"""How things are said: forms of values, templates, spans."""

import random

import pytest
from boat_schema import intent, slot
from boats import FIND, RENT, SCHEMA, TRAM, simulation

from sgdx_t5x.corpus.annotation import validate_annotation
from sgdx_t5x.corpus.dialogue import USER
from sgdx_t5x.papers.simulator.acts import Act, FrameOutline, TurnOutline
from sgdx_t5x.papers.simulator.backend import ServiceTable
from sgdx_t5x.papers.simulator.generate import simulate
from sgdx_t5x.papers.simulator.surface import Surface, find_values
from sgdx_t5x.papers.simulator.variation import forms, is_moment, is_name


def said_on(day):
  return (f"March {day}", f"the {day} of March", f"{day} of March")


# --- forms: all worked out by hand; it is Friday, March 1st, 2019 ------------------------------


@pytest.mark.parametrize(
  ("value", "ways"),
  [
    ("2019-03-01", (*said_on("1st"), "today", "the 1st")),
    ("2019-03-02", (*said_on("2nd"), "tomorrow", "the 2nd")),
    ("2019-03-03", (*said_on("3rd"), "the day after tomorrow", "the 3rd")),
    ("2019-03-04", (*said_on("4th"), "next Monday", "the 4th")),
    ("2019-03-05", (*said_on("5th"), "next Tuesday", "the 5th")),
    ("2019-03-07", (*said_on("7th"), "next Thursday", "the 7th")),
    ("2019-03-08", (*said_on("8th"), "the 8th")),  # also a Friday: in a week
    ("2019-03-11", (*said_on("11th"), "the 11th")),
    ("2019-03-12", (*said_on("12th"), "the 12th")),
    ("2019-03-13", (*said_on("13th"), "the 13th")),
    ("2019-03-21", (*said_on("21st"), "the 21st")),
    ("2019-03-22", (*said_on("22nd"), "the 22nd")),
    ("2019-03-23", (*said_on("23rd"), "the 23rd")),
    ("2019-03-31", (*said_on("31st"), "the 31st")),
    ("2019-02-28", ("February 28th", "the 28th of February", "28th of February")),
    ("2019-04-05", ("April 5th", "the 5th of April", "5th of April")),
    ("2020-01-21", ("January 21st 2020", "the 21st of January 2020", "21st of January 2020")),
    ("2018-03-05", ("March 5th 2018", "the 5th of March 2018", "5th of March 2018")),
    # Not dates, only similar.
    ("2019-13-45", ("2019-13-45",)),
    ("2019-02-29", ("2019-02-29",)),
    ("2019-3-5", ("2019-3-5",)),
  ],
)
def test_dates(value, ways):
  assert forms(value) == ways
  assert is_moment(value) or len(ways) == 1


@pytest.mark.parametrize(
  ("value", "ways"),
  [
    ("00:00", ("12 am", "midnight")),
    ("12:00", ("12 pm", "noon")),
    ("00:15", ("12:15 am", "quarter past 12 in the morning", "12:15 in the morning")),
    ("09:00", ("9 am", "9 o'clock in the morning", "9 in the morning")),
    ("9:15", ("9:15 am", "quarter past 9 in the morning", "9:15 in the morning")),
    ("11:45", ("11:45 am", "quarter to 12 in the morning", "11:45 in the morning")),
    ("12:45", ("12:45 pm", "quarter to 1 in the afternoon", "12:45 in the afternoon")),
    ("17:59", ("5:59 pm", "5:59 in the afternoon")),
    ("18:30", ("6:30 pm", "half past 6 in the evening", "6:30 in the evening")),
    ("07:05", ("7:05 am", "7:05 in the morning")),
    ("24:00", ("24:00",)),
    ("12:60", ("12:60",)),
  ],
)
def test_times(value, ways):
  assert forms(value) == ways


@pytest.mark.parametrize(
  ("value", "ways"),
  [
    ("$25", ("$25", "25 dollars")),
    ("$24.50", ("$24.50", "24.50 dollars")),
    ("$1", ("$1", "1 dollar")),
    ("$1,200", ("$1,200",)),
    ("1", ("1", "one")),
    ("12", ("12", "twelve")),
    ("13", ("13",)),
    ("0", ("0",)),
    ("03", ("03",)),
    ("12 Hill Street", ("12 Hill Street", "12 Hill St")),
    ("Saint Mary Road", ("Saint Mary Road", "St. Mary Rd")),
    ("Streets of London", ("Streets of London",)),
    ("Heron", ("Heron",)),
  ],
)
def test_prices_numbers_and_abbreviations(value, ways):
  assert forms(value) == ways
  assert not is_moment(value)


def test_what_can_be_named_without_its_noun():
  """ "How about Heron?", but not "How about 3?" """
  assert [v for v in ("Heron", "3", "2019-03-05", "$3", "sailing", "") if is_name(v)] == ["Heron"]


# --- templates ---------------------------------------------------------------------------------


def texts(made, number=100):
  return {t.utterance for d in simulate(made, numbers=range(number), seed="s") for t in d.turns}


def test_words_of_a_service_are_used():
  words = {
    "services": {
      "Boats_1": {
        "slots": {
          "town": {"noun": ["harbor"], "tell": ["lying in {value}"], "ask": ["Where is it?"]},
          "has_cabin": {"say": {"True": "with a roof", "False": ["roofless"]}},
        },
        "intents": {"FindBoat": {"open": ["A boat"], "do": ["seek"]}},
      }
    },
  }
  found = "\n".join(texts(simulation(words=words)))
  for text in ("A boat lying in ", "Where is it?", "with a roof", "roofless", "harbor"):
    assert text in found, text
  assert "What town" not in found


def user_turn(*frames):
  return TurnOutline(USER, [FrameOutline(name, acts, intent, values)
                            for name, acts, intent, values in frames])  # fmt: skip


def inform(slot, value):
  return Act("INFORM", slot, (value,))


def test_a_day_that_needs_no_on():
  words = {"services": {"Boats_1": {"slots": {"rental_date": {"tell": ["on {value}"]}}}}}
  made = simulation((RENT,), words=words)
  found = set()
  for seed in range(60):
    worded = Surface({"Boats_1": made.schema["Boats_1"]}, made.words, random.Random(seed))
    start = Act("INFORM_INTENT", "intent", ("RentBoat",))
    acts = [start, inform("rental_date", "2019-03-02")]
    turn = worded.turn(user_turn(("Boats_1", acts, "RentBoat", {"rental_date": "2019-03-02"})))
    (span,) = turn.frames[0].slots
    said = turn.utterance[span["start"] : span["exclusive_end"]]
    assert turn.frames[0].state.slot_values == {"rental_date": (said,)}
    found.add((said, f"on {said}" in turn.utterance))
  assert ("tomorrow", False) in found
  assert ("tomorrow", True) not in found
  assert ("March 2nd", True) in found


# --- schemas that could mislead the simulator --------------------------------------------------


def check_all(made, number=300):
  check, remarks = validate_annotation(made.schema, {}), []
  for dialogue in simulate(made, numbers=range(number), seed="s"):
    check(dialogue, made.schema, "here")
    remarks.append(dialogue)
  return remarks


def test_slots_may_be_named_like_words_of_the_format():
  schema = [
    {
      **SCHEMA[0],
      "slots": [slot("intent"), slot("count"), slot("values", "1", "2")],
      "intents": [
        intent("Find", False, ["values"], {}, ["intent", "count", "values"]),
        intent("Book", True, ["intent", "count"], {"values": "1"}, ["intent", "count"]),
      ],
    },
    SCHEMA[1],
  ]
  rows = tuple((f"Boat {n}", n, v) for n in "123" for v in "12")  # three for each of the values
  boats = ServiceTable(("intent", "count", "values"), frozenset(), rows)
  wanted = ("Boats_1.Find", "Boats_1.Book")
  made = simulation(wanted, wanted[::-1], schema=schema, boats=boats, links=[])
  said = {
    (a["act"], *a["values"])
    for dialogue in check_all(made)
    for turn in dialogue.turns
    for frame in turn.frames
    for a in frame.actions
    if a["slot"] == "count" and a["values"]
  }
  # The number of results is a digit, however the slot's values are said.
  assert {value for act, value in said if act == "INFORM_COUNT"} == {"3"}
  assert ("CONFIRM", "three") in said


def test_free_slots_may_have_example_values():
  """As in SGD, where some non-categorical slots list values; these are never offered as choices."""
  town = {**SCHEMA[0]["slots"][1], "possible_values": ["Elmport", "Rome"]}
  slots = [town if s["name"] == "town" else s for s in SCHEMA[0]["slots"]]
  transitions = {"chances": {"lists_choices": 1}}
  made = simulation(schema=[{**SCHEMA[0], "slots": slots}, SCHEMA[1]], transitions=transitions)
  choices = {
    (action["slot"], *action["values"])
    for dialogue in check_all(made)
    for turn in dialogue.turns[1::2]
    for action in turn.frames[0].actions
    if action["act"] == "REQUEST"
  }
  assert ("boat_type", "rowing", "sailing") in choices
  assert ("town",) in choices
  assert not any(slot == "town" and values for slot, *values in choices)


def test_a_link_may_lead_from_a_closed_slot_to_a_free_one():
  links = [{"from": "Boats_1.boat_type", "to": "Trams_1.destination"}]
  words = {"services": {"Boats_1": {"slots": {"boat_type": {"say": {"sailing": ["with sails"]}}}}}}
  made = simulation((FIND, TRAM), links=links, words=words)
  found = {
    value
    for dialogue in check_all(made)
    for _, frame in dialogue.user_frames()
    for value in frame.state.slot_values.get("destination", ())
  }
  assert "with sails" in found  # the state has what was said, as the slot is non-categorical
  assert "rowing" in found


def test_ways_to_say_a_value_are_those_of_the_slot():
  """A destination's way to say "Elmport" is not used where boats lie there, nor the reverse."""
  words = {"services": {"Trams_1": {"slots": {"destination": {"say": {"Elmport": ["the port"]}}}}}}
  made = simulation((FIND, TRAM), links=[], words=words)
  said = {
    (frame.service, value)
    for dialogue in check_all(made)
    for _, frame in dialogue.user_frames()
    for values in frame.state.slot_values.values()
    for value in values
  }
  assert ("Trams_1", "the port") in said
  assert ("Boats_1", "Elmport") in said
  assert ("Boats_1", "the port") not in said


def test_a_boolean_slot_keeps_the_phrase_of_the_value_that_is_not_written():
  own = {"Boats_1": {"slots": {"has_cabin": {"say": {"True": ["with a roof"]}}}}}
  say = simulation(words={"services": own}).words["Boats_1"].slots["has_cabin"].say
  assert say["True"] == ("with a roof",)
  assert say["False"][0].startswith("without")


# --- values in other words ---------------------------------------------------------------------


@pytest.mark.parametrize(
  ("values", "text", "places"),
  [
    (["Heron", "Elmport"], "Elmport. Heron!", [(9, 14), (0, 7)]),
    # "New York Pizza" and "New York" do not overlap, in either order.
    (["New York", "New York Pizza"], "New York Pizza, in New York", [(19, 27), (0, 14)]),
    (["New York", "New York Pizza"], "New York Pizza", [None, (0, 14)]),
    (["York", "York"], "York in York, not Yorkshire", [(0, 4), (8, 12)]),
    (["York", "York"], "York in Yorkshire", [(0, 4), None]),
  ],
)
def test_values_are_found_as_whole_words_without_overlaps(values, text, places):
  assert find_values(values, text) == places
