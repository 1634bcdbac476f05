"""SGP-DST's tasks: their names, their examples, metrics, and what is refused."""

import numpy as np
import pytest
import seqio
from commands import assert_four_parts
from records import records_of

from sgdx_t5x import tasks
from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
from sgdx_t5x.corpus.schema import Intent, Schema, Service, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.sgpdst import sgpdst_answers as a
from sgdx_t5x.papers.sgpdst import sgpdst_model
from sgdx_t5x.papers.sgpdst.sgpdst import PARTS
from sgdx_t5x.papers.sgpdst.sgpdst_features import FEATURES, SgpStyle
from sgdx_t5x.papers.sgpdst.tasks import (
  copy_scores,
  intent_accuracy,
  sgpdst_examples,
  slot_accuracies,
)
from sgdx_t5x.records.source import RecordSource
from sgdx_t5x.tasks.vocabularies import sample_encoder_vocabulary

ID = "example_id_pretokenized"
LENGTHS = {"inputs": 300}


def examples(name, split, **how):
  ds = seqio.get_mixture_or_task(name).get_dataset(LENGTHS, split, **how)
  return list(ds.as_numpy_iterator())


@pytest.fixture(scope="module")
def dev(small_sample):
  with records_of(small_sample / "data"):
    return {part: examples(f"sample_sgpdst_{part}_sgd", "dev", shuffle=False) for part in PARTS}


def test_names_formats_and_features():
  for part in PARTS:
    for name in (f"sgpdst_{part}_oracle", f"sample_sgpdst_{part}_sgdx_v3"):
      assert tasks.REGISTERED[name].format == f"sgpdst_{part}"
  assert tasks.REGISTERED["sgpdst_copy_backtrans"].mixture
  assert tuple(sgpdst_model.SgpFeatureConverter.TASK_FEATURES) == FEATURES


def test_every_slot_of_every_frame_is_asked_about_but_those_that_copy_answers(dev):
  schema, expected = open_corpus(SAMPLE).schema("dev"), set()
  for frame in (ExampleId.parse(e[ID].decode()) for e in dev["intent"]):
    expected |= {(frame.frame_id, slot.name) for slot in schema[frame.service].slots}
  for example in dev["copy"]:
    asked = ExampleId.parse(example[ID].decode())
    if example["targets"][0] == a.YES and asked.slot in schema[asked.service].noncategorical_slots:
      expected.remove((asked.frame_id, asked.slot))
  asked = [ExampleId.parse(e[ID].decode()) for e in dev["combine"]]
  assert sorted((x.frame_id, x.slot) for x in asked) == sorted(expected)
  for example in dev["combine"]:
    assert len(example["targets"]) == 5
    assert len({len(example[name]) for name in FEATURES[:-1]}) == 1
  assert {int(e["targets"][0]) for e in dev["copy"]} == {a.NO, a.YES}


def test_train_is_a_sample_with_system_turns(small_sample):
  with records_of(small_sample / "data"):
    name = "sample_sgpdst_combine_sgd"
    found = examples(name, "train", shuffle=False)
    twice = examples(name, "train", shuffle=False, num_epochs=2)
  ids, both = ([e[ID].decode() for e in x] for x in (found, twice))
  assert both[: len(ids)] == ids
  assert both[len(ids) :] != ids  # another sample in the second epoch
  system = [e for e in found if e[ID].endswith(b"?system")]
  assert 0 < len(system) < len(found)
  assert all(a.USER not in e["segments"] for e in system)
  nothing = [e["targets"][2:].tolist() == [1, a.NO, a.NO] for e in found]
  assert 0.2 < np.mean(nothing) < 0.8  # about 85% before sampling


def test_metrics_of_right_answers_are_one_and_of_null_are_low(dev):
  targets = [e["targets"] for e in dev["combine"]]
  right = [[t[0], t[1], 0, t[2], 0, a.MILLION * (t[3] == a.YES)] for t in targets]
  assert set(slot_accuracies(targets, right).values()) == {1.0}
  nothing = [[int(np.argmax(e["segments"] == a.NULL))] * 2 + [0, 1, 0, 0] for e in dev["combine"]]
  scores = slot_accuracies(targets, nothing)
  assert (scores["span_accuracy"], scores["option_accuracy"], scores["requested_f1"]) == (0, 0, 0)
  assert scores["none_accuracy"] == 1
  intents = [e["targets"] for e in dev["intent"]]
  assert intent_accuracy(intents, [[t[0], 0] for t in intents]) == {"intent_accuracy": 1.0}
  pairs = [[a.YES], [a.YES], [a.NO], [a.NO]]  # by hand: recall 1/2, precision 1/2
  said = [[0, 900_000], [0, 100_000], [0, 900_000], [0, 100_000]]
  assert set(copy_scores(pairs, said).values()) == {0.5}


@pytest.mark.parametrize("part", PARTS)
def test_a_schema_that_does_not_fit_is_told_before_the_first_batch(part):
  """Regression: told while tf.data ran, which made it an error of its own, with a traceback."""
  long = " ".join(["word"] * 200)
  slots = (Slot(long, long, False), Slot("kind", "", True, tuple(map(str, range(15)))))
  schema = Schema([Service("A_1", "", slots, (Intent(long, long, False, (), {}, ()),))])
  given = ("test", schema.services, {"mine": schema}, sample_encoder_vocabulary(), {"inputs": 100})
  with pytest.raises(SgdxError, match="service A_1: ") as e:
    sgpdst_examples(*given, part=part, style=SgpStyle())
  assert "TASK_FEATURE_LENGTHS" in e.value.expected


def test_corpora_without_acts_are_refused(small_sample, monkeypatch):
  metadata = RecordSource.metadata
  place = {"dev": "dialogue 1_00001, turn 1"}
  with records_of(small_sample / "data"):
    changed = lambda self: {**metadata(self), "without_acts": place}  # noqa: E731
    monkeypatch.setattr(RecordSource, "metadata", changed)
    with pytest.raises(SgdxError) as e:
      examples("sample_sgpdst_copy_sgd", "dev")
  assert_four_parts(str(e.value), "SGP-DST", "dialogue 1_00001, turn 1")
