"""`sgdx stats`: numbers by hand, the paper's Table 1 on the real schemas, and the command."""

import contextlib
import dataclasses
import io
import json
import sys

import pytest
import tiny_corpus as tiny

from sgdx_t5x.cli import main
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import Intent, Schema, Service, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.variants import distances
from sgdx_t5x.variants.variant_schemas import VariantSchemas


def service(name, slots, intents=("Go",), description="a b c d e"):
  return Service(
    name,
    description,
    tuple(Slot(slot, "a b c d e", False) for slot in slots),
    tuple(Intent(intent, "a b c d e", False, (), {}, ()) for intent in intents),
  )


def with_description(schema, text):
  def change(item):
    return dataclasses.replace(item, description=text)

  return Schema(
    [
      dataclasses.replace(
        change(s), slots=tuple(map(change, s.slots)), intents=tuple(map(change, s.intents))
      )
      for s in schema
    ]
  )


ORIGINAL = Schema([service("Banks_1", ["kitten", "ab"])])
# BLEU-4 of "a b c d f" against "a b c d e": n-gram precisions 4/5, 3/4, 2/3, 1/2.
BLEU = 100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25


# --- by hand -------------------------------------------------------------------------------


def test_distances_by_hand():
  """kitten/sitting: 3 edits of 7; with insertions and deletions only, 5 of 13 characters."""
  variant = Schema([service("Banks_11", ["sitting", "cd"])])
  found = distances.schema_statistics([ORIGINAL], [variant])
  assert (found.num_services, found.num_names, found.num_descriptions) == (1, 3, 4)
  assert found.levenshtein_distance == pytest.approx((3 / 7 + 1 + 0) / 3)
  assert found.indel_distance == pytest.approx((5 / 13 + 1 + 0) / 3)
  assert found.bleu == pytest.approx(100)
  assert (found.slot_names_in_train, found.intent_names_in_train) == (None, None)


def test_bleu_by_hand_ignores_case():
  variant = with_description(ORIGINAL, "A B c d f")
  assert distances.schema_statistics([ORIGINAL], [variant]).bleu == pytest.approx(BLEU)
  both = [{"train": variant}, {"train": ORIGINAL}]
  assert distances.self_bleu({"train": ORIGINAL}, both) == pytest.approx(BLEU)


def test_self_bleu_is_of_all_ordered_pairs():
  """Two of three variants are equal: two of six pairs match, four are as by hand, in one corpus."""
  variants = [with_description(ORIGINAL, text) for text in ("a b c d e", "a b c d e", "a b c d f")]
  found = distances.self_bleu({"test": ORIGINAL}, [{"test": v} for v in variants])
  right = [(2 * n + 4 * (n - 1)) / (6 * n) for n in (5, 4, 3, 2)]
  product = right[0] * right[1] * right[2] * right[3]
  assert found == pytest.approx(100 * product**0.25)


def test_self_bleu_needs_two_variants_of_one_service():
  other = Schema([service("Homes_1", ["ab"])])
  originals = {"train": ORIGINAL, "test": other}
  assert distances.self_bleu(originals, []) is None
  assert distances.self_bleu(originals, [{"train": ORIGINAL}]) is None
  assert distances.self_bleu(originals, [{"train": ORIGINAL}, {"test": other}]) is None


def test_names_in_train_are_counted_by_occurrence():
  """Only of unseen services; among train's slots or intents respectively, and case-sensitive."""
  train = Schema([service("Banks_1", ["time", "Go"], ["Find"])])
  test = Schema(
    [
      service("Banks_1", ["time", "Go"], ["Find"]),
      service("Homes_1", ["time", "area", "Find"], ["Find", "Go"]),
      service("Shops_1", ["time"], ["find", "Buy"]),
    ]
  )
  found = distances.schema_statistics([test], [test], train)
  assert found.slot_names_in_train == pytest.approx(2 / 4)
  assert found.intent_names_in_train == pytest.approx(1 / 4)
  found = distances.schema_statistics([test], [test], train, unseen={"Shops_1"})
  assert (found.slot_names_in_train, found.intent_names_in_train) == (1.0, 0.0)


def test_a_service_of_two_splits_counts_once():
  one = distances.schema_statistics([ORIGINAL], [ORIGINAL])
  assert distances.schema_statistics([ORIGINAL, ORIGINAL], [ORIGINAL, ORIGINAL]) == one


def test_lists_that_do_not_align_are_refused():
  with pytest.raises(SgdxError, match="has 1 slots") as e:
    distances.schema_statistics([ORIGINAL], [Schema([service("Banks_11", ["ab"])], "mine")])
  assert "mine Banks_11" in e.value.found
  assert e.value.fix


def test_a_missing_package_is_told(monkeypatch):
  monkeypatch.setitem(sys.modules, "sacrebleu", None)
  with pytest.raises(SgdxError, match="sacrebleu is not installed") as e:
    distances.corpus_bleu(["a"], ["a"])
  assert e.value.fix == 'pip install "sgdx_t5x[stats]"'


# --- the command ---------------------------------------------------------------------------


@pytest.fixture
def corpus(tmp_path):
  return tiny.write_corpus(tmp_path / "tiny")


def stats(corpus, *args):
  return main(["stats", "--corpus", str(corpus), *map(str, args)])


def test_the_sample(capsys):
  """No numbers from the paper: those are for SGD."""
  assert stats("sample") == 0
  out = capsys.readouterr().out
  table = out.split("slots, intents:")[0]
  assert table.startswith("variants of the corpus")  # not SGD-X
  assert [line.split()[0] for line in table.splitlines() if line.strip()] == [
    *("variants", "services", "original", "v1", "v2", "v3", "v4", "v5", "average", "self-BLEU"),
    *("back-translations", "services", "bt_zh", "bt_ja", "bt_ko", "average", "self-BLEU"),
  ]
  assert "paper" not in table
  assert "\x1b" not in out
  assert all(len(line) <= 80 for line in table.splitlines())
  assert "|corpus:sample:" in out


def test_json_md_and_latex(corpus, capsys):
  """Every intent stays `Do`, no slot keeps its name; Homes_2 is unseen, with its own slots."""
  assert stats(corpus, "--format", "json") == 0
  report = json.loads(capsys.readouterr().out)
  assert report["format"] == "sgdx-stats/1"
  [part] = report["sets"]
  assert list(part["variants"]) == list(tiny.VARIANTS)
  assert part["paper"] is None
  row = part["variants"]["v1"]
  assert (row["num_services"], row["num_names"], row["num_descriptions"]) == (3, 10, 13)
  assert (row["slot_names_in_train"], row["intent_names_in_train"]) == (0.0, 1.0)
  assert part["average"]["bleu"] == pytest.approx(
    sum(x["bleu"] for x in part["variants"].values()) / 5
  )
  assert stats(corpus, "--format", "md") == 0
  assert "| self-BLEU |" in capsys.readouterr().out
  assert stats(corpus, "--format", "latex") == 0
  assert r"\bottomrule" in capsys.readouterr().out


def test_a_folder_named_like_a_set_is_another_set(corpus, tmp_path, capsys, monkeypatch):
  """Regression: the variants of both were averaged in one table."""
  monkeypatch.chdir(tmp_path)
  for name in ("SGD-X", "given"):
    schema = tiny.schema(["Banks_1", "Shops_1"], "v1")
    tiny.write_json(tmp_path / name / "v1/train/schema.json", schema)
  assert stats(corpus, "--schemas", "SGD-X", "given", "--format", "json") == 0
  report = json.loads(capsys.readouterr().out)
  assert [part["name"] for part in report["sets"]] == ["SGD-X", "./SGD-X", "./given"]


def test_folders_of_schemas(corpus, tmp_path, capsys):
  """DIR/zh/train as `sgdx backtranslate` writes it, and its languages alone."""
  tiny.write_json(tmp_path / "bt/zh/train/schema.json", tiny.schema(["Banks_1", "Shops_1"], "v1"))
  tiny.write_json(tmp_path / "bt/ko/train/schema.json", tiny.schema(["Banks_1", "Shops_1"], "v2"))
  tiny.write_json(tmp_path / "lone/test/schema.json", tiny.schema(["Banks_1", "Homes_2"], "v3"))
  folders = (tmp_path / "bt", f"mine={tmp_path / 'lone'}", f"a={tmp_path / 'bt/zh'}")
  assert stats(corpus, "--schemas", *folders, "--format", "json") == 0
  report = json.loads(capsys.readouterr().out)
  rows = {part["name"]: part["variants"] for part in report["sets"]}
  sgdx = rows["SGD-X"]
  assert list(rows) == ["SGD-X", str(tmp_path / "bt"), "given"]
  assert rows[str(tmp_path / "bt")].keys() == {"bt_zh", "bt_ko"}
  assert rows["given"]["a"] == rows[str(tmp_path / "bt")]["bt_zh"]
  assert rows["given"]["a"]["num_services"] == 2
  assert rows["given"]["a"]["slot_names_in_train"] is None
  for key in ("slot_names_in_train", "intent_names_in_train"):
    assert rows["given"]["mine"][key] == sgdx["v3"][key]


@pytest.mark.parametrize(
  ("schemas", "code", "part"),
  [
    (["nowhere"], 1, "no schema in nowhere, which is not a folder"),
    (["x=bt"], 1, "schemas in zh"),
    (["lone"], 1, "no schema in lone"),
    (["short"], 1, "has 1 services"),
    (["bent"], 1, "has 3 slots"),
    (["cut"], 1, "not valid JSON"),
    (["a=bt/zh", "a=bt/zh"], 2, "'a' of 'given' occurs twice"),
  ],
)
def test_bad_schemas_get_four_parts(corpus, tmp_path, monkeypatch, capsys, schemas, code, part):
  monkeypatch.chdir(tmp_path)
  train = tiny.schema(["Banks_1", "Shops_1"], "v1")
  tiny.write_json(tmp_path / "bt/zh/train/schema.json", train)
  tiny.write_json(tmp_path / "lone/schema.json", train)
  tiny.write_json(tmp_path / "short/train/schema.json", train[:1])
  train[0]["slots"].pop()
  train[0]["intents"][0]["result_slots"].pop()
  train[0]["intents"][0]["optional_slots"].pop("balance_v1", None)
  tiny.write_json(tmp_path / "bent/train/schema.json", train)
  tiny.write_json(tmp_path / "cut/train/schema.json", [])
  (tmp_path / "cut/train/schema.json").write_text("[{")
  assert stats(corpus, "--schemas", *schemas) == code
  error = capsys.readouterr().err
  for word in (part, "expected:", "fix:"):
    assert word in error


# --- the paper -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real_report(real_archive):
  """The distances of the released schemas, which take seconds to compute."""
  with contextlib.redirect_stdout(io.StringIO()) as out:
    assert stats(real_archive, "--format", "json") == 0
  return json.loads(out.getvalue())


@pytest.mark.real
def test_table_1_of_the_paper(real_report):
  """Numbers of the released schemas; the paper's shares and BLEU differ slightly."""
  report = real_report
  assert "|services:45|unseen:15|" in report["signature"]
  original = report["original"]
  assert (original["num_names"], original["num_descriptions"]) == (365 + 88, 365 + 88 + 45)
  found = [original, *report["sets"][0]["variants"].values()]
  expected = {
    "slot_names_in_train": (0.65, 0.10, 0.16, 0.07, 0.04, 0.02),
    "intent_names_in_train": (0.71, 0, 0, 0, 0.04, 0.04),
  }
  for key, row in expected.items():
    assert [round(x[key], 2) for x in found] == pytest.approx(row)
  indel = [x["indel_distance"] for x in found[1:]]
  assert indel == pytest.approx([0.30, 0.42, 0.49, 0.56, 0.61], abs=0.0051)  # the paper's
  plain = [x["levenshtein_distance"] for x in found[1:]]
  assert plain == pytest.approx([0.391, 0.544, 0.638, 0.717, 0.769], abs=0.0006)
  bleu = [x["bleu"] for x in found[1:]]
  assert bleu == pytest.approx([18.26, 11.18, 5.13, 2.75, 1.19], abs=0.006)
  assert report["sets"][0]["self_bleu"] == pytest.approx(4.5, abs=0.05)  # the paper's
  assert report["sets"][0]["paper"]["average"]["bleu"] == 7.9


@pytest.mark.real
def test_the_real_table_fits_and_has_the_papers_numbers(
  real_archive, real_report, capsys, monkeypatch
):
  monkeypatch.setattr(distances, "report", lambda *_: real_report)
  assert stats(real_archive) == 0
  out = capsys.readouterr().out
  lines = [line.split() for line in out.splitlines()]
  assert ["v2", "45", "16", "14", "0", "0", "0.421", "0.42", "0.544", "11.2", "11.3"] in lines
  assert ["self-BLEU", "4.5", "4.5"] in lines
  assert all(len(line) <= 80 for line in out.splitlines() if "signature" not in line)


@pytest.mark.real
def test_back_translations_that_ship_are_like_the_papers(real_archive):
  """Paper: indel .14, BLEU 34.1, by Google Translate."""
  corpus = open_corpus(real_archive)
  sets = distances.variant_sets(VariantSchemas(corpus))
  [name] = [name for name in sets if name.startswith("back-translations")]
  [part] = distances.report(corpus, {name: sets[name]})["sets"]
  assert {row["num_services"] for row in part["variants"].values()} == {26}
  assert part["average"]["indel_distance"] == pytest.approx(0.14, abs=0.05)
  assert part["average"]["bleu"] == pytest.approx(34.1, abs=8)
  assert part["paper"]["self_bleu"] == 41.8


@pytest.mark.real
def test_paraphrases_that_ship_are_as_far_as_sgdx(real_archive):
  """Paper, of v1 to v5: indel .48 on average, self-BLEU 4.5."""
  corpus = open_corpus(real_archive)
  sets = distances.variant_sets(VariantSchemas(corpus))
  sets = {
    name: variants
    for name, variants in sets.items()
    if "para_1" in variants or "para_6" in variants
  }
  five, ten = distances.report(corpus, sets)["sets"]
  for part in (five, ten):
    far = [row["indel_distance"] for row in part["variants"].values()]
    assert far == sorted(far)
    assert part["average"]["indel_distance"] > 0.48
    assert part["paper"] is None
  assert five["self_bleu"] < 4.5
  # Ten of one text cannot all be as far from each other as SGD-X's five are.
  assert ten["self_bleu"] < 10
