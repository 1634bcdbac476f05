import collections
import copy
import dataclasses
import json
import random
import re

import pytest
from perturbed import on_split, perturbed_sample, sample_dialogues, sample_split
from undo import undo_mapping

from sgdx_t5x.corpus.conversion import convert_dialogue, renamings
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.papers.checkdst import ned
from sgdx_t5x.papers.checkdst.entities import entity_slots
from sgdx_t5x.papers.checkdst.kinds import KINDS
from sgdx_t5x.papers.checkdst.mapping import apply_mapping
from sgdx_t5x.papers.checkdst.new_names import NameSource, listed, name_source
from sgdx_t5x.papers.checkdst.split import changed
from sgdx_t5x.papers.checkdst.texts import span_texts
from sgdx_t5x.papers.checkdst.values import said_values

SLOTS = {"Hotels_1": frozenset({"city", "name"})}


def _dialogue() -> dict:
  """The city is in a span, a mention, a longer word, another slot's span, and a service call."""

  def turn(speaker, text, spans, **frame):
    slots = [{"slot": s, "start": text.index(v), "exclusive_end": text.index(v) + len(v)}
             for s, v in spans]  # fmt: skip
    frame = {"service": "Hotels_1", "slots": slots, "actions": [], **frame}
    return {"speaker": speaker, "utterance": text, "frames": [frame]}

  state = {"active_intent": "Find", "requested_slots": [], "slot_values": {"city": ["Rome"]}}
  return {
    "dialogue_id": "1_00000",
    "services": ["Hotels_1"],
    "turns": [
      turn("USER", "A hotel in Rome, please.", [("city", "Rome")], state=state),
      turn("SYSTEM", "Romeo at 5 Rome Road in Rome?", [("name", "Romeo"), ("note", "5 Rome Road")],
           service_call={"method": "Find", "parameters": {"city": "Rome", "note": "Rome"}},
           service_results=[{"city": "Rome", "name": "Romeo", "note": "Rome"}]),
    ],
  }  # fmt: skip


def test_a_mapping_is_applied_everywhere_at_once_and_only_where_it_should():
  data, before = _dialogue(), _dialogue()
  line = apply_mapping(data, SLOTS, {"Rome": "Emor", "Romeo": "Moero"})
  user, system = data["turns"]
  assert user["utterance"] == "A hotel in Emor, please."
  assert user["frames"][0]["state"]["slot_values"] == {"city": ["Emor"]}
  assert system["utterance"] == "Moero at 5 Rome Road in Emor?"
  frame = system["frames"][0]
  assert frame["service_call"]["parameters"] == {"city": "Emor", "note": "Rome"}
  assert frame["service_results"] == [{"city": "Emor", "name": "Moero", "note": "Rome"}]
  assert line["mentions"] == {"1": [[24, 28]]}
  undo_mapping(data, SLOTS, line)
  assert data == before


def test_several_forms_stay_sorted_and_unsorted_ones_keep_their_order():
  for forms in (["NY", "Rome"], ["Rome", "NY"]):
    data = _dialogue()
    data["turns"][0]["utterance"] += " NY"
    data["turns"][0]["frames"][0]["state"]["slot_values"]["city"] = list(forms)
    before = json.loads(json.dumps(data))
    line = apply_mapping(data, SLOTS, {"Rome": "Aaaa", "NY": "Zz"})
    values = data["turns"][0]["frames"][0]["state"]["slot_values"]["city"]
    assert values == (["Aaaa", "Zz"])
    assert ("unsorted" in line) == (forms == ["Rome", "NY"])
    undo_mapping(data, SLOTS, line)
    assert data == before


@pytest.mark.parametrize("text", ["Sacramento, CA", "O'Brien-Smith", "12 Elm Street"])
def test_letters_keep_the_shape(text):
  new = ned.letters(text, random.Random(5))
  assert new != text
  assert sorted(new.lower()) == sorted(text.lower())
  assert [c.isupper() for c in new] == [c.isupper() for c in text]
  assert [c for c in new if not c.isalpha()] == [c for c in text if not c.isalpha()]


def test_digits_are_permuted_where_there_are_no_letters():
  assert sorted(ned.letters("1857 92", random.Random(1))) == sorted("1857 92")


def test_one_entity_moves_no_other():
  schema = sample_split().schema
  data = next(d for d in sample_dialogues()
              if len(ned.entities_of(d, schema, entity_slots(schema)).places) > 3)  # fmt: skip
  found = ned.entities_of(data, schema, entity_slots(schema))
  all_of_them = ned.permuted(found, "0/x", ned.letters)
  fewer = ned.Entities(dict(list(found.places.items())[1:]), {}, found.unavailable)
  rest = ned.permuted(fewer, "0/x", ned.letters)
  assert rest == {text: all_of_them[text] for text in rest}


def test_almost_every_string_of_the_sample_is_mapped():
  _, _, _, counts = perturbed_sample("ned", {})
  assert counts["strings_mapped"] >= 0.999 * counts["strings"] > 300


def test_a_string_that_is_also_another_slots_value_stays():
  split = sample_split()
  data = sample_dialogues()[0]
  found = ned.entities_of(data, split.schema, entity_slots(split.schema))
  text, (service, _) = next(iter(found.places.items()))
  free = split.schema[service].noncategorical_slots - entity_slots(split.schema)[service]
  other = {"act": "INFORM", "slot": min(free), "values": [text], "canonical_values": [text]}
  frame = next(f for turn in data["turns"] for f in turn["frames"] if f["service"] == service)
  frame["actions"].append(other)
  assert ned.entities_of(data, split.schema, entity_slots(split.schema)).unchanged[text] == "other"


def test_examples_in_a_schema_are_replaced_like_other_names():
  """Regression: what a schema lists of a slot that is not categorical stayed."""
  schema, data = sample_split().schema, sample_dialogues()[0]
  slots = entity_slots(schema)
  before = ned.entities_of(data, schema, slots)
  services = []
  for service in schema:
    free = service.noncategorical_slots
    listed_slots = [
      dataclasses.replace(slot, possible_values=tuple(before.places))
      if slot.name in free else slot
      for slot in service.slots
    ]  # fmt: skip
    services.append(dataclasses.replace(service, slots=tuple(listed_slots)))
  assert before.places
  assert ned.entities_of(data, Schema(services), slots) == before


def test_a_value_that_is_only_said_where_it_cannot_be_replaced_stays(tmp_path):
  data = _one_span_less(sample_dialogues())
  split = on_split([data], sample_split(), tmp_path)
  counts = collections.Counter()
  changed(ned.perturber(split, 0), data, counts)
  assert counts["kept", "unspanned"] == 1


@pytest.mark.parametrize("kind", ["ned", "vs", "sdi"])
def test_values_that_overlap_stay_whole(tmp_path, kind):
  """As in SGD's "Century at Hayward", a theater, with "Hayward", a city."""
  dialogues = sample_dialogues()
  data, number, texts = _with_overlap(dialogues)
  split = on_split(dialogues, sample_split(), tmp_path)
  changes = 0
  for seed in range(20):
    new = copy.deepcopy(data)
    changed(KINDS[kind](split, seed), new, collections.Counter())
    assert texts <= {text for *_, text in span_texts(new["turns"][number])}
    changes += new != data
  assert changes


def _with_overlap(dialogues: list[dict]) -> tuple[dict, int, set[str]]:
  """Adds a span of another slot within one. Returns the dialogue, the turn, the two texts."""
  slots = entity_slots(sample_split().schema)
  for data in dialogues:
    for number, turn in enumerate(data["turns"]):
      for frame in turn["frames"]:
        of_service = slots.get(frame["service"], frozenset())
        for span in frame["slots"]:
          outer = turn["utterance"][span["start"] : span["exclusive_end"]]
          others = sorted(of_service - {span["slot"]})
          if span["slot"] in of_service and others and " " in outer and turn["speaker"] == "USER":
            inner = outer.split()[-1]
            start = span["exclusive_end"] - len(inner)
            added = {"slot": others[0], "start": start, "exclusive_end": span["exclusive_end"]}
            frame["slots"].append(added)
            return data, number, {outer, inner}
  raise AssertionError


def _one_span_less(dialogues: list[dict]) -> dict:
  """A dialogue that mentions a value only in upper case and outside spans."""
  slots = entity_slots(sample_split().schema)
  for data in dialogues:
    frame = data["turns"][0]["frames"][0]
    spans = [s for s in frame["slots"] if s["slot"] in slots.get(frame["service"], ())]
    if spans:
      span, text = spans[0], data["turns"][0]["utterance"]
      said = text[span["start"] : span["exclusive_end"]]
      for turn in data["turns"]:
        for other in turn["frames"]:
          other["slots"] = [
            s for s in other["slots"]
            if turn["utterance"][s["start"] : s["exclusive_end"]] != said
          ]  # fmt: skip
          for action in other["actions"]:
            action["values"] = [x for x in action["values"] if x != said]
            action["canonical_values"] = [x for x in action["canonical_values"] if x != said]
        turn["utterance"] = turn["utterance"].replace(said, said.upper())
      return data
  raise AssertionError


def test_names_for_train_and_for_tests_are_disjoint():
  def new_names(name):
    split = sample_split(name)
    source = name_source(split, entity_slots(split.schema))
    return {source.draws["city"](random.Random(i))[0] for i in range(300)}

  train, test = new_names("train"), new_names("test")
  assert len(train) > 50
  assert len(test) > 50
  assert not train & test


def test_forms_of_one_value_become_forms_of_one_new_value():
  split = sample_split()
  source = name_source(split, entity_slots(split.schema))
  service, names = next(iter(entity_slots(split.schema).items()))
  place = service, min(names)
  texts = {"San Francisco": place, "SF": place}
  new = source.mapping(texts, "0/x", (), {"SF": {"San Francisco"}})
  assert set(new) == set(texts)
  assert len(set(new.values())) == 2
  assert new["San Francisco"].split()[0].lower() in new["SF"].lower() or new["SF"] in str(new)


def test_a_value_in_another_case_becomes_the_new_one_in_that_case():
  split = sample_split()
  source = name_source(split, entity_slots(split.schema))
  service, names = next(iter(entity_slots(split.schema).items()))
  place = service, min(names)
  cases = ["San Francisco", "san francisco", "SAN FRANCISCO"]
  canonical = {text: {"San Francisco"} for text in cases[1:]}
  found = source.mapping(dict.fromkeys(cases, place), "0/x", (), canonical)
  name = found[cases[0]]
  assert found == dict(zip(cases, (name, name.lower(), name.upper()), strict=True))


def test_what_the_dialogue_says_is_no_new_name():
  place = "Hotels_1", "city"
  source = NameSource({place: "city"}, {"city": listed([("Oslo", ()), ("New York", ())])})
  for said, name in (("Fly from  new\nyork.", "Oslo"), ("From Oslo?", "New York")):
    assert source.mapping({"Rome": place}, "0/x", (), {}, said) == {"Rome": name}
  assert source.mapping({"Rome": place}, "0/x", (), {}, "From Oslo to New York") == {}


def test_values_of_the_split_are_replaced_by_values_of_the_split():
  """Which their own dialogue does not say."""
  values = {value.lower() for data in sample_dialogues() for _, _, value in said_values(data)}
  texts = {
    d["dialogue_id"]: " ".join(t["utterance"] for t in d["turns"]) for d in sample_dialogues()
  }
  _, _, lines, _ = perturbed_sample("vs", {})
  strings = [(name, new) for name, (line,) in lines.items() for new in line["strings"].values()]
  assert len(strings) > 100
  for name, new in strings:
    assert new.lower() in values, new
    assert not re.search(rf"(?<!\w){re.escape(new)}(?!\w)", texts[name], re.IGNORECASE), new


@pytest.mark.parametrize("variant", ["v1", "v5"])
def test_perturbing_and_converting_commute(variant):
  split = sample_split()
  names = renamings(split.schema, split.corpus.schema("test", variant))
  schema = split.corpus.schema("test", variant)
  slots = entity_slots(split.schema)
  renamed = {names[service].service: frozenset(names[service].slots[slot] for slot in found)
             for service, found in slots.items()}  # fmt: skip
  for data in sample_dialogues()[:20]:
    converted = convert_dialogue(Dialogue.from_json(data), names).to_json()
    for each, of, where in ((data, split.schema, slots), (converted, schema, renamed)):
      found = ned.entities_of(each, of, where)
      apply_mapping(each, where, ned.permuted(found, "0/x", ned.letters))
    assert convert_dialogue(Dialogue.from_json(data), names).to_json() == converted
