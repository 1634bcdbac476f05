"""Texts of a schema by element, schemas in another wording, and corruption."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import Intent, Schema, Service, Slot, check_aligned
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.variants import corrupt
from sgdx_t5x.variants.corrupt import corrupt_schema
from sgdx_t5x.variants.wording import Element, join_words, name_words, reword, wording

SCHEMA = open_corpus("sample").schema("train")
SERVICE = SCHEMA.services[0]


def element(kind, item, field):
  return Element(SERVICE.name, kind, item.name, field)


@pytest.mark.parametrize(
  ("name", "kind", "words"),
  [
    ("recipient_account_name", "slot", "recipient account name"),
    ("FindHomeByArea", "intent", "find home by area"),
    ("GetTVSchedule", "intent", "get tv schedule"),
    ("RideSharing_2", "service", "ride sharing"),
  ],
)
def test_names_are_split_into_words(name, kind, words):
  assert name_words(name, kind) == words


@pytest.mark.parametrize(
  ("words", "kind", "original", "name"),
  [
    ("Type of account", "slot", "account_type", "type_of_account"),
    ("user's e-mail", "slot", "email", "users_e_mail"),
    ("the user\u2019s caf\u00e9", "slot", "place", "the_users_cafe"),
    ("look up a home", "intent", "FindHome", "LookUpAHome"),
    ("shared rides", "service", "RideSharing_2", "SharedRides_2"),
    ("账户", "slot", "account", ""),
    ("Stra\u00dfe", "slot", "street", "strasse"),
    ("\u00d8l s\u00f8k", "intent", "FindBeer", "OlSok"),
    ("Schuhgr\u00f6\u00dfe 名前", "slot", "size", ""),  # half of it would be another name
    ("2 beds", "slot", "beds", ""),  # not an identifier
  ],
)
def test_words_are_joined_as_sgd_writes_names(words, kind, original, name):
  assert join_words(words, kind, original) == name


def test_a_schema_in_its_own_words_is_itself():
  for split in ("train", "dev", "test"):
    schema = open_corpus("sample").schema(split)
    made, repairs = reword(schema, wording(schema), "again")
    assert made.to_json() == schema.to_json()
    assert repairs == []
    check_style(schema)


def check_style(schema):
  """Names are split into words and joined again as they were."""
  for e, text in wording(schema).items():
    assert e.field != "name" or join_words(text, e.kind, e.name) == e.name


def test_names_in_another_style_stay_if_their_words_do():
  """Regression: numAdults became num_adults, counted as neither reworded nor repaired."""
  slots = (Slot("numAdults", "adults", False), Slot("hotel-area", "area", False))
  schema = Schema([Service("Hotels_1", "x", slots, (Intent("find_bus", "x", False, (), {}, ()),))])
  made, repairs = reword(schema, wording(schema), "again")
  assert (made.to_json(), repairs) == (schema.to_json(), [])


@pytest.mark.real
def test_real_schemas_in_their_own_words_are_themselves(real_archive):
  corpus = open_corpus(real_archive)
  counts = [len(wording(corpus.schema(split))) for split in ("train", "dev", "test")]
  assert counts == [588, 366, 438]
  for split in ("train", "dev", "test"):
    made, repairs = reword(corpus.schema(split), wording(corpus.schema(split)), "again")
    assert (made.to_json(), repairs) == (corpus.schema(split).to_json(), [])
    check_style(corpus.schema(split))


def test_new_names_are_carried_through_the_intents():
  slot = SERVICE.slots[SERVICE.tracked_slots[0]]
  made, repairs = reword(SCHEMA, {element("slot", slot, "name"): "what it is"}, "new")
  check_aligned(SCHEMA, made)
  service = made.services[0]
  for old, new in zip(SERVICE.intents, service.intents, strict=True):
    for kind in ("required_slots", "optional_slots", "result_slots"):
      renamed = [("what_it_is" if x == slot.name else x) for x in getattr(old, kind)]
      assert list(getattr(new, kind)) == renamed
  values = [(x.is_categorical, x.possible_values) for x in service.slots]
  assert values == [(x.is_categorical, x.possible_values) for x in SERVICE.slots]
  assert repairs == []


def test_repairs_are_made_by_rule_and_recorded():
  first, second, third = SERVICE.slots[:3]
  intent = SERVICE.intents[0]
  texts = {
    element("slot", first, "name"): "the same",
    element("slot", second, "name"): "The same!",
    element("slot", third, "name"): "??",
    element("intent", intent, "name"): " ",
    element("slot", first, "description"): "",
    element("slot", second, "description"): " two\n lines ",
  }
  made, repairs = reword(SCHEMA, texts, "new")
  service = made.services[0]
  assert [slot.name for slot in service.slots[:3]] == ["the_same", "the_same_2", third.name]
  assert service.slots[0].description == first.description
  assert service.slots[1].description == "two lines"
  found = {(r.element.name, r.element.field): (r.rule, r.made) for r in repairs}
  assert found == {
    (second.name, "name"): ("collision", "the_same_2"),
    (third.name, "name"): ("not a name", third.name),
    (intent.name, "name"): ("empty", intent.name),
    (first.name, "description"): ("empty", first.description),
  }


def test_what_did_not_stop_and_what_is_reserved_is_repaired():
  slot, intent = SERVICE.slots[0], SERVICE.intents[0]
  texts = {
    element("slot", slot, "name"): "very " * 40 + "long",
    element("slot", slot, "description"): "again and " * 200,
    element("intent", intent, "name"): "none",
  }
  made, repairs = reword(SCHEMA, texts, "new")
  assert made.to_json() == SCHEMA.to_json()
  assert sorted(r.rule for r in repairs) == ["not a name", "too long", "too long"]


def test_services_that_collide_stay_apart():
  names = {Element(s.name, "service", s.name, "name"): "things" for s in SCHEMA}
  made, repairs = reword(SCHEMA, names, "new")
  assert len(set(made.names)) == len(SCHEMA)
  assert all(name.startswith("Things") for name in made.names)
  assert {r.rule for r in repairs} <= {"collision"}


def test_keys_of_names_with_a_slash_are_read():
  for one in (Element("A/B_1", "intent", "Buy/Order", "name"), Element("A_1", "slot", "x", "name")):
    assert Element.from_key(one.key) == one


def test_unknown_elements_are_refused():
  with pytest.raises(SgdxError, match=r"(?s)unknown element .*/slot/nothing/name.*nearest"):
    reword(SCHEMA, {Element(SERVICE.name, "slot", "nothing", "name"): "x"}, "new")
  with pytest.raises(SgdxError, match="element 'Banks_1/slots/x/name'"):
    Element.from_key("Banks_1/slots/x/name")


ELEMENTS = list(wording(Schema([SERVICE])))
TEXTS = st.dictionaries(st.sampled_from(ELEMENTS), st.text(max_size=20), max_size=8)


@settings(deadline=None, max_examples=60)  # the machine may be busy
@given(TEXTS)
def test_whatever_the_texts_the_schema_is_valid(texts):
  schema = Schema([SERVICE])
  made, repairs = reword(schema, texts, "new")  # Schema refuses names that occur twice
  check_aligned(schema, made)
  for slot in made.services[0].slots:
    assert slot.name.isidentifier()
    assert slot.description.strip()
  made_by_rule = {r.element for r in repairs}
  again = wording(made, schema)
  for e, text in texts.items():
    if e not in made_by_rule and e.field == "description":
      assert again[e] == " ".join(text.split())


def test_corruption_is_seeded_and_keeps_what_is_not_wording():
  made = corrupt_schema(SCHEMA, 1)
  assert made.to_json() == corrupt_schema(SCHEMA, 1).to_json()
  assert made.to_json() != corrupt_schema(SCHEMA, 2).to_json()
  check_aligned(SCHEMA, made)
  before, after = wording(SCHEMA), wording(made, SCHEMA)
  words = [(before[e].split(), after[e].split()) for e in before if e.field == "description"]
  assert all(len(a) == len(b) for a, b in words)
  kept = sum(len(set(a) & set(b)) for a, b in words) / sum(len(set(a)) for a, _ in words)
  assert 0.75 < kept < 0.9  # one word in five is replaced, seldom by an equal one
  assert sum(a == b for a, b in words) < len(words) / 4


def test_corruption_without_replacing_moves_words_a_little(monkeypatch):
  monkeypatch.setattr(corrupt, "REPLACED", 0.0)
  made = corrupt.corrupt_schema(SCHEMA, 3)
  before, after = wording(SCHEMA), wording(made, SCHEMA)
  moved = 0
  for e in before:
    if e.field == "description":
      old, new = before[e].split(), after[e].split()
      assert sorted(old) == sorted(new)
      if len(set(old)) == len(old):
        places = [abs(new.index(word) - i) for i, word in enumerate(old)]
        assert max(places) <= 2
        moved += any(places)
  assert moved > 0
