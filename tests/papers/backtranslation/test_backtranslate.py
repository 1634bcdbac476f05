"""Back-translation: records, repairs, the table, the cache of translated texts."""

import dataclasses
import itertools
import json

import pytest
import tiny_corpus as tiny
from fake_translator import Shouting

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import Intent, Schema, Service, Slot, parse_schema
from sgdx_t5x.corpus.variants import PIVOTS
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.backtranslation import text_provider
from sgdx_t5x.papers.backtranslation.backtranslate import back_translate, write_back_translation
from sgdx_t5x.papers.backtranslation.text_provider import TextProvider
from sgdx_t5x.papers.backtranslation.translations import (
  REPAIR_RULES,
  Record,
  TranslationTable,
  apply_records,
  open_table,
  read_records,
  shipped_table,
)
from sgdx_t5x.variants.shipped import shipped_schema, shipped_texts
from sgdx_t5x.variants.wording import Element, wording

BANKS = Service(
  "Banks_1",
  "Bank — β version",
  (Slot("account_type", "Which account", True, ("Checking", "Savings")), Slot("sum", "sum", False)),
  (Intent("CheckIt", "Look it up", False, ("account_type",), {"sum": "dontcare"}, ("sum",)),),
)
SCHEMA = Schema([BANKS], "banks")
NAME = Element("Banks_1", "slot", "account_type", "name")
DESCRIPTION = Element("Banks_1", "slot", "account_type", "description")
ITEMS = list(wording(SCHEMA).items())


def record(element, text, pivot="zh", pivot_text="文"):
  return Record(element, pivot, pivot_text, text, "by hand", "2026-11-21")


def shout(folder, calls=None, notes=None):
  translator = Shouting(calls)
  notify = (lambda line: None) if notes is None else notes.append
  return translator, TextProvider(translator, folder, notify)


def test_texts_without_a_translation_have_no_date_of_their_own(tmp_path, monkeypatch):
  """Regression: they had today's, so that a command repeated a day later gave other records."""
  items = [(NAME, "kind"), (DESCRIPTION, "")]
  first = shout(tmp_path)[1].back_translate(items, "zh", lambda *_: None)
  monkeypatch.setattr(text_provider, "_today", lambda: "2001-01-01")
  assert shout(tmp_path)[1].back_translate(items, "zh", lambda *_: None) == first
  assert first[1].text == first[1].date == ""


# --- texts to schema -----------------------------------------------------------------------


@pytest.mark.parametrize("pivot", PIVOTS)
def test_texts_of_the_sample_make_its_own_back_translations(pivot):
  """The sample's back-translations, written by hand with joined names, are rebuilt from words."""
  corpus = open_corpus("sample")
  original, written = corpus.schema("train"), corpus.schema("train", f"bt_{pivot}")
  records = [record(e, text, pivot) for e, text in wording(written, original).items()]
  result = back_translate(original, TranslationTable(records, "sample"), pivot)
  assert result.schema.to_json() == written.to_json()
  assert result.repairs == ()
  same = sum(a == b for a, b in zip_texts(original, written))
  assert 0 < result.unchanged == same < len(records) // 2


def zip_texts(original, other):
  return zip(wording(original).values(), wording(other, original).values(), strict=True)


def test_flags_values_and_slot_lists_are_carried_over():
  words = {e: f"{t} anew" for e, t in ITEMS if e.field == "name"}
  made, repairs = apply_records(SCHEMA, [record(e, t) for e, t in words.items()], "made")
  assert repairs == []
  assert made.to_json() == [
    {
      "service_name": "BanksAnew_1",
      "description": "Bank — β version",
      "slots": [
        {
          "name": "account_type_anew",
          "description": "Which account",
          "is_categorical": True,
          "possible_values": ["Checking", "Savings"],
        },
        {"name": "sum_anew", "description": "sum", "is_categorical": False, "possible_values": []},
      ],
      "intents": [
        {
          "name": "CheckItAnew",
          "description": "Look it up",
          "is_transactional": False,
          "required_slots": ["account_type_anew"],
          "optional_slots": {"sum_anew": "dontcare"},
          "result_slots": ["sum_anew"],
        }
      ],
    }
  ]


@pytest.mark.parametrize(
  ("element", "text", "made", "rule"),
  [
    (NAME, "kind of account", "kind_of_account", None),
    (NAME, "账户 type", "account_type", "untranslated"),
    (NAME, "くちざ", "account_type", "untranslated"),
    (NAME, "계좌", "account_type", "untranslated"),
    (NAME, "", "account_type", "empty"),
    (NAME, "?!", "account_type", "not a name"),
    (NAME, "2nd account", "account_type", "not a name"),
    (DESCRIPTION, "Kind of 账户", "Which account", "untranslated"),
    (DESCRIPTION, " \n", "Which account", "empty"),
    (DESCRIPTION, "Naïve － １００％ ＡＢＣ", "Naïve － １００％ ＡＢＣ", None),
    (Element("Banks_1", "service", "Banks_1", "description"), "β of bank", "β of bank", None),
    (Element("Banks_1", "slot", "sum", "name"), "account type", "account_type_2", "collision"),
  ],
)
def test_repairs_by_hand(element, text, made, rule):
  schema, repairs = apply_records(SCHEMA, [record(element, text)], "made")
  found = {
    "slot": schema["Banks_1"].slots[SCHEMA["Banks_1"].slot_index.get(element.name, 0)],
    "service": schema["Banks_1"],
  }[element.kind]
  assert getattr(found, element.field) == made
  assert [(r.element, r.found, r.made, r.rule) for r in repairs] == (
    [(element, text, made, rule)] if rule else []
  )
  assert rule is None or rule in REPAIR_RULES


def test_files_are_written_once_and_not_replaced(tmp_path):
  table = TranslationTable([record(e, f"{t} 文" if e == NAME else t) for e, t in ITEMS], "table")
  result = back_translate(SCHEMA, table, "zh")
  assert (result.unchanged, len(result.repairs)) == (len(ITEMS) - 1, 1)
  folder = tmp_path / "zh" / "train"
  for _ in range(2):  # writing the same again is not overwriting
    assert write_back_translation(result, folder) == ["repairs.jsonl", "schema.json", "texts.jsonl"]
  assert parse_schema(json.loads((folder / "schema.json").read_text()), "x").names == ("Banks_1",)
  assert [json.loads(line) for line in (folder / "repairs.jsonl").open()] == [
    {
      "element": NAME.key,
      "found": "account type 文",
      "made": "account_type",
      "rule": "untranslated",
    }
  ]
  assert json.loads((folder / "texts.jsonl").open().readline()) == {
    "element": "Banks_1/service/Banks_1/name",
    "pivot": "zh",
    "pivot_text": "文",
    "text": "banks",
    "provider": "by hand",
    "date": "2026-11-21",
  }
  other = back_translate(SCHEMA, TranslationTable([record(e, t) for e, t in ITEMS], "table"), "zh")
  with pytest.raises(SgdxError, match="already exists and is not empty"):
    write_back_translation(other, folder)
  assert len(list(folder.iterdir())) == 3


# --- table ---------------------------------------------------------------------------------


def write_lines(path, *rows):
  path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
  return path


HEADER = {
  "format": "sgdx-backtranslations/1",
  "pivot": "ja",
  "provider": "we",
  "date": "2026-01-02",
}
ROW = {"element": NAME.key, "pivot_text": "口座", "text": "account"}


def test_a_header_holds_for_records_that_do_not_say_it(tmp_path):
  rows = [HEADER, ROW, {**ROW, "pivot": "ko", "date": "2026-02-03"}]
  expected = [
    Record(NAME, "ja", "口座", "account", "we", "2026-01-02"),
    Record(NAME, "ko", "口座", "account", "we", "2026-02-03"),
  ]
  assert read_records(write_lines(tmp_path / "t.jsonl", *rows)) == expected
  whole = [r.to_json() for r in expected]
  assert read_records(write_lines(tmp_path / "t.jsonl", *whole)) == expected


@pytest.mark.parametrize(
  ("rows", "part"),
  [
    ([HEADER, ROW, '{"element": "Ba'], "line 3: not valid JSON"),
    ([HEADER, "[1]"], "line 2: a list"),
    ([ROW], "line 1: no string value for the key pivot, provider, date"),
    ([HEADER, {**ROW, "text": None}], "line 2: no string value for the key text"),
    ([HEADER, {**ROW, "element": "Banks_1/slut/x/name"}], "line 2: element"),
    ([{**HEADER, "format": "sgdx-backtranslations/9"}], "format 'sgdx-backtranslations/9'"),
    (
      [HEADER, ROW, {**ROW, "text": "bill"}],
      "two different texts for Banks_1/slot/account_type/name",
    ),
  ],
)
def test_a_wrong_table_is_refused(tmp_path, rows, part):
  with pytest.raises(SgdxError, match=r"fix:") as error:
    open_table([str(write_lines(tmp_path / "t.jsonl", *rows))])
  assert part in error.value.found


def test_a_table_that_lacks_something_is_refused(tmp_path):
  table = TranslationTable([record(e, t) for e, t in ITEMS if e != NAME], "the table")
  with pytest.raises(SgdxError, match="no zh record for Banks_1/slot/account_type/name; 1 of 8"):
    table.back_translate(ITEMS, "zh")
  with pytest.raises(SgdxError, match=r"no records for pivot 'ko'(.|\n)*available: zh"):
    table.check(["zh", "ko"])
  others = [(Element("Homes_2", "slot", "area", "name"), "area"), *ITEMS]
  with pytest.raises(SgdxError, match=r"no zh record for 1 services \(Homes_2\); 2 of 9"):
    table.back_translate(others, "zh")


def test_what_ships_is_for_schemas_with_all_elements(tmp_path):
  """The tiny corpus has a Banks_1, too, but not SGD's."""
  for service in ("Banks_1", "Weather_1"):
    assert Element(service, "service", service, "name") in shipped_texts("bt_zh")
  corpus = open_corpus(tiny.write_corpus(tmp_path))
  assert shipped_schema(corpus.schema("train"), "bt_zh") is None
  assert shipped_schema(SCHEMA, "v1") is None


@pytest.mark.real
def test_what_ships_rewords_all_of_real_train(real_archive):
  corpus = open_corpus(real_archive)
  original = corpus.schema("train")
  for pivot in PIVOTS:
    made = shipped_schema(original, f"bt_{pivot}")
    assert len(made) == 26
    assert sum(a != b for a, b in zip_texts(original, made)) > len(wording(original)) / 4
    result = back_translate(original, shipped_table(), pivot)
    assert not [r for r in result.repairs if r.rule != "collision"]
    assert shipped_schema(corpus.schema("dev"), f"bt_{pivot}") is None
  service = original.services[0]
  edited = dataclasses.replace(service, description="Now about something else")
  other = Schema([edited, *original.services[1:]], "edited")
  assert shipped_schema(other, "bt_zh") is None  # the shipped one was translated from another text


# --- translated texts and their cache ------------------------------------------------------


def test_each_text_goes_there_and_back_once(tmp_path):
  """`sum` is a name and a description: 7 distinct texts of 8, in batches of 3."""
  translator, provider = shout(tmp_path)
  records = provider.back_translate(ITEMS, "zh", lambda *_: None)
  assert [(r.element, r.pivot_text, r.text) for r in records] == [
    (e, f"{t} zh", f"{t} zh en") for e, t in ITEMS
  ]
  assert {r.provider for r in records} == {"shouting zh"}
  assert [(s, t, len(batch)) for s, t, batch in translator.sent] == [
    ("en", "zh", 3), ("en", "zh", 3), ("en", "zh", 1),
    ("zh", "en", 3), ("zh", "en", 3), ("zh", "en", 1),
  ]  # fmt: skip


@pytest.mark.parametrize("calls", range(6))
def test_a_failure_loses_nothing_and_the_rest_follows(tmp_path, calls):
  expected = shout(tmp_path / "whole")[1].back_translate(ITEMS, "zh", lambda *_: None)
  shown = []
  with pytest.raises(SgdxError, match="run the same command again") as error:
    shout(tmp_path, calls)[1].back_translate(ITEMS, "zh", lambda *args: shown.append(args))
  assert "ConnectionError: the line is dead" in error.value.found
  there, back = [0, 3, 6, 7, 7, 7][calls], [0, 0, 0, 0, 3, 6][calls]
  assert f"{back if calls >= 3 else there} of 7 texts done" in error.value.found
  translator, provider = shout(tmp_path)
  assert provider.back_translate(ITEMS, "zh", lambda *_: None) == expected
  assert (translator.count("en"), translator.count("zh")) == (7 - there, 7 - back)


def test_a_cut_cache_loses_its_last_line(tmp_path):
  expected = shout(tmp_path)[1].back_translate(ITEMS, "zh", lambda *_: None)
  [there] = tmp_path.glob("shouting-en-zh-*.jsonl")
  whole = there.read_bytes()
  ends = [i + 1 for i, byte in enumerate(whole) if byte == 10]
  for start, end in itertools.pairwise([0, *ends]):
    there.write_bytes(whole[: (start + end) // 2])  # in the header, in the last line ...
    notes = []
    translator, provider = shout(tmp_path, notes=notes)
    assert provider.back_translate(ITEMS, "zh", lambda *_: None) == expected
    assert translator.count("zh") == 0
    assert translator.count("en") == len(ends) - max(ends.index(end), 1)
    assert [note.rpartition(": ")[2] for note in notes] == [
      "dropped the last line, which was cut short"
    ]
    assert there.read_bytes() == whole
  lines = whole.split(b"\n")
  found = r"line 3: not a translation record(.|\n)*delete the line"
  for line in (
    b"{",
    b"[" * 100_000,
    b'{"text": "a", "made": 5, "date": "2026-11-21"}',
    b'{"text": [], "made": "b", "date": "2026-11-21"}',
    b'{"text": "a", "made": "\\ud800", "date": "2026-11-21"}',
  ):
    there.write_bytes(b"\n".join([*lines[:2], line, *lines[2:]]))
    with pytest.raises(SgdxError, match=found):
      shout(tmp_path)[1].back_translate(ITEMS, "zh", lambda *_: None)


def test_texts_keep_the_date_they_came_back(tmp_path, monkeypatch):
  monkeypatch.setattr(text_provider, "_today", lambda: "2026-11-20")
  with pytest.raises(SgdxError):
    shout(tmp_path, 4)[1].back_translate(ITEMS, "zh", lambda *_: None)
  monkeypatch.setattr(text_provider, "_today", lambda: "2026-11-21")
  records = shout(tmp_path)[1].back_translate(ITEMS, "zh", lambda *_: None)
  assert [r.date[-2:] for r in records] == ["20"] * 3 + ["21"] * 5


def test_other_settings_have_a_cache_of_their_own(tmp_path):
  shout(tmp_path)[1].back_translate(ITEMS, "zh", lambda *_: None)
  translator, provider = shout(tmp_path)
  translator.settings = lambda source, target: {"seed": 2}
  provider.back_translate(ITEMS, "zh", lambda *_: None)
  assert translator.count("en") == 7


def test_a_translator_that_loses_a_text_is_refused(tmp_path):
  translator, provider = shout(tmp_path)
  translator.translate = lambda batch, source, target: batch[1:]
  with pytest.raises(SgdxError, match="2 translations for 3 texts"):
    provider.back_translate(ITEMS, "zh", lambda *_: None)
  assert list(tmp_path.iterdir()) == []
