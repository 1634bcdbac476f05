"""`sgdx compose`: distances and order by hand, SGD-X rebuilt from its own texts, bad input."""

import collections
import json
import re
import sys

import pytest
import tiny_corpus as tiny
from commands import assert_four_parts
from hypothesis import given
from hypothesis import strategies as st

from sgdx_t5x.cli import main
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import Schema, Service, Slot, check_aligned, load_schema
from sgdx_t5x.corpus.variants import SGDX_VARIANTS
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.variants import compose
from sgdx_t5x.variants.wording import NAME, SERVICE, Element, wording

SCHEMA = Schema(
  [Service("Banks_2", "money", (Slot("ab", "one", False), Slot("bc", "two", False)), ())]
)
AB = Element("Banks_2", "slot", "ab", "name")
BC = Element("Banks_2", "slot", "bc", "name")


def compose_names(texts, num_variants, **options):
  return compose.compose(SCHEMA, texts, num_variants, fill=True, **options)


def slot_names(composition, slot=0):
  return [variant.services[0].slots[slot].name for variant in composition.variants]


def placed(composition, element=AB):
  return [(p.variant, p.text, p.distance, p.rules) for p in composition.placements
          if p.element == element]  # fmt: skip


# --- order ---------------------------------------------------------------------------------


def test_names_are_sorted_by_edits():
  """By hand, from "ab". Divided by length, "cd" (2/2) would come after "abcde" (3/5)."""
  made = compose_names({AB: ["abcde", "cd", "ax", "abc"]}, 4)
  assert slot_names(made) == ["ax", "abc", "cd", "abcde"]
  assert [x[:3] for x in placed(made)] == [
    (1, "ax", 1.0),
    (2, "abc", 1.0),  # a tie: the order of the file
    (3, "cd", 2.0),
    (4, "abcde", 3.0),
  ]


def test_names_are_measured_as_written():
  """ "A B" is one edit from "ab", just like "a_b": slot names are lower-cased."""
  assert placed(compose_names({AB: ["A B"]}, 1)) == [(1, "A B", 1.0, ())]


def test_descriptions_are_sorted_by_jaccard_distance_of_lemmas():
  """By hand, from {find, tram, to, harbour}."""
  service = Service("Trams_1", "Find a tram to the harbour", (), ())
  element = Element("Trams_1", "service", "Trams_1", "description")
  texts = [
    "Search any harbour.",  # {search, harbour}: 1 of 5 in common
    "That tram finds this harbour!",  # {tram, find, harbour}: 3 of 4
    "the TRAMS",  # {tram}: 1 of 4
  ]
  made = compose.compose(Schema([service]), {element: texts}, 3)
  assert placed(made, element) == [
    (1, texts[1], 0.25, ()),
    (2, texts[2], 0.75, ()),
    (3, texts[0], 0.8, ()),
  ]
  assert [v.services[0].description for v in made.variants] == [texts[1], texts[2], texts[0]]


words = st.lists(st.text("abcd ", min_size=1).filter(str.strip), max_size=8)


@given(words, words, st.integers(1, 6))
def test_distance_never_falls_and_nothing_is_lost(names, others, num_variants):
  made = compose_names({AB: names, BC: others}, num_variants)
  for element, texts in ((AB, names), (BC, others)):
    rows = placed(made, element)
    used = [row for row in rows if row[0] is not None]
    assert [row[0] for row in used] == list(range(1, num_variants + 1))
    distances = [row[2] for row in used]
    assert distances == sorted(distances)
    kept = [row[1] for row in rows if not {"filled", "none"} & set(row[3])]
    assert sorted(kept) == sorted(texts)
  for variant in made.variants:
    check_aligned(SCHEMA, variant)


# --- rules ---------------------------------------------------------------------------------


def test_rules_are_recorded():
  made = compose_names({AB: ["AB", "abc", "Abc!", "abcde", "abcd"]}, 2)
  assert slot_names(made) == ["abc", "abcd"]
  assert placed(made) == [
    (1, "abc", 1.0, ()),
    (2, "abcd", 2.0, ()),
    (None, "abcde", 3.0, ("surplus",)),
    (None, "AB", 0.0, ("same",)),
    (None, "Abc!", 1.0, ("same",)),
  ]
  made = compose_names({AB: ["abc"]}, 2)
  assert placed(made) == [(1, "abc", 1.0, ()), (2, "abc", 1.0, ("filled",))]
  assert placed(made, BC) == [(1, "bc", 0.0, ("none",)), (2, "bc", 0.0, ("none",))]
  assert {rule for p in made.placements for rule in p.rules} <= compose.PLACEMENT_RULES.keys()


def test_what_the_original_replaces_is_recorded():
  made = compose_names({AB: ["a" * 81, "x"]}, 2)
  (replaced,) = (p for p in made.placements if p.variant and "too long" in p.rules)
  assert (replaced.variant, replaced.rules, replaced.made) == (2, ("too long",), "ab")
  assert slot_names(made) == ["x", "ab"]
  assert {rule for p in made.placements for rule in p.rules} <= compose.PLACEMENT_RULES.keys()


def test_names_that_collide_get_a_number():
  """Only in the variant with the collision, v1; also with an original name that is kept."""
  made = compose_names({AB: ["x", "abab"], BC: ["x", "bbb"]}, 2)
  assert (slot_names(made, 0), slot_names(made, 1)) == (["x", "abab"], ["x_2", "bbb"])
  [repaired] = [p for p in made.placements if p.made]
  assert (repaired.element, repaired.variant, repaired.made) == (BC, 1, "x_2")
  assert repaired.rules == ("collision",)
  made = compose_names({AB: ["bc"]}, 1)
  assert [p.rules for p in made.placements if p.element == BC] == [("none", "collision")]


def test_an_original_that_stays_may_collide_too():
  """Regression: only the last of two repairs was recorded."""
  made = compose_names({AB: ["bc"], BC: ["very " * 20]}, 1)
  assert slot_names(made) + slot_names(made, 1) == ["bc", "bc_2"]
  [kept] = [p for p in made.placements if p.element == BC]
  assert (kept.rules, kept.made) == (("too long", "collision"), "bc_2")


def test_services_are_named_as_in_sgdx():
  """Banks_2 is Banks_21 in v1; the word changes only if a paraphrase is given."""
  service = Element("Banks_2", SERVICE, "Banks_2", NAME)
  made = compose_names({}, 2)
  assert [v.services[0].name for v in made.variants] == ["Banks_21", "Banks_22"]
  assert service not in {p.element for p in made.placements}
  made = compose_names({service: ["money houses"]}, 1)
  assert made.variants[0].services[0].name == "MoneyHouses_21"
  plain = Schema([Service("Banks", "money", (), ())])
  assert compose.compose(plain, {}, 1, fill=True).variants[0].names == ("Banks_1",)


def test_too_few_are_refused():
  with pytest.raises(SgdxError, match="Banks_2/service/Banks_2/description: 0 distinct") as e:
    compose.compose(SCHEMA, {AB: ["x", "y"]}, 2)
  assert "and 3 more elements" in e.value.found
  assert "--fill" in e.value.fix
  one = Schema([Service("Banks_2", "", (), ())])
  with pytest.raises(SgdxError, match="1 distinct"):  # a service name with paraphrases, but too few
    compose.compose(one, {Element("Banks_2", SERVICE, "Banks_2", NAME): ["x", "X"]}, 2)


@pytest.mark.parametrize("text", ["", " ", "!!", "2nd account", "口座"])
def test_texts_that_cannot_be_names_are_refused(text):
  with pytest.raises(SgdxError, match="Banks_2/slot/ab/name: paraphrase"):
    compose_names({AB: ["x", text]}, 1)


def test_a_missing_package_is_told(monkeypatch):
  monkeypatch.setitem(sys.modules, "spacy", None)
  with pytest.raises(SgdxError, match="spacy is not installed") as e:
    compose.lemmatizer()
  assert e.value.fix == 'pip install "sgdx_t5x[compose]"'


# --- the command ---------------------------------------------------------------------------


def rows_of(corpus, splits, variants):
  """Returns the corpus's own variants as lines of a paraphrase file."""
  texts = collections.defaultdict(dict)
  for split in splits:
    for variant in variants:
      made = wording(corpus.schema(split, variant), corpus.schema(split))
      for element, text in made.items():
        if (element.kind, element.field) != (SERVICE, NAME):
          texts[element.key][variant] = text
  return [{"element": key, "paraphrases": list(x.values())} for key, x in texts.items()]


def command(corpus, file, out, *args):
  where = ["--corpus", str(corpus), "--paraphrases", str(file), "--out", str(out)]
  return main(["compose", *where, *args])


def read_schema(out, variant, split):
  path = out / variant / split / "schema.json"
  return load_schema(path.read_bytes(), str(path))


def test_the_sample_of_its_own_variants(tmp_path, capsys):
  """All splits; `sgdx stats` can compare the output, and the record of it is complete."""
  corpus = open_corpus("sample")
  rows = rows_of(corpus, corpus.splits, SGDX_VARIANTS)
  file, out = tiny.write_rows(tmp_path / "texts.jsonl", rows), tmp_path / "out"
  assert command("sample", file, out, "--fill") == 0
  assert f"written: {out}, 5 variants of 18 services" in capsys.readouterr().err
  for split in corpus.splits:
    for variant in SGDX_VARIANTS:
      made = read_schema(out, variant, split)
      check_aligned(corpus.schema(split), made)
      assert made.names == corpus.schema(split, variant).names
  record = [json.loads(line) for line in (out / "paraphrases.jsonl").read_text().splitlines()]
  assert record[0]["format"] == "sgdx-compose/1"
  assert record[0]["splits"] == list(corpus.splits)
  last = {}
  for row in record[1:]:
    if row["variant"]:
      assert row["distance"] >= last.get(row["element"], 0)
      last[row["element"]] = row["distance"]
  total = sum(len(row["paraphrases"]) for row in rows)
  assert sum(not {"filled", "none"} & set(row["rules"]) for row in record[1:]) == total
  assert main(["stats", "--corpus", "sample", "--schemas", str(out), "--format", "json"]) == 0
  mine = json.loads(capsys.readouterr().out)["sets"][-1]["variants"]
  distances = [row["levenshtein_distance"] for row in mine.values()]
  assert distances[0] < distances[-1]


def test_one_split_of_a_file_for_all(tmp_path, capsys):
  corpus = open_corpus(tiny.write_corpus(tmp_path / "tiny"))
  rows = rows_of(corpus, corpus.splits, SGDX_VARIANTS)
  for row in rows:  # the intent has the same name in all variants
    row["paraphrases"] = [f"{x} {i}" for i, x in enumerate(row["paraphrases"])]
  file, out = tiny.write_rows(tmp_path / "texts.jsonl", rows), tmp_path / "out"
  out.mkdir()
  assert command(tmp_path / "tiny", file, out, "--split", "train", "--variants", "3") == 0
  found = sorted(path.relative_to(out).as_posix() for path in out.rglob("*.json*"))
  assert found == ["paraphrases.jsonl", *(f"v{k}/train/schema.json" for k in (1, 2, 3))]
  assert "not used: 7 elements of the file that belong to other splits" in capsys.readouterr().err


GOOD = {"element": "Banks_1/slot/kind/name", "paraphrases": ["sort"]}


@pytest.mark.parametrize(
  ("rows", "args", "code", "part"),
  [
    ([GOOD], [], 1, "Banks_1/service/Banks_1/description: 0 distinct paraphrases"),
    ([GOOD, GOOD], ["--fill"], 1, "line 2: duplicate element Banks_1/slot/kind/name"),
    ([{**GOOD, "element": "Banks_1/slot/kin/name"}], [], 1, "nearest: Banks_1/slot/kind/name"),
    ([{**GOOD, "element": "kind"}], [], 1, "element 'kind'"),
    ([{**GOOD, "paraphrases": "sort"}], [], 1, "line 1"),
    ([{**GOOD, "paraphrases": [1]}], [], 1, "line 1"),
    ([{**GOOD, "paraphrases": [""]}], ["--fill"], 1, "paraphrase ''"),
    ([GOOD], ["--variants", "0"], 2, "--variants 0"),
    ([GOOD], ["--split", "dev"], 1, "no split 'dev'"),
    ([GOOD], ["--paraphrases", "nowhere"], 1, "no file at nowhere"),
    ([GOOD], ["--fill", "--out", "taken"], 1, "--out taken already exists and is not empty"),
    ([GOOD], ["--fill", "--out", "taken/file/out"], 1, "taken/file is a file"),
  ],
)
def test_mistakes_get_four_parts_and_leave_nothing(
  tmp_path, monkeypatch, capsys, rows, args, code, part
):
  monkeypatch.chdir(tmp_path)
  corpus = tiny.write_corpus(tmp_path / "tiny")
  (tmp_path / "taken").mkdir()
  (tmp_path / "taken/file").write_text("earlier")
  file = tiny.write_rows(tmp_path / "texts.jsonl", rows)
  before = sorted(tmp_path.rglob("*"))
  assert command(corpus, file, "out", *args) == code
  error = capsys.readouterr().err
  for word in (part, "expected:", "fix:"):
    assert word in error
  assert sorted(tmp_path.rglob("*")) == before


def test_a_line_that_is_not_json_is_named(tmp_path, capsys):
  corpus = tiny.write_corpus(tmp_path / "tiny")
  (tmp_path / "texts.jsonl").write_text(json.dumps(GOOD) + "\n\n{\n")
  assert command(corpus, tmp_path / "texts.jsonl", tmp_path / "out") == 1
  assert "texts.jsonl, line 3: not valid JSON" in capsys.readouterr().err
  cut = json.dumps(GOOD).replace(", ", " ", 1) + "\n"  # a comma is missing
  (tmp_path / "texts.jsonl").write_text("\ufeff" + json.dumps(GOOD) + "\n" + cut)
  assert command(corpus, tmp_path / "texts.jsonl", tmp_path / "out") == 1
  assert re.search(r"line 2: not valid JSON(?s:.*)correct the line", capsys.readouterr().err)


# --- the paper's variants ------------------------------------------------------------------


@pytest.mark.real
def test_sgdx_is_composed_again_of_its_own_texts(real_archive, tmp_path):
  """Every name of v1 to v5 returns to its variant: the order is that of the released data.

  94% of descriptions do: the paper's lemmas were different.
  """
  corpus = open_corpus(real_archive)
  file = tiny.write_rows(tmp_path / "t.jsonl", rows_of(corpus, corpus.splits, SGDX_VARIANTS))
  assert command(real_archive, file, tmp_path / "out") == 0
  same, descriptions = 0, 0
  for split in corpus.splits:
    for variant in SGDX_VARIANTS:
      theirs, ours = corpus.schema(split, variant), read_schema(tmp_path / "out", variant, split)
      assert ours.names == theirs.names
      for a, b in zip(theirs, ours, strict=True):
        for x, y in zip((*a.slots, *a.intents), (*b.slots, *b.intents), strict=True):
          assert x.name == y.name
          same += x.description == y.description
          descriptions += 1
  assert same / descriptions > 0.93


@pytest.mark.real
def test_in_any_order_of_the_file_distances_are_those_of_sgdx(real_archive):
  """With each list reversed, only ties change places."""
  corpus = open_corpus(real_archive)
  schema = corpus.schema("test")
  rows = rows_of(corpus, ["test"], SGDX_VARIANTS)
  texts = {Element.from_key(r["element"]): r["paraphrases"] for r in rows}
  names = {e: x for e, x in texts.items() if e.field == NAME}
  forward = compose.compose(schema, names, fill=True)
  backward = compose.compose(schema, {e: x[::-1] for e, x in names.items()}, fill=True)
  assert [p.distance for p in forward.placements] == [p.distance for p in backward.placements]
  assert all([p.text for p in forward.placements if p.element == e] == x for e, x in names.items())


def test_a_file_to_fill_in_lists_every_element_and_is_never_replaced(tmp_path, capsys):
  file = tmp_path / "texts.jsonl"
  init = ["compose", "--corpus", "sample", "--init", str(file)]
  assert main(init) == 0
  assert capsys.readouterr().err.startswith(f"written: {file}, ")
  again = [*init[:-1], str(tmp_path / "three.jsonl"), "--variants", "3"]
  assert main(again) == 0
  assert "--variants 3" in capsys.readouterr().err  # of the command to run next
  rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
  assert len({row["element"] for row in rows}) == len(rows) > 100
  assert all(row["paraphrases"] == [] and row["original"] for row in rows)
  for row in rows:  # what a user fills in
    row["paraphrases"] = [f"other {row['original']}"]
  file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
  filled = file.read_bytes()
  assert main(init) == 1
  assert_four_parts(capsys.readouterr().err, str(file), "exists")
  assert file.read_bytes() == filled
  out = ["--out", str(tmp_path / "mine"), "--variants", "1"]
  assert main(["compose", "--corpus", "sample", "--paraphrases", str(file), *out]) == 0
  assert main([*init, *out]) == 2
  assert main(["compose", "--corpus", "sample", "--paraphrases", str(file)]) == 2
