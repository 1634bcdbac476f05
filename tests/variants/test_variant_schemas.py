"""One answer to "what is the schema of this variant?", whoever asks."""

import json
import re

import pytest
import tiny_corpus as tiny

from sgdx_t5x.cli import main
from sgdx_t5x.corpus import variants
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import load_schema
from sgdx_t5x.corpus.variants import BACK_TRANSLATIONS, PARAPHRASES, SGDX_VARIANTS
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.scoring import score_predictions
from sgdx_t5x.variants.corrupt import corrupt_schema
from sgdx_t5x.variants.shipped import SGD_TRAIN, shipped_schema, wording_checksum
from sgdx_t5x.variants.variant_schemas import VariantSchemas
from sgdx_t5x.variants.wording import NAME, SERVICE, wording


@pytest.fixture
def corpus(tmp_path):
  return open_corpus(tiny.write_corpus(tmp_path / "tiny"))


def write_schema(folder, schema, split="test"):
  (folder / split).mkdir(parents=True)
  (folder / split / "schema.json").write_text(json.dumps(schema.to_json()))
  return folder


def test_each_kind_of_variant(corpus, tmp_path):
  own = write_schema(tmp_path / "own", corrupt_schema(corpus.schema("test"), 9))
  schemas = VariantSchemas(corpus, {"mine": own, "bt_zh": own})
  assert schemas.get("test") is corpus.schema("test")
  assert schemas.get("test", "v3") is corpus.schema("test", "v3")
  corrupted = corrupt_schema(corpus.schema("test"), 2)
  assert schemas.get("test", "corrupt_2").to_json() == corrupted.to_json()
  mine = load_schema((own / "test/schema.json").read_bytes(), "mine")
  assert schemas.get("test", "mine").to_json() == mine.to_json()
  assert schemas.get("test", "bt_zh").to_json() == mine.to_json()  # a folder takes precedence
  assert schemas.get("test", "mine") is schemas.get("test", "mine")


def test_an_unknown_variant_is_refused_with_those_that_exist(corpus):
  schemas = VariantSchemas(corpus)
  with pytest.raises(SgdxError) as e:
    schemas.get("test", "v9")
  assert "no schema of variant 'v9' for split 'test'" in e.value.found
  assert e.value.available == "original, v1, v2, v3, v4, v5, corrupt_1, corrupt_2, ..."
  with pytest.raises(SgdxError, match="no schema of variant 'bt_zh'"):
    schemas.get("test", "bt_zh")
  with pytest.raises(SgdxError, match="no split 'dev'"):
    schemas.get("dev", "corrupt_1")
  assert not schemas.has("test", "v9")


def test_a_folder_without_the_split_is_refused(corpus, tmp_path):
  own = write_schema(tmp_path / "own", corpus.schema("test"))
  with pytest.raises(SgdxError, match=r"(?s)no file at .*train/schema.json.*available: test"):
    VariantSchemas(corpus, {"mine": own}).get("train", "mine")
  found = [VariantSchemas(corpus, {"mine": own}).has(x, "mine") for x in ("train", "test")]
  assert found == [False, True]  # regression: it was an error, also of `sgdx schema-embeddings`


@pytest.mark.long
def test_records_and_corpus_give_the_same_schemas(sample_records, monkeypatch):
  import seqio

  from sgdx_t5x.records.source import RecordSchemas, RecordSource

  monkeypatch.setattr(seqio.utils, "_TFDS_DATA_DIR_OVERRIDE", str(sample_records))
  corpus = open_corpus("sample")
  one, other = (
    VariantSchemas(corpus),
    VariantSchemas(RecordSchemas(RecordSource("sample", "test"))),
  )
  for split in corpus.splits:
    assert one.names(split) == other.names(split)
    for variant in (*one.names(split), "corrupt_1"):
      assert one.get(split, variant).to_json() == other.get(split, variant).to_json()
  for variant in BACK_TRANSLATIONS:  # the sample has its own: the shipped ones are SGD's
    assert one.get("train", variant) is corpus.schema("train", variant)


@pytest.mark.real
def test_prompts_of_back_translations_that_ship_and_of_corrupted_schemas(
  real_archive, tmp_path, capsys
):
  """Both once failed: `sgdx prompts` knew only the variants in the archive."""
  archive = open_corpus(real_archive)
  (tmp_path / "sgd/train").mkdir(parents=True)
  for name in ("train/schema.json", archive.dialogue_files("train")[0]):  # all would take a minute
    (tmp_path / "sgd" / name).write_bytes(archive.source.read(name))
  out = tmp_path / "prompts.jsonl"
  command = ["prompts", "--corpus", str(tmp_path / "sgd"), "--split", "train", "--limit", "9"]
  command += ["--variant", "original", "bt_zh", "corrupt_1", "--out", str(out)]
  assert main(command) == 0, capsys.readouterr().err
  asked = {}
  for row in map(json.loads, out.read_text().splitlines()):
    variant, _, rest = row["id"].partition("/")
    asked.setdefault(variant, {})[rest] = row["prompt"].partition(" [domain] ")[2]
  assert asked["original"].keys() == asked["bt_zh"].keys() == asked["corrupt_1"].keys()
  schemas = {
    "bt_zh": shipped_schema(archive.schema("train"), "bt_zh"),
    "corrupt_1": corrupt_schema(archive.schema("train"), 1),
  }
  for variant, schema in schemas.items():
    names = [slot.name.replace("_", " ") for service in schema for slot in service.slots]
    assert all(any(f"[slot] {name} " in text for name in names) for text in asked[variant].values())
    assert asked[variant] != asked["original"]


def test_prompts_and_files_of_a_folder_of_ones_own(corpus, tmp_path, capsys):
  own = write_schema(tmp_path / "own", corrupt_schema(corpus.schema("test"), 9))
  out, exported = tmp_path / "p.jsonl", tmp_path / "files"
  where = ["--corpus", corpus.origin, "--split", "test"]
  variants = ["--variant", f"mine={own}", "corrupt_9"]
  assert main(["prompts", *where, *variants, "--out", str(out)]) == 0
  rows = [json.loads(line) for line in out.read_text().splitlines()]
  by_variant = {
    v: [r["prompt"] for r in rows if r["id"].startswith(f"{v}/")] for v in ("mine", "corrupt_9")
  }
  assert by_variant["mine"] == by_variant["corrupt_9"]
  assert by_variant["mine"]
  assert main(["data", "export", *where, *variants, "--out", str(exported)]) == 0
  files = sorted(p.relative_to(exported / "mine") for p in (exported / "mine").rglob("*.json"))
  assert len(files) == 3  # the schema and two files of dialogues
  for file in files:
    assert (exported / "mine" / file).read_text() == (exported / "corrupt_9" / file).read_text()
  written = load_schema((exported / "mine/test/schema.json").read_bytes(), "written")
  assert written.to_json() == corrupt_schema(corpus.schema("test"), 9).to_json()
  assert main(["prompts", *where, "--variant", "mine=", "--out", str(out)]) == 2
  assert "NAME=DIR" in capsys.readouterr().err


def test_predictions_for_a_corrupted_schema_are_scored(corpus, tmp_path):
  """`sgdx score` once knew only the released variants, so such answers could not be scored."""
  out, answers = tmp_path / "p.jsonl", tmp_path / "answers.jsonl"
  where = ["--corpus", corpus.origin, "--split", "test", "--variant", "corrupt_1", "original"]
  assert main(["prompts", *where, "--out", str(out)]) == 0
  rows = map(json.loads, out.read_text().splitlines())
  lines = (json.dumps({"id": row["id"], "prediction": "none"}) for row in rows)
  answers.write_text("".join(f"{line}\n" for line in lines))
  scored = score_predictions(corpus, "test", {"all": answers})
  assert list(scored.frames) == ["original", "corrupt_1"]
  for frames in scored.frames.values():
    jga = frames.metrics["joint_goal_accuracy"]
    assert (jga == scored.empty_state_scores.metrics["joint_goal_accuracy"]).all()


def test_paraphrases_are_of_sgds_train_alone(corpus):
  assert wording_checksum(corpus.schema("train")) != SGD_TRAIN  # it has a Banks_1, but not SGD's
  schemas = VariantSchemas(corpus)
  with pytest.raises(SgdxError, match=r"(?s)'para_2' for split 'train'.*sgdx compose"):
    schemas.get("train", "para_2")


@pytest.mark.long
@pytest.mark.real
def test_paraphrases_reword_all_of_real_train_and_hold_nothing_of_sgdx(real_archive):
  archive = open_corpus(real_archive)
  schemas = VariantSchemas(archive)
  assert set(PARAPHRASES) <= set(schemas.names("train"))
  assert not set(PARAPHRASES) & set(schemas.names("dev"))
  forbidden = {
    element: {plain(texts[i]) for texts in words_of(schemas, SGDX_VARIANTS)}
    for i, element in enumerate(wording(archive.schema("train")))
  }
  original = wording(archive.schema("train"))
  for variant, texts in zip(PARAPHRASES, words_of(schemas, PARAPHRASES), strict=True):
    made = schemas.get("train", variant)
    assert made["Buses_1" + variant.removeprefix("para_")].slots[0].name != "from_location"
    for (element, before), text in zip(original.items(), texts, strict=True):
      if (element.kind, element.field) != (SERVICE, NAME):
        assert plain(text) != plain(before), element.key
        assert plain(text) not in forbidden[element], element.key


def words_of(schemas, variants):
  """Returns train's texts for each variant, by position of the element."""
  return [list(wording(schemas.get("train", variant)).values()) for variant in variants]


def plain(text):
  return "".join(filter(str.isalnum, text.lower()))


@pytest.mark.parametrize(
  "name", ["original", "vs", "ned+mine", "a|b", "a+b", "a=b", "..", "a/b", "a\t"]
)
def test_a_name_that_ids_use_for_something_else_is_refused(corpus, tmp_path, name, monkeypatch):
  monkeypatch.setattr(variants, "PERTURBATIONS", ("ned", "vs"))
  own = write_schema(tmp_path / "own", corpus.schema("test"))
  with pytest.raises(SgdxError, match=rf"named {re.escape(repr(name))}"):
    VariantSchemas(corpus, {name: own})
