"""Intents as tools: accepted by a validator and each format's own rules; colliding names."""

import json
import re

import pytest
from jsonschema import Draft202012Validator

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import Intent, Schema, Service, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.protocol import service_pairs
from sgdx_t5x.tools.definitions import FORMATS, all_tools, legal_name, names_map

LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
TABLE = Service(
  "Eats",
  "Food near you",
  (
    Slot("class", "How fine", True, ("fine", "plain")),
    Slot("party size", "Guests", False),
    Slot("phone", "Number to call", False),
  ),
  (
    Intent("Find", "Look for a place.", False, ("class",), {}, ("phone",)),
    Intent("Book a table", "Reserve", True, ("party size",), {"class": "dontcare"}, ()),
  ),
)


def tools_of(*services):
  schema = Schema(services)
  return all_tools(service_pairs(schema, schema))


def parameters(form, shown):
  """The JSON Schema of a tool. BFCL replaces "dict" before a model sees it (convert_to_tool)."""
  if form == "bfcl":
    return {**shown["parameters"], "type": "object"}
  shown = shown.get("function", shown)
  return shown[{"mcp": "inputSchema", "anthropic": "input_schema"}.get(form, "parameters")]


def check_all(corpus):
  """Checks each tool of a corpus in each format and variant; returns how many there are."""
  number, validated = 0, set()  # many schemas are identical, and validating one takes 5 ms
  is_schema = Draft202012Validator(Draft202012Validator.META_SCHEMA).is_valid
  for split in corpus.splits:
    for variant in corpus.variants:
      pairs = service_pairs(corpus.schema(split), corpus.schema(split, variant))
      for tool in all_tools(pairs).values():
        for form, show in FORMATS.items():
          schema = parameters(form, show(tool))
          if (text := json.dumps(schema)) not in validated:
            assert is_schema(schema)
            validated.add(text)
          names = [tool.name, *schema["properties"]]
          assert all(LEGAL.fullmatch(name) for name in names)
          assert list(names_map([tool], form)[tool.name]["arguments"]) == [*schema["properties"]]
          number += 1
  return number


def test_a_validator_accepts_every_tool_of_the_sample():
  assert check_all(open_corpus("sample")) > 1000


@pytest.mark.long
@pytest.mark.real
def test_a_validator_accepts_every_tool_of_sgd(real_archive):
  """121 intents, those of services in several splits counted in each; 6 variants, 4 formats."""
  assert check_all(open_corpus(real_archive)) == 121 * 6 * 4


def test_a_tool_in_four_formats_by_hand():
  book = tools_of(TABLE)["Eats__Book_a_table"]
  properties = {
    "class": {"type": "string", "description": "How fine", "enum": ["fine", "plain", "dontcare"]},
    "party_size": {"type": "string", "description": "Guests"},
  }
  schema = {
    "type": "object",
    "properties": properties,
    "required": ["party_size"],
    "additionalProperties": False,
  }
  named = {"name": "Eats__Book_a_table", "description": "Reserve. Food near you."}
  assert FORMATS["openai"](book) == {
    "type": "function",
    "function": {**named, "parameters": schema},
  }
  assert FORMATS["anthropic"](book) == {**named, "input_schema": schema}
  assert FORMATS["mcp"](book) == {**named, "inputSchema": schema}
  # bfcl-eval 2026.3.23, scripts/check_func_doc_format.py: these three keys, defaults, no keywords.
  defaults = {
    "class_": {**properties["class"], "default": ""},
    "party_size": properties["party_size"],
  }
  functions = {"type": "dict", "properties": defaults, "required": ["party_size"]}
  assert FORMATS["bfcl"](book) == {**named, "parameters": functions}
  assert names_map([book], "bfcl") == {
    "Eats__Book_a_table": {
      "service": "Eats",
      "intent": "Book a table",
      "arguments": {"class_": "class", "party_size": "party size"},
    }
  }


def test_arguments_are_checked_by_the_schema():
  tool = tools_of(TABLE)["Eats__Book_a_table"]
  assert not Draft202012Validator(tool.parameters).is_valid({})
  accepts = Draft202012Validator(tool.for_states.parameters).is_valid
  assert accepts({})
  assert accepts({"class": "dontcare", "party_size": "4"})
  for wrong in ({"class": "Fine"}, {"party_size": 4}, {"phone": "1"}):
    assert not accepts(wrong)


def test_a_variant_gives_the_words_and_the_original_the_meaning():
  corpus = open_corpus("sample")
  original, v5 = (corpus.schema("test", variant) for variant in ("original", "v5"))
  before, after = (all_tools(service_pairs(original, schema)).values() for schema in (original, v5))
  assert [(t.service, t.intent, [*t.slots.values()]) for t in before] == [
    (t.service, t.intent, [*t.slots.values()]) for t in after
  ]
  assert not {t.name for t in before} & {t.name for t in after}


def test_names_are_cut_to_what_services_accept():
  assert legal_name("Réserver une table!") == "R_server_une_table_"
  assert legal_name("x" * 80) == "x" * 64
  assert legal_name("") == "_"


@pytest.mark.parametrize(("first", "second"), [("X" * 70, "X" * 69 + "Y"), ("X" * 64, "X" * 65)])
def test_names_that_are_equal_when_cut_are_too_long(first, second):
  """Regression: the error spoke of illegal characters, of which there are none."""
  go = Intent("Go", "", False, (), {}, ())
  services = [Service(name, "", (), (go,)) for name in (first, second)]
  with pytest.raises(SgdxError, match=r"too long \(\d+ and \d+ characters\)") as error:
    tools_of(*services)
  assert "illegal" not in error.value.text
  slots = tuple(Slot("a" * 64 + end, "", False) for end in "bc")
  intent = Intent("Go", "", False, tuple(slot.name for slot in slots), {}, ())
  with pytest.raises(SgdxError, match=r"too long \(65 and 65 characters"):
    tools_of(Service("A", "", slots, (intent,)))


def test_colliding_names_are_refused():
  a, b = (Service(name, "", (), TABLE.intents[:0]) for name in ("A b", "A_b"))
  intent = Intent("Go", "", False, (), {}, ())
  a, b = (Service(x.name, "", (), (intent,)) for x in (a, b))
  with pytest.raises(SgdxError, match=r"both names become 'A_b__Go'") as error:
    tools_of(a, b)
  assert "rename one of the two" in error.value.fix
  slots = (Slot("to city", "", False), Slot("to_city", "", False))
  takes = Intent("Go", "", False, ("to city", "to_city"), {}, ())
  with pytest.raises(SgdxError, match="both names become 'to_city'"):
    tools_of(Service("Fly", "", slots, (takes,)))
