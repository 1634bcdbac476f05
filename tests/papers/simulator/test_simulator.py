"""Dialogues of the simulator and the sample: valid, complete, reproducible; sample contents."""

import collections
import copy
import dataclasses
import hashlib
import itertools
import re

import pytest
from boat_schema import SCHEMA
from boats import SCENARIOS, TRAM, simulation

from sgdx_t5x.corpus import sample
from sgdx_t5x.corpus.annotation import validate_annotation
from sgdx_t5x.corpus.dialogue import ACTS, SYSTEM, USER, write_dialogues
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.papers.simulator import sample as simulated
from sgdx_t5x.papers.simulator.generate import simulate
from sgdx_t5x.papers.simulator.variation import forms

NUMBER = 400  # dialogues of each corpus
SAMPLE = ("2", "2ec662b1f5c5206f")
# What the boats say other than with default words; the sample's words are in its files.
WORDS = {
  "services": {
    "Boats_1": {
      "slots": {"town": {"say": {"New York": ["the Big Apple"]}}},
    }
  }
}


class Case:
  """A simulation and its dialogues."""

  def __init__(self, made):
    self.made, self.schema = made, made.schema
    self.dialogues = list(simulate(made, numbers=range(NUMBER), seed="tests"))

  def frames(self, speaker):
    for dialogue in self.dialogues:
      for turn in dialogue.turns:
        if turn.speaker == speaker:
          for frame in turn.frames:
            yield dialogue, turn, frame

  def is_free(self, service, slot):
    return slot in self.schema[service].noncategorical_slots


@pytest.fixture(scope="module", params=["boats", "sample train", "sample test"])
def case(request):
  _, _, split = request.param.partition(" ")
  return Case(simulated.simulation(split) if split else simulation(words=WORDS))


# --- what every dialogue has ---------------------------------------------------------------


def test_the_rules_of_real_sgd_are_kept(case):
  remarks = {}
  check = validate_annotation(case.schema, remarks)
  for dialogue in case.dialogues:
    check(dialogue, case.schema, "here")
  # A service that cannot do what was asked for offers another day, as SGD's do.
  assert set(remarks) <= {"result-free"}


def test_all_acts_of_the_paper_occur(case):
  for speaker in (USER, SYSTEM):
    found = {action["act"] for _, _, frame in case.frames(speaker) for action in frame.actions}
    assert found == set(ACTS[speaker])


def test_dialogues_of_several_services_have_turns_about_two(case):
  both = collections.Counter()
  for dialogue in case.dialogues:
    assert list(dialogue.services) == list(
      dict.fromkeys(f.service for turn in dialogue.turns for f in turn.frames)
    )
    for turn in dialogue.turns:
      if len(turn.frames) > 1:
        assert turn.speaker == USER
        acts = [tuple(a["act"] for a in frame.actions) for frame in turn.frames]
        both[acts[0], acts[1][0]] += 1
  assert both[("SELECT",), "INFORM_INTENT"] > 5
  assert both[("THANK_YOU",), "INFORM_INTENT"] > 2


def test_spans_are_the_values_where_they_are_said(case):
  num_spans = 0
  for _, turn, frame in (*case.frames(USER), *case.frames(SYSTEM)):
    told = [
      (action["slot"], action["values"][0])
      for action in frame.actions
      if action["act"] in ("INFORM", "OFFER", "CONFIRM")
      and case.is_free(frame.service, action["slot"])
      and action["values"] != ["dontcare"]
    ]
    spans = [(s["slot"], turn.utterance[s["start"] : s["exclusive_end"]]) for s in frame.slots]
    assert sorted(spans) == sorted(told)
    num_spans += len(spans)
    for slot, text in spans if turn.speaker == USER else ():
      assert text in frame.state.slot_values[slot]
  assert num_spans > 1000


def test_canonical_values_are_what_services_know(case):
  different, ways = collections.Counter(), collections.defaultdict(set)
  for words in case.made.words.values():
    for slot in words.slots.values():
      for value, said in slot.say.items():
        ways[value].update(said)
  for _, _, frame in (*case.frames(USER), *case.frames(SYSTEM)):
    cells = case.made.backends[frame.service].cells
    for action in frame.actions:
      canonical, values = action["canonical_values"], action["values"]
      if action["act"] not in ("INFORM", "OFFER", "CONFIRM") or values == ["dontcare"]:
        assert canonical == values
        continue
      # From the service's own table, unless a link carried it over.
      carried = [link.target for s in case.made.scenarios for p in s.steps for link in p.links]
      if (frame.service, action["slot"]) not in carried:
        assert canonical[0] in cells[action["slot"]]
      if not case.is_free(frame.service, action["slot"]):
        assert canonical == values
        continue
      assert values[0] in (*forms(canonical[0]), *ways[canonical[0]])
      different[bool(re.fullmatch(r"\d{4}-\d\d-\d\d", canonical[0]))] += values != canonical
  assert different[True] > 100  # dates
  assert different[False] > 100


def test_a_speaker_keeps_to_one_form_of_a_value(case):
  forms_of = collections.defaultdict(set)
  for dialogue, turn, frame in (*case.frames(USER), *case.frames(SYSTEM)):
    for a in frame.actions:
      if a["act"] in ("INFORM", "OFFER", "CONFIRM") and case.is_free(frame.service, a["slot"]):
        key = (dialogue.dialogue_id, a["canonical_values"][0])
        forms_of[*key, turn.speaker].add(a["values"][0])
  assert all(len(said) == 1 for said in forms_of.values())
  pairs = [
    (said, forms_of[d, value, SYSTEM])
    for (d, value, speaker), said in list(forms_of.items())
    if speaker == USER and (d, value, SYSTEM) in forms_of and len(forms(value)) > 1
  ]
  same = sum(a == b for a, b in pairs) / len(pairs)
  assert 0.5 < same < 0.95  # the system uses other forms, too


def test_states_have_every_form_that_was_said(case):
  """In SGD, a state lists the forms of a value that both speakers have used for the slot."""
  num_several = 0
  for dialogue in case.dialogues:
    said = collections.defaultdict(set)
    for turn in dialogue.turns:
      for frame in turn.frames:
        for a in frame.actions:
          if a["act"] in ("INFORM", "OFFER", "CONFIRM"):
            said[frame.service, a["slot"]].add(a["values"][0])
        for slot, values in frame.state.slot_values.items() if frame.state else ():
          num_several += len(values) > 1
          if (frame.service, slot) in said:
            assert set(values) & said[frame.service, slot]
  assert num_several > 20


def test_services_are_called_with_the_canonical_state(case):
  num_calls = 0
  for _, _, frame in case.frames(SYSTEM):
    if frame.service_call is None:
      continue
    num_calls += 1
    service = case.schema[frame.service]
    backend = case.made.backends[frame.service]
    call, results = frame.service_call, frame.service_results
    intent = service.intents[service.intent_index[call["method"]]]
    assert set(intent.required_slots) <= set(call["parameters"])
    for result in results:
      assert set(result) == set(intent.result_slots)
      for slot in set(result) & set(call["parameters"]) - backend.open:
        assert result[slot] == call["parameters"][slot]
  assert num_calls > NUMBER


def test_carried_values_are_in_the_state_without_an_act(case):
  num_carried, referred = 0, 0
  say = collections.defaultdict(set)
  for link in (link for s in case.made.scenarios for step in s.steps for link in step.links):
    say[link.target].update(link.say)
  for dialogue in case.dialogues:
    seen = set()
    for turn in dialogue.turns:
      if turn.speaker != USER:
        continue
      for frame in turn.frames:
        told = {a["slot"] for a in frame.actions if a["act"] == "INFORM"}
        for slot, values in frame.state.slot_values.items():
          if frame.service in seen or slot in told:
            continue
          # The service is new in the dialogue: only a link can have brought the value.
          ways = say[frame.service, slot]
          assert any(v in t.utterance for t in dialogue.turns for v in values)
          num_carried += 1
          referred += any(way in turn.utterance for way in ways)
      seen.update(frame.service for frame in turn.frames)
  assert num_carried > 3
  assert referred == num_carried


def test_some_users_do_not_mind(case):
  said = [
    (turn.utterance, frame, action["slot"])
    for _, turn, frame in case.frames(USER)
    for action in frame.actions
    if action["values"] == ["dontcare"]
  ]
  assert len(said) > 10
  for utterance, frame, slot in said:
    assert frame.state.slot_values[slot] == ("dontcare",)
    assert "dontcare" not in utterance


def test_the_system_offers_no_dontcare_though_a_schema_lists_it():
  """Regression: "What boat type would you like: rowing, sailing or dontcare?"""
  schema = copy.deepcopy(SCHEMA)
  schema[0]["slots"][2]["possible_values"].append("dontcare")
  made = simulation(schema=schema, transitions={"chances": {"lists_choices": 1}})
  asked = 0
  for dialogue in simulate(made, numbers=range(20), seed="s"):
    for turn in dialogue.turns:
      assert "dontcare" not in turn.utterance
      asked += "rowing, sailing" in turn.utterance or "rowing or sailing" in turn.utterance
  assert asked


def test_utterances_read_like_text(case):
  for dialogue in case.dialogues:
    for turn in dialogue.turns:
      text = turn.utterance
      assert not re.search(r"[{}_]|  |\.\.|[.?!][.,]| [.,?]|^\W|[^.?!]$", text), text
      assert not re.search(r"\bon (today|tomorrow|next)\b|\bthe the\b", text), text


# --- seeds -------------------------------------------------------------------------------------


def test_dialogues_depend_on_seed_and_number_alone():
  made = simulation()
  first = list(simulate(made, numbers=range(20), seed="a"))
  assert list(simulate(simulation(), numbers=range(5, 9), seed="a")) == first[5:9]
  others = list(simulate(made, numbers=range(20), seed="b"))
  assert [d.dialogue_id for d in others] == [d.dialogue_id for d in first]
  assert sum(a.turns == b.turns for a, b in zip(first, others, strict=True)) < 3


def test_scenarios_come_by_weight():
  made = simulation((TRAM,), *SCENARIOS[:3])
  tram, *others = made.scenarios
  made = dataclasses.replace(made, scenarios=(dataclasses.replace(tram, weight=7), *others))
  found = collections.Counter(
    d.services == ("Trams_1",) for d in simulate(made, numbers=range(1000), seed="a")
  )
  # Weight 7 against three of weight 1; standard deviation .014.
  assert found[True] / 1000 == pytest.approx(0.7, abs=0.06)


# --- the sample --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample_test():
  return list(simulated.dialogues("test"))


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_the_cores_files_are_what_the_simulator_makes(split):
  stored = itertools.islice(open_corpus("sample").dialogues(split), 100)
  made = itertools.islice(simulated.dialogues(split), 100)
  assert [d.to_json() for d in stored] == [d.to_json() for d in made]


def test_dialogues_of_this_version_do_not_change(sample_test):
  """If this fails, raise sample.VERSION: published sample scores no longer compare."""
  text = write_dialogues(sample_test).encode()
  assert (sample.VERSION, hashlib.sha256(text).hexdigest()[:16]) == SAMPLE


def states(dialogues):
  """(service, slot, value) of all states."""
  for dialogue in dialogues:
    for _, frame in dialogue.user_frames():
      for slot, values in frame.state.slot_values.items():
        yield from ((frame.service, slot, value) for value in values)


def test_the_test_split_has_values_that_train_has_not(sample_test):
  schema, tables = sample.schema("test"), simulated.simulation("train").tables
  known = {value for table in tables.values() for row in table.rows for value in row}
  known |= {form for value in known for form in forms(value)}
  free = {
    (service, slot, value)
    for service, slot, value in states(sample_test)
    if slot in schema[service].noncategorical_slots and value != "dontcare"
  }
  new = [value for _, _, value in free if value not in known]
  assert 0.1 < len(new) / len(free) < 0.7


def test_every_version_rewords_every_slot_and_intent():
  """SGD-X: all names and descriptions differ from the original in every variant."""
  original = sample.schema("test")
  for variant in ("v1", "v2", "v3", "v4", "v5"):
    for a, b in zip(original, sample.schema("test", variant), strict=True):
      assert b.name == a.name + variant[1]
      for x, y in zip((*a.slots, *a.intents), (*b.slots, *b.intents), strict=True):
        assert x.name != y.name
        assert x.description != y.description


def test_the_sample_mirrors_sgd():
  corpus = open_corpus("sample")
  services = {split: corpus.schema(split) for split in ("train", "dev", "test")}
  everything = {s.name: s for schema in services.values() for s in schema}
  domains = collections.Counter(service.domain for service in everything.values())
  assert len(everything) >= 16
  assert len(domains) >= 10
  assert len(services["train"]) == 12
  assert max(domains.values()) == 2  # the same function with another interface
  for split in ("dev", "test"):
    assert set(services[split].names) - corpus.seen_services(split)
  trained = {service.domain for service in services["train"]}
  assert {service.domain for service in services["test"]} - trained
  # The same domain, another service.
  assert any(s.domain in trained and s.name not in services["train"] for s in services["test"])
  slots = [slot for service in everything.values() for slot in service.slots]
  assert 0.2 < sum(slot.is_categorical for slot in slots) / len(slots) < 0.8
  assert corpus.variants == (
    "original", "v1", "v2", "v3", "v4", "v5", "bt_zh", "bt_ja", "bt_ko",
  )  # fmt: skip
  for split in corpus.splits:
    for variant in corpus.variants:
      corpus.schema(split, variant)  # aligned, names unique


def test_the_sample_has_dialogues_of_one_and_of_several_services(sample_test):
  numbers = collections.Counter(len(dialogue.services) for dialogue in sample_test)
  assert numbers[1] > 100
  assert sum(n for services, n in numbers.items() if services > 1) > 10


def test_the_vocabulary_is_what_its_script_makes(tmp_path):
  import sentencepiece

  from sgdx_t5x.t5.sample_vocabulary import NUM_PIECES, VOCABULARY, sample_lines
  from sgdx_t5x.t5.train_vocabulary import train_vocabulary

  (tmp_path / "again.model").write_bytes(train_vocabulary(sample_lines(), NUM_PIECES))
  again, kept = (
    sentencepiece.SentencePieceProcessor(model_file=str(path))
    for path in (tmp_path / "again.model", VOCABULARY)
  )
  assert len(again) == len(kept) > NUM_PIECES
  assert [again.id_to_piece(i) for i in range(len(kept))] == [
    kept.id_to_piece(i) for i in range(len(kept))
  ]
