"""Schemas: read, refused when wrong, aligned by position."""

import copy

import pytest

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import check_aligned, load_schema, parse_schema
from sgdx_t5x.errors import SgdxError

BANK = {
  "service_name": "Banks_1",
  "description": "Manage bank accounts",
  "slots": [
    {"name": "amount", "description": "Sum", "is_categorical": False, "possible_values": []},
    {
      "name": "kind",
      "description": "Kind",
      "is_categorical": True,
      "possible_values": ["checking", "savings"],
    },
    {"name": "balance", "description": "What is left", "is_categorical": False},
  ],
  "intents": [
    {
      "name": "Transfer",
      "description": "Send money",
      "is_transactional": True,
      "required_slots": ["amount"],
      "optional_slots": {"kind": "checking"},
      "result_slots": ["amount", "balance"],
    }
  ],
}


def changed(**slot):
  data = copy.deepcopy(BANK)
  data["slots"][1].update(slot)
  return data


def changed_intent(**intent):
  data = copy.deepcopy(BANK)
  data["intents"][0].update(intent)
  return data


def test_reads_and_writes_the_official_format():
  schema = parse_schema([BANK], "schema.json")
  service = schema["Banks_1"]
  assert service.domain == "Banks"
  assert [service.slots[i].name for i in service.tracked_slots] == ["amount", "kind"]
  # possible_values is always written, as in SGD's own files
  expected = copy.deepcopy(BANK)
  expected["slots"][2]["possible_values"] = []
  assert schema.to_json() == [expected]


def assert_four_parts(error, *words):
  text = str(error.value)
  assert "expected:" in text
  assert "fix:" in text
  for word in words:
    assert word in text


@pytest.mark.parametrize(
  ("data", "words"),
  [
    ([changed(name="amount")], ("'amount'", "twice", "Banks_1")),
    ([BANK, BANK], ("service 'Banks_1'", "twice")),
    ([{**BANK, "slots": BANK["slots"][:1]}], ("Transfer", "'kind'", "amount")),
    ([{k: v for k, v in BANK.items() if k != "slots"}], ("Banks_1", "slots")),
    ({"services": []}, ("the top-level JSON value is an object",)),
    # Regression: "False" counted as true, and a string was read letter by letter.
    ([changed(is_categorical="False")], ("Banks_1", "is_categorical", "Expected `bool`")),
    ([changed(possible_values="a, b")], ("Banks_1", "possible_values", "Expected `array`")),
    ([changed_intent(is_transactional=0)], ("Banks_1", "is_transactional")),
    ([changed_intent(required_slots="amount")], ("Banks_1", "required_slots", "Expected `array`")),
    ([changed_intent(optional_slots=["ab"])], ("Banks_1", "optional_slots", "Expected `object`")),
    # What a newcomer wrote and was accepted: the key counted as left out, the service as untracked.
    ([changed(posible_values=["a"])], ("Banks_1, kind", "'posible_values'", "possible_values")),
    ([changed_intent(result_slot=[])], ("Banks_1, Transfer", "'result_slot'", "result_slots")),
    ([{**BANK, "intent": []}], ("Banks_1", "unknown key 'intent'", "nearest: intents")),
    ([changed(possible_values=[])], ("Banks_1", "slot 'kind'", "is_categorical", "free text")),
    ([{**BANK, "intents": []}], ("Banks_1: no intents", "add an intent")),
    ([{**BANK, "intents": [{**BANK["intents"][0], "name": "NONE"}]}], ("called NONE", "rename")),
  ],
)
def test_refuses_a_broken_schema(data, words):
  with pytest.raises(SgdxError) as error:
    parse_schema(data, "schema.json")
  assert_four_parts(error, "schema.json", *words)


def test_refuses_json_cut_short():
  with pytest.raises(SgdxError) as error:
    load_schema('[{"service_name": "Ba', "train/schema.json")
  assert_four_parts(error, "train/schema.json", "JSON")


def test_an_unknown_service_names_the_nearest():
  with pytest.raises(SgdxError) as error:
    parse_schema([BANK], "dev schema")["Bank_1"]
  assert_four_parts(error, "'Bank_1'", "nearest: Banks_1", "dev schema")


def test_variants_align_by_position():
  schema = parse_schema([BANK], "original")
  check_aligned(schema, parse_schema([changed(description="Sort")], "v1"))
  fewer = changed_intent(result_slots=["amount"])
  del fewer["slots"][2]
  with pytest.raises(SgdxError) as error:
    check_aligned(schema, parse_schema([fewer], "v1"))
  assert_four_parts(error, "v1 Banks_1 has 2 slots", "3")


def swapped(data, kind):
  first, second, *rest = data[kind]
  return {**data, kind: [second, first, *rest]}


@pytest.mark.parametrize(
  ("change", "word"),
  [
    (lambda d: swapped(d, "slots"), "slot 'kind' differs in values"),
    (
      lambda d: {**d, "slots": [{**d["slots"][0], "possible_values": ["x"]}, *d["slots"][1:]]},
      "slot 'amount' differs in values",
    ),
    (
      lambda d: {**d, "intents": [{**d["intents"][0], "required_slots": []}]},
      "differs in kind or slots",
    ),
  ],
)
def test_a_variant_differs_in_wording_only(change, word):
  schema = parse_schema([BANK], "original")
  with pytest.raises(SgdxError) as error:
    check_aligned(schema, parse_schema([change(BANK)], "v1"))
  assert_four_parts(error, word, "the same order")


def test_names_and_descriptions_are_texts():
  for value in (None, 7, ["a"]):
    with pytest.raises(SgdxError, match="Expected `str`"):
      parse_schema([changed(description=value)], "schema.json")


@pytest.mark.real
def test_released_variants_differ_in_wording_only(real_archive):
  corpus = open_corpus(real_archive)
  for split in corpus.splits:
    for variant in ("v1", "v2", "v3", "v4", "v5"):
      check_aligned(corpus.schema(split), corpus.schema(split, variant))
