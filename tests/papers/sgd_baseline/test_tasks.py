"""The SGD baseline's tasks: what their examples refer to, and what they refuse."""

import json

import numpy as np
import pytest
import seqio
from records import records_of
from span_answers import right_answer
from task_names import PARAPHRASED, SUFFIXES, unregistered
from tiny_corpus import write_corpus

from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.sgd_baseline import baseline_model, schema_table, tasks
from sgdx_t5x.papers.sgd_baseline.baseline_features import (
  FEATURES,
  LENGTHS,
  BaselineStyle,
  intent_texts,
  slot_texts,
)
from sgdx_t5x.records.prepare import prepare
from sgdx_t5x.records.source import RecordSource
from sgdx_t5x.spandst import answers
from sgdx_t5x.tasks import REGISTERED
from sgdx_t5x.tasks.spandst import turn_accuracies
from sgdx_t5x.tasks.vocabularies import sample_encoder_vocabulary

ID = "example_id_pretokenized"


@pytest.fixture(scope="module")
def found(small_sample):
  with records_of(small_sample / "data"):
    ds = seqio.get_mixture_or_task("sample_baseline_sgd_sgdx").get_dataset(
      LENGTHS, "test", shuffle=False
    )
    return list(ds.as_numpy_iterator())


def test_the_model_reads_what_the_tasks_give():
  assert set(baseline_model.BaselineFeatureConverter.TASK_FEATURES) == set(FEATURES)
  assert REGISTERED["sample_baseline_backtrans"].format == "baseline"
  assert REGISTERED["baseline_oracle"].style_or_format == BaselineStyle()


def test_all_tasks_and_mixtures_are_there():
  assert unregistered(["baseline"], SUFFIXES) == set()
  assert {f"baseline_{suffix}" for suffix in PARAPHRASED} <= set(REGISTERED)


def test_examples_name_elements_of_their_variant(found):
  corpus, table = open_corpus(SAMPLE), tasks.sample_schema_embeddings()
  original, style = corpus.schema("test"), BaselineStyle()
  for example in (found[0], next(e for e in found if e[ID].startswith(b"v3/"))):
    variant = example[ID].decode().split("/")[0]
    name = example[ID].decode().rsplit("-", 1)[1].removesuffix("/*")
    shown = corpus.schema("test", variant).services[original.names.index(name)]
    slots = [table.texts[row - 1] for row in example["slots"]]
    assert slots == [slot_texts(shown, slot, style) for slot in shown.slots]
    intents = [table.texts[row - 1] for row in example["intents"]]
    assert intents == [intent_texts(shown, intent, style) for intent in shown.intents]
  assert len(found[0]["inputs"]) == len(found[0]["segments"]) <= LENGTHS["inputs"]


def test_the_samples_table_is_not_to_be_made_again():
  """Regression: the fix was to make a table that the sample's model never reads."""
  with pytest.raises(SgdxError, match="the sample's table") as e:
    tasks.sample_schema_embeddings().row(("Loans", "book_title Title"))
  assert "schema-embeddings" not in e.value.fix
  assert "baseline.gin" in e.value.fix


def test_a_table_without_a_variant_is_told_before_the_first_batch():
  """Regression: told while tf.data ran, which made it an error of its own, with a traceback."""
  corpus, texts = open_corpus(SAMPLE), tasks.sample_schema_embeddings().texts
  table = schema_table.SchemaTable(texts[:9], origin="part.npz")
  original, shown = corpus.schema("test").services, {"v3": corpus.schema("test", "v3")}
  given = ("test", original, shown, sample_encoder_vocabulary(), LENGTHS)
  with pytest.raises(SgdxError, match=r"part\.npz: no schema embedding of") as e:
    tasks.baseline_examples(*given, style=BaselineStyle(), table=lambda: table)
  assert "sgdx schema-embeddings" in e.value.fix


def test_variants_differ_in_rows_alone(found):
  original, v1 = found[0], found[1]
  assert original[ID].split(b"/", 1)[1] == v1[ID].split(b"/", 1)[1]
  for name in ("inputs", "segments", "slot_context", "value_slots", "targets"):
    np.testing.assert_array_equal(original[name], v1[name])
  assert (original["slots"] != v1["slots"]).any()


def test_metrics_of_right_answers(found):
  rows = [e["targets"] for e in found]
  vectors = [right_answer(e["targets"], len(e["slots"])) for e in found]
  assert set(turn_accuracies(rows, vectors).values()) == {1.0}
  kinds = {row[1] for one in rows for row in answers.target_rows(one)}
  assert kinds >= {answers.SPAN, answers.VALUE, answers.DONTCARE, answers.REQUESTED, answers.INTENT}


def test_a_corpus_without_spans_is_refused_by_name(tmp_path):
  corpus = write_corpus(tmp_path / "corpus")
  for file in corpus.glob("*/dialogues_*.json"):
    dialogues = json.loads(file.read_text())
    for dialogue in dialogues:
      for turn in dialogue["turns"]:
        for frame in turn["frames"]:
          frame.pop("slots", None)
    file.write_text(json.dumps(dialogues))
  prepare(open_corpus(corpus), tmp_path / "data")
  sources = [RecordSource("full", "test", "the SGD baseline", needs) for needs in (["spans"], [])]
  for source in sources:
    source.tfds_dataset.override_data_dir(str(tmp_path / "data"))
  with pytest.raises(SgdxError) as e:
    sources[0].get_dataset("test")
  assert e.value.found.startswith("records of corpus, test, dialogue 1_00000, turn 0: ")
  assert "the SGD baseline" in e.value.expected
  assert "SpanDST" in e.value.available
  assert next(iter(sources[1].get_dataset("test")))


def test_a_table_must_be_there_and_is_read_again_if_it_changes(tmp_path, monkeypatch):
  monkeypatch.delenv("SGDX_SCHEMA_EMBEDDINGS", raising=False)
  with pytest.raises(SgdxError, match="SGDX_SCHEMA_EMBEDDINGS is not set") as e:
    tasks.schema_embeddings()
  assert "sgdx schema-embeddings" in e.value.fix
  file = tmp_path / "table.npz"
  monkeypatch.setenv("SGDX_SCHEMA_EMBEDDINGS", str(file))
  with pytest.raises(SgdxError, match=r"table\.npz"):
    tasks.schema_embeddings()
  for text in ("a", "b"):
    table = schema_table.SchemaTable(((text, text),), np.zeros((1, 4), np.float32))
    schema_table.write_table(table, file)
    assert tasks.schema_embeddings().texts == ((text, text),)
