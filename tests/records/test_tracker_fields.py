"""What records hold for trackers, and which trackers refuse records without it."""

import pytest
import seqio
import tensorflow_datasets as tfds
from records import records_of
from tiny_corpus import GOLD, dialogue, write_corpus, write_json

from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.records import builder, tracker_fields
from sgdx_t5x.records.builder import Sgd, frame_records
from sgdx_t5x.records.prepare import prepare
from sgdx_t5x.records.source import RecordSource
from sgdx_t5x.records.turns import ServiceState, gold_turns, user_turns


def encoded(record):
  def of(x):
    return x.encode() if isinstance(x, str) else x

  return {k: [of(x) for x in v] if isinstance(v, list) else of(v) for k, v in record.items()}


def compare(dialogue, schema):
  """Checks the context, previous states and gold read from records; returns the frame count."""
  states, records = {}, frame_records(dialogue, schema, frozenset())
  turns = zip(user_turns(dialogue, schema), gold_turns(dialogue, schema), strict=True)
  count = 0
  for contexts, gold in turns:
    for one, right in zip(contexts, gold, strict=True):
      service = schema.services[one.service]
      found = tracker_fields.read_frame(encoded(next(records)), service)
      assert found == (one, states, right)
      count += 1
    pairs = zip(contexts, gold, strict=True)
    new = {o.service: ServiceState(o.turn, g.intent, g.values) for o, g in pairs}
    states = {**states, **new}
  return count


def test_records_say_what_dialogues_do():
  corpus = open_corpus(SAMPLE)
  schema = corpus.schema("test")
  assert sum(compare(found, schema) for found in corpus.dialogues("test")) > 500


def test_values_of_one_slot_in_several_acts_are_the_same_in_records():
  corpus = open_corpus(SAMPLE)
  schema = corpus.schema("test")
  for found in corpus.dialogues("test"):
    data, several = found.to_json(), False
    for turn in data["turns"]:
      for frame in turn["frames"]:
        if actions := frame.get("actions"):
          several = True
          frame["actions"] = [
            x for action in actions for x in (action, {**action, "values": ["z"]})
          ]
    if several:
      compare(Dialogue.from_json(data), schema)


@pytest.mark.long
@pytest.mark.real
def test_records_say_what_sgds_dialogues_do(real_archive):
  corpus = open_corpus(real_archive)
  schema = corpus.schema("dev")
  assert sum(compare(found, schema) for found in corpus.dialogues("dev")) == 26_077


@pytest.fixture
def old_records(tmp_path, monkeypatch, small_sample):
  """The sample's records as version 1.0.0 wrote them."""
  monkeypatch.setattr(tracker_fields, "features", dict)
  monkeypatch.setattr(Sgd, "VERSION", tfds.core.Version("1.0.0"))
  monkeypatch.setattr(builder, "frame_records", lambda *how: map(without, frame_records(*how)))
  prepare(open_corpus(small_sample / "sample"), tmp_path)
  monkeypatch.undo()
  return tmp_path


def without(record):
  return {k: v for k, v in record.items() if k not in tracker_fields.FIELDS}


def examples(data_dir):
  with records_of(data_dir):
    task = seqio.get_mixture_or_task("sample_t5dst_sgd")
    found = task.get_dataset({"inputs": 224, "targets": 20}, "test", shuffle=False)
    return [repr(example) for example in found.take(500).as_numpy_iterator()]


def test_old_records_serve_formats_that_read_utterances(old_records, small_sample):
  assert [p.name for p in (old_records / "sgd/sample").iterdir() if p.is_dir()] == ["1.0.0"]
  new = examples(small_sample / "data")
  assert len(new) > 100  # of six dialogues
  assert examples(old_records) == new


def test_old_records_are_refused_by_name(old_records):
  source = RecordSource("sample", "test", tracker="SpanDST")
  source.tfds_dataset.override_data_dir(str(old_records))
  with pytest.raises(SgdxError) as e:
    source.get_dataset("test")
  assert "records of version 1.0.0" in e.value.found
  assert "SpanDST" in e.value.expected
  assert "sgdx data prepare --corpus sample" in e.value.fix


def test_records_without_acts_are_refused_by_name(tmp_path):
  corpus = write_corpus(tmp_path / "corpus")
  write_json(corpus / "train/dialogues_001.json", [dialogue("1_00000", GOLD["1_00000"])])
  prepare(open_corpus(corpus), tmp_path / "data")
  source = RecordSource("full", "test", tracker="SpanDST")
  source.tfds_dataset.override_data_dir(str(tmp_path / "data"))
  with pytest.raises(SgdxError) as e:
    source.get_dataset("test")
  assert e.value.found.startswith("records of corpus, test, dialogue 1_00000, turn 1: ")
  assert "T5DST" in e.value.available
  others = RecordSource("full", "test")
  others.tfds_dataset.override_data_dir(str(tmp_path / "data"))
  assert next(iter(others.get_dataset("test")))


def test_lone_surrogates_are_written_as_question_marks():
  """JSON may hold them; UTF-8, which records are in, cannot."""
  corpus = open_corpus(SAMPLE)
  data = next(corpus.dialogues("test")).to_json()
  data["turns"][0]["utterance"] += " caf\udce9"
  for action in data["turns"][1]["frames"][0]["actions"]:
    action["values"] = [f"{value}\ud83d" for value in action["values"]]
  values = data["turns"][0]["frames"][0]["state"]["slot_values"]
  slot, found = next(iter(values.items()))
  values[slot] = [f"{found[0]}\ud83d"]
  schema = corpus.schema("test")
  records = list(frame_records(Dialogue.from_json(data), schema, frozenset()))
  assert records[0]["utterances"][0].endswith(" caf?")
  assert f"{found[0]}?" in records[0]["gold_value"]
  for record in records:
    encoded(record)
