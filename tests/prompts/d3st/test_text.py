"""D3ST's prompts, targets and parsing, by hand; test_golden.py compares with Google's script."""

import collections
import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sgdx_t5x.corpus.dialogue import Dialogue, Frame, State, Turn
from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.schema import Intent, Service, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics import PredictedFrame
from sgdx_t5x.prompts.d3st import D3ST, D3stStyle
from sgdx_t5x.prompts.protocol import ServicePair

CLASSES = ("Second Class", "First", "None")
SLOTS = (
  Slot("from_port", "Port of  departure", False),
  Slot("travel_class", "Class of the ticket", True, CLASSES),
  Slot("cars", "Number of cars", True, ("1", "2", "3")),
  Slot("fare", "Price", False),
)
INTENTS = (
  Intent("FindFerry", "Find a crossing", False, ("from_port",), {"travel_class": "dontcare"}, ()),
  Intent("BookFerry", "Book a crossing", True, ("from_port", "cars"), {}, ()),
)
FERRIES = Service("Ferries_1", "Ferries", SLOTS, INTENTS)
PAIR = ServicePair(FERRIES, FERRIES)
FRAME = ExampleId("original", "test", "1_00000-002-Ferries_1")
HISTORY = (("USER", "A ferry\nplease"), ("SYSTEM", "From where? "), ("USER", "From  Kiel"))
STATE = State(
  "BookFerry",
  ("fare", "travel_class"),
  {"cars": ("2",), "travel_class": ("First",), "from_port": ("Kiel", "the port of Kiel")},
)
PREFIX = (
  "0=port of departure 1=class of the ticket 1a) second class 1b) first 1c) none 2=number of cars "
  "3=price i0=find a crossing i1=book a crossing"
)
SAID = "[user] a ferry please [system] from where? [user] from kiel"


def ordered(**style):
  return D3ST(D3stStyle(order="schema", **style))


def prompt(prompt_format, pair=PAIR, frame=FRAME):
  [found] = prompt_format.prompts(frame, pair, HISTORY)
  return found.text


def target(prompt_format, state=STATE):
  [text] = prompt_format.targets(FRAME, PAIR, state)
  return text


def read(text, **style):
  return ordered(**style).read(text, FRAME, PAIR)


# --- prompts and targets -------------------------------------------------------------------


def test_a_frame_by_hand():
  assert prompt(ordered()) == f"{PREFIX} {SAID}"
  expected = "[states] 0=kiel || the port of kiel 1=1b 2=2 [intents] i1 [req_slots] 3 1"
  assert target(ordered()) == expected


@pytest.mark.parametrize(
  ("style", "shown", "answer"),
  [
    ({"values": "a"}, "1=class of the ticket a) second class b) first c) none 2=", "1=1b 2=2 "),
    ({"values": "none"}, "1=class of the ticket 2=number", "1=first 2=2 "),
    ({"numeric_choices": True}, "2=number of cars 2a) 1 2b) 2 2c) 3 3=price", "1=1b 2=2b "),
    ({"slots": "tracked"}, "2=number of cars i0=find", "1=1b 2=2 [intents] i1 [req_slots] 1"),
    ({"description": "name"}, "0=ferries_1-from_port 1=ferries_1-travel_class 1a)", "0=kiel"),
    ({"description": "both"}, "0=ferries_1-from_port port of departure 1=", "0=kiel"),
    ({"description": "name"}, "i1=ferries_1-bookferry [user]", "[intents] i1"),
    ({"lowercase": False}, "0=Port of departure 1=Class of the ticket 1a) Second", "0=Kiel || the"),
    ({"delimiter": ":"}, "0:port of departure 1:class", "[states] 0:kiel || the port of kiel 1:1b"),
    ({"delimiter": "->"}, "i1->book a", "0->kiel || the port of kiel 1->1b 2->2 [intents] i1- ["),
    ({"join": "first"}, PREFIX, "0=kiel 1=1b"),
    ({"join": " | "}, PREFIX, "0=kiel | the port of kiel 1=1b"),
    ({"level": "states"}, PREFIX, "[states] 0=kiel || the port of kiel 1=1b 2=2"),
  ],
)
def test_switches(style, shown, answer):
  assert shown in prompt(ordered(**style))
  assert answer in target(ordered(**style))
  assert ("[intents]" in target(ordered(**style))) is ("level" not in style)


def test_what_a_state_may_lack_or_not_care_about():
  empty = State("NONE", (), {})
  assert target(ordered(), empty) == "[states] [intents] [req_slots]"
  assert target(ordered(level="states"), empty) == "[states]"
  state = State("FindFerry", (), {"travel_class": ("dontcare",), "from_port": ("dontcare",)})
  text = target(ordered(), state)
  assert text == "[states] 0=dontcare 1=dontcare [intents] i0 [req_slots]"
  assert read(text).slot_values == {"from_port": ("dontcare",), "travel_class": ("dontcare",)}


def test_white_space_where_google_s_script_keeps_it():
  """It writes "0=" and a text, and then separates the words of the line by single blanks.

  So a blank after "=" stays, and a choice without text is its letter alone. SGD has neither; run on
  such a schema, create_sgd_schemaless_data.py (34339b9) writes these texts.
  """
  slots = (
    Slot("port", "  Port of\n departure ", False),
    Slot("kind", "", True, ("", "First")),
    Slot("fare", " ", False),
  )
  intents = (Intent("Find", "\tFind one", False, ("port", "kind"), {}, ()),)
  service = Service("Ferries_1", "Ferries", slots, intents)
  pair = ServicePair(service, service)
  state = State("Find", (), {"port": (" Kiel", "the  port")})
  expected = "0= port of departure 1= 1a) 1b) first 2= i0= find one [user] a ferry please"
  assert prompt(ordered(), pair).startswith(expected)
  [text] = ordered().targets(FRAME, pair, state)
  assert text == "[states] 0= kiel || the port [intents] i0 [req_slots]"
  assert ordered().read(text, FRAME, pair).slot_values == {"port": ("kiel",)}


def test_names_are_those_of_the_variant_and_states_those_of_the_original():
  slots = tuple(Slot(f"x{i}", f"y {i}", *_kind(slot)) for i, slot in enumerate(SLOTS))
  intents = tuple(Intent(f"do{i}", f"z {i}", True, ("x0",), {}, ()) for i in range(2))
  pair = ServicePair(FERRIES, Service("Ferries_11", "f", slots, intents))
  prompt_format = ordered(description="both")
  assert prompt(prompt_format, pair).startswith(
    "0=ferries_11-x0 y 0 1=ferries_11-x1 y 1 1a) second"
  )
  [text] = prompt_format.targets(FRAME, pair, STATE)
  assert text == target(ordered())
  assert prompt_format.read(text, FRAME, pair).slot_values["cars"] == ("2",)


def _kind(slot):
  return slot.is_categorical, slot.possible_values


@pytest.mark.parametrize(
  ("style", "part"),
  [
    ({"values": "b"}, "'1a', 'a', 'none'"),
    ({"join": ","}, "' || ', ' | ', 'first'"),
    ({"delimiter": " "}, "D3stStyle.delimiter"),
    ({"delimiter": "a"}, "fix:"),
  ],
)
def test_wrong_styles_are_refused(style, part):
  with pytest.raises(SgdxError) as error:
    D3stStyle(**style)
  assert part in str(error.value)


def test_more_choices_than_letters_are_refused():
  slot = Slot("town", "A town", True, tuple(f"town {i}" for i in range(27)))
  service = Service("Towns_1", "Towns", (slot,), ())
  with pytest.raises(SgdxError, match="'town' has 27 choices") as error:
    prompt(ordered(), ServicePair(service, service))
  assert "values=none" in error.value.fix
  assert prompt(ordered(values="none"), ServicePair(service, service)).startswith("0=a town [user]")


# --- orders --------------------------------------------------------------------------------


def shown(text):
  """Counts the (description, choices) pairs that a prompt shows, whatever their order."""
  entries = re.split(r"(?:^| )i?[0-9]+=", text.split(" [user]")[0])[1:]
  parts = [re.split(r" [0-9]+[a-z]\) ", entry) for entry in entries]
  return collections.Counter((description, frozenset(choices)) for description, *choices in parts)


@given(st.integers(0, 2000), st.integers(0, 50))
def test_a_drawn_order_shows_the_same_and_reads_back(turn, seed):
  frame = ExampleId("v3", "dev", f"9_00001-{turn:03d}-Ferries_1")
  prompt_format = D3ST(D3stStyle(seed=seed))
  assert shown(prompt(prompt_format, frame=frame)) == shown(prompt(ordered()))
  [text] = prompt_format.targets(frame, PAIR, STATE)
  values = {"from_port": ("kiel",), "travel_class": ("First",), "cars": ("2",)}
  found = prompt_format.read(text, frame, PAIR)
  assert found == PredictedFrame(values, "BookFerry", ("fare", "travel_class"))


def test_orders_are_even_and_do_not_depend_on_the_variant():
  """The 24 orders of four slots are about equally frequent: chi-square, 23 degrees of freedom."""
  counts, first = collections.Counter(), collections.Counter()
  for turn in range(4800):
    texts = {
      prompt(D3ST(), frame=ExampleId(variant, "test", f"1_{turn // 10:05d}-{turn % 10:03d}-F_1"))
      for variant in ("original", "v5")
    }
    [text] = texts
    prefix = text.split(" i0=")[0]
    order = sorted(("port", "class", "cars", "price"), key=prefix.index)
    counts[tuple(order)] += 1
    first[text.split("i0=")[1].split()[0]] += 1
  assert len(counts) == 24
  assert sum((n - 200) ** 2 / 200 for n in counts.values()) < 49.7  # p = .001
  assert abs(first["find"] - 2400) < 120  # three and a half standard deviations
  assert len({prompt(D3ST(D3stStyle(seed=seed))) for seed in range(5)}) > 1


# --- reading -------------------------------------------------------------------------------


@pytest.mark.parametrize(
  ("text", "slots"),
  [
    ("[states] 0=Kiel 1=1a", {"from_port": "Kiel", "travel_class": "Second Class"}),
    ("[states] 1=b", {"travel_class": "First"}),
    ("[states] 1=1b)", {"travel_class": "First"}),
    ("[states] 1=1C", {"travel_class": "None"}),
    ("[states] 1=second-class", {"travel_class": "Second Class"}),
    ("[states] 1=1d", {"travel_class": "1d"}),  # out of range: a wrong answer, not an absent one
    ("[states] 1=0a", {"travel_class": "0a"}),
    ("[states] 1=none 0=", {}),
    ("[states] 0=none 1=DontCare", {"travel_class": "dontcare"}),
    ("[states] 2=2 cars", {"cars": "2 cars"}),
    ("[states] 2= 3 ", {"cars": "3"}),
    ("[states] 0=Kiel || Kiel harbour", {"from_port": "Kiel"}),
    ("[states] 0=a || b || c 1=1b", {"from_port": "a", "travel_class": "First"}),
    ("[states] 0=Kiel 0=Oslo", {"from_port": "Kiel"}),  # the first answer for an index counts
    ("0=Rome [states] 0=Kiel", {"from_port": "Kiel"}),  # what precedes [states] is ignored
    ("0=Kiel", {"from_port": "Kiel"}),
    ("[states] 0=Kiel [intents] i0 [states] 0=Oslo", {"from_port": "Kiel"}),
    ("[states] 0=x=1 1=1b", {"from_port": "x=1", "travel_class": "First"}),
    ("", {}),
    ("nonsense", {}),
  ],
)
def test_states_are_read(text, slots):
  assert read(text).slot_values == {slot: (value,) for slot, value in slots.items()}


def test_a_choice_may_hold_what_joins_values_of_free_text():
  slot = Slot("travel_class", "Class of the ticket", True, ("A", "A | B"))
  service = dataclasses.replace(FERRIES, slots=(SLOTS[0], slot, *SLOTS[2:]))
  found = ordered(values="none", join=" | ").read(
    "[states] 0=kiel | the port of kiel 1=a | b", FRAME, ServicePair(service, service)
  )
  assert found.slot_values == {"from_port": ("kiel",), "travel_class": ("A | B",)}


def test_several_values_of_a_choice_without_letters():
  """Written as in Google's script. Regression: read as one value, which was always wrong."""
  text = target(ordered(), State("NONE", (), {"cars": ("2", "3")}))
  assert text.startswith("[states] 2=2 || 3 [intents]")
  assert read(text).slot_values == {"cars": ("2",)}


def test_without_letters_a_value_called_none_is_not_the_absence_of_one():
  state = State("NONE", (), {"travel_class": ("None",)})
  text = target(ordered(values="none"), state)
  assert text.startswith("[states] 1=none [intents]")
  assert read(text, values="none").slot_values == {"travel_class": ("None",)}
  assert read("[states] 0=none", values="none").slot_values == {}


@pytest.mark.parametrize(
  ("text", "intent", "requested", "ignored"),
  [
    ("[states] [intents] i1 [req_slots] 3 1", "BookFerry", ("fare", "travel_class"), 0),
    ("[states] [intents] [req_slots] 1 1", "NONE", ("travel_class",), 0),
    ("[req_slots] 3 [intents] i0", "FindFerry", ("fare",), 0),
    ("[intents] i7 i0 i1 [req_slots] 4 0", "FindFerry", ("from_port",), 2),
    ("[states] 4=x 99999999999999999999=y 0=k", "NONE", (), 2),
    (f"[states] {'9' * 9000}=x [intents] i{'9' * 9000} [req_slots] {'1' * 9000}", "NONE", (), 3),
  ],
)
def test_intents_and_requests_are_read_and_indices_out_of_range_are_counted(
  text, intent, requested, ignored
):
  found = read(text)
  assert (found.active_intent, found.requested_slots, found.ignored) == (intent, requested, ignored)


def test_what_a_style_does_not_ask_for_is_not_read():
  found = read("[states] 0=kiel [intents] i0 [req_slots] 1", level="states")
  assert found == PredictedFrame({"from_port": ("kiel",)})


pieces = st.sampled_from(
  [
    "[states]",
    "[intents]",
    "[req_slots]",
    "0=",
    "1=1b",
    "9=",
    "i0",
    "i٣",
    " || ",
    "=",
    "٣=",
    "none",
  ]
)
answers = st.lists(pieces | st.text(max_size=8), max_size=12).map(" ".join)


@given(answers, st.sampled_from([D3ST(), ordered(), ordered(values="none", join="first")]))
def test_reading_never_raises(text, prompt_format):
  found = prompt_format.read(text, FRAME, PAIR)
  names = {slot.name for slot in SLOTS}
  assert names >= {*found.slot_values, *found.requested_slots}
  assert found.active_intent in ("NONE", "FindFerry", "BookFerry")


# --- Google's defects ----------------------------------------------------------------------


def dialogue():
  def frame(service, **values):
    return Frame(service, State("NONE", (), {slot: (v,) for slot, v in values.items()}))

  turns = (
    Turn("USER", "a", (frame("A", x="1", y="2"),)),
    Turn("SYSTEM", "b", ()),
    Turn("USER", "c", (frame("A", x="3"), frame("B", x="9"))),
  )
  return Dialogue("1_00000", ("A", "B"), turns)


def states(**style):
  return [
    (turn, frame.service, {slot: v for slot, (v,) in frame.state.slot_values.items()})
    for turn, frame in D3ST(D3stStyle(**style)).shown_frames(dialogue())
  ]


def test_frames_of_one_turn_and_values_that_left_the_state():
  own = [(0, "A", {"x": "1", "y": "2"}), (2, "A", {"x": "3"}), (2, "B", {"x": "9"})]
  assert states() == own
  assert states(frames="last") == [own[0], own[2], own[2]]
  held = (2, "A", {"x": "3", "y": "2"})
  assert states(cumulate=True) == [own[0], held, own[2]]
  assert states(frames="last", cumulate=True) == [own[0], own[2], own[2]]
