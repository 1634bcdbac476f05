"""SpanDST's tasks: what its examples contain, and that gold answers score 1."""

import contextlib
import dataclasses
import re

import numpy as np
import pytest
import seqio
from records import records_of
from span_answers import right_answer

from sgdx_t5x import tasks
from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
from sgdx_t5x.corpus.schema import Intent, Schema, Service, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.spandst import answers, features, span_examples, span_features
from sgdx_t5x.spandst.span_features import LENGTHS, SpanReader
from sgdx_t5x.spandst.span_text import SpanStyle
from sgdx_t5x.tasks.spandst import register_spandst, turn_accuracies

ID = "example_id_pretokenized"


@pytest.fixture(autouse=True)
def data_dir(small_sample):
  with records_of(small_sample / "data"):
    yield


def examples(name, split, **how):
  ds = seqio.get_mixture_or_task(name).get_dataset(LENGTHS, split, **how)
  return list(ds.as_numpy_iterator())


def test_the_model_reads_what_the_tasks_give():
  assert span_features.FEATURES == features.TASK_FEATURES
  task = seqio.get_mixture_or_task("sample_spandst_sgd")
  assert task.output_features["inputs"].vocabulary == tasks.sample_encoder_vocabulary()
  assert tasks.REGISTERED["sample_spandst_backtrans"].format == "spandst"
  assert tasks.REGISTERED["spandst_oracle"].mixture


def test_examples_point_to_what_they_mean():
  found = examples("sample_spandst_sgd_sgdx", "test", shuffle=False)
  vocabulary = tasks.sample_encoder_vocabulary()
  schema = open_corpus(SAMPLE).schema("test", "v3")
  example = next(e for e in found if e[ID].startswith(b"v3/"))
  ids, service = example["inputs"], example[ID].decode().rsplit("-", 1)[1].removesuffix("/*")
  original = open_corpus(SAMPLE).schema("test")
  shown = schema.services[original.names.index(service)]
  assert len(example["slots"]) == len(shown.slots)
  assert len(example["values"]) == sum(len(slot.possible_values) for slot in shown.slots)
  assert set(ids[example["slots"]]) == {vocabulary.marker(2)}
  assert set(ids[example["values"]]) == {vocabulary.marker(3)}
  assert set(ids[example["intents"]]) == {vocabulary.marker(4)}
  words = vocabulary.cut(shown.slots[0].name.replace("_", " ")).ids
  start = example["slots"][0] + 1
  assert tuple(ids[start : start + len(words)]) == words
  assert len(ids) == len(example["segments"]) <= LENGTHS["inputs"]
  assert len(example["value_slots"]) == len(example["values"])
  for one in found:
    numbers = [row for row in answers.target_rows(one["targets"])]
    assert len(set(numbers)) == len(numbers)
    for slot, kind, first, last in numbers:
      assert 0 <= slot <= len(one["slots"])
      if kind == answers.SPAN:
        assert first <= last
        assert len(set(one["segments"][first : last + 1])) == 1
        assert one["segments"][first] in (answers.SYSTEM_UTTERANCE, answers.USER_UTTERANCE)


def test_variants_differ_in_texts_alone():
  found = examples("sample_spandst_sgd_sgdx", "test", shuffle=False)
  original, v1 = found[0], found[1]
  assert original[ID].split(b"/", 1)[1] == v1[ID].split(b"/", 1)[1]
  assert [len(original[k]) for k in ("slots", "values")] == [
    len(v1[k]) for k in ("slots", "values")
  ]
  for name in ("slot_context", "intent_context", "value_slots", "targets"):
    np.testing.assert_array_equal(original[name], v1[name])


def test_frames_to_train_on_have_an_order_of_their_own():
  one, two = (examples("sample_spandst_sgd", "train", shuffle=True, seed=s) for s in (1, 2))
  by_id = {e[ID]: e for e in two}
  for example in one[:20]:
    np.testing.assert_array_equal(example["inputs"], by_id[example[ID]]["inputs"])
  source = tasks.REGISTERED["sample_spandst_sgd"]
  assert source.variants == ("original",)
  first_slots = {}
  for e in one:
    service = e[ID].decode().rsplit("-", 1)[1]
    first_slots.setdefault(service, set()).add(tuple(e["inputs"][e["slots"][0] :][:6]))
  assert max(map(len, first_slots.values())) > 2


def test_a_share_of_the_training_frames_is_read_as_plain_text():
  """Without acts: no value that the system gave may be taken over as such, no act is marked."""
  task = register_spandst(
    "sample_spandst_plain_sgd",
    data="sample",
    variants=["original"],
    vocabulary=tasks.sample_encoder_vocabulary,
    style=SpanStyle(plain_text=0.5),
  )
  try:
    plain = {e[ID]: e for e in examples(task.name, "train", shuffle=False)}
    test = examples(task.name, "test", shuffle=False)
  finally:
    seqio.TaskRegistry.remove(task.name)
    del tasks.REGISTERED[task.name]
  annotated = examples("sample_spandst_sgd", "train", shuffle=False)
  of_acts = answers.SYSTEM_OPEN | sum(span_features._ACT_BITS.values()) | span_features.IS_SYSTEMS
  with_acts = [e for e in annotated if any(e["slot_context"] & of_acts)]
  read_without = [e for e in with_acts if not any(plain[e[ID]]["slot_context"] & of_acts)]
  assert 0.4 < len(read_without) / len(with_acts) < 0.6
  without = {e[ID] for e in read_without}
  for example in with_acts:
    same = (example["slot_context"] == plain[example[ID]]["slot_context"]).all()
    assert same == (example[ID] not in without)
  for one, other in zip(test, examples("sample_spandst_sgd", "test", shuffle=False), strict=True):
    np.testing.assert_array_equal(one["slot_context"], other["slot_context"])


def test_schemas_of_your_own(tmp_path):
  """v3's schemas from a folder give v3's examples, and mix with the original's."""
  source = open_corpus(SAMPLE).source
  (tmp_path / "dev").mkdir()
  (tmp_path / "dev/schema.json").write_bytes(source.read("sgd_x/data/v3/dev/schema.json"))
  task = register_spandst(
    "sample_spandst_sgd_mine",
    data="sample",
    variants=["mine"],
    vocabulary=tasks.sample_encoder_vocabulary,
    folders={"mine": tmp_path},
  )
  mixture = tasks.register_mixture("sample_spandst_mine", ["sample_spandst_sgd", task.name])
  try:
    assert tasks.REGISTERED[mixture.name].variants == ("original", "mine")
    released = examples("sample_spandst_sgdx_v3", "dev", shuffle=False)
    for one, other in zip(examples(task.name, "dev", shuffle=False), released, strict=True):
      for name in span_features.FEATURES:
        np.testing.assert_array_equal(one[name], other[name])
  finally:
    registries = (task.name, seqio.TaskRegistry), (mixture.name, seqio.MixtureRegistry)
    for name, registry in registries:
      registry.remove(name)
      del tasks.REGISTERED[name]


def test_metrics_of_turns():
  found = examples("sample_spandst_sgd", "dev", shuffle=False)
  rows, vectors = (
    [e["targets"] for e in found],
    [right_answer(e["targets"], len(e["slots"])) for e in found],
  )
  assert set(turn_accuracies(rows, vectors).values()) == {1.0}
  kept = [[0, 0] + [1, 0, 0, 0, 0, 0] * len(e["slots"]) for e in found]
  scores = turn_accuracies(rows, kept)
  assert scores["change_accuracy"] == 0
  assert 0 < scores["frame_accuracy"] < scores["slot_accuracy"] < 1


def test_a_schema_too_long_says_by_how_much():
  corpus = open_corpus(SAMPLE)
  schema = corpus.schema("test")
  from sgdx_t5x.records.turns import user_turns

  context = next(user_turns(next(corpus.dialogues("test")), schema))[0]
  reader = SpanReader(schema, tasks.sample_encoder_vocabulary(), lengths={"inputs": 60})
  with pytest.raises(SgdxError) as e:
    reader.example(context, {})
  assert "too many" in e.value.found
  assert "at most 28 of inputs=60" in e.value.expected
  reader = SpanReader(schema, tasks.sample_encoder_vocabulary(), lengths={"values": 1})
  with pytest.raises(SgdxError, match="values"):
    [reader._service_pieces(i, 30) for i in range(len(schema))]
  # Descriptions are cut first, then the start of the system's utterance, then of the user's.
  short = SpanReader(schema, tasks.sample_encoder_vocabulary(), lengths={"inputs": 384})
  full = short.example(context, {})
  least = len(full.features["inputs"]) - 10
  cut = SpanReader(schema, tasks.sample_encoder_vocabulary(), lengths={"inputs": least})
  assert len(cut.example(context, {}).features["inputs"]) <= least


def test_values_of_other_services_leave_room_for_utterances():
  """A schema that passes `check` fits with any dialogue."""
  from sgdx_t5x.records.turns import NONE, ServiceState, user_turns

  corpus, vocabulary = open_corpus(SAMPLE), tasks.sample_encoder_vocabulary()
  services = corpus.schema("test").services
  context = next(user_turns(next(corpus.dialogues("test")), corpus.schema("test")))[0]
  service = services[context.service]
  schema = Schema([service, dataclasses.replace(service, name="Other_1")])
  context = dataclasses.replace(context, service=0)
  values = {
    slot: (f"a rather long value {slot} of another service",)
    for slot, _ in enumerate(service.slots)
  }
  states = {1: ServiceState(0, NONE, values)}
  full = SpanReader(schema, vocabulary).example(context, states)
  with pytest.raises(SgdxError) as e:
    SpanReader(schema, vocabulary, lengths={"inputs": 60}).check()
  shortest = 60 + int(re.search(r"(\d+) too many", e.value.found)[1])
  reader = SpanReader(schema, vocabulary, lengths={"inputs": shortest})
  reader.check()
  short = reader.example(context, states)
  assert len(short.features["inputs"]) <= shortest
  assert len(short.features["memory"]) < len(full.features["memory"]) == len(values)
  assert short.choices.memory == full.choices.memory[: len(short.choices.memory)]
  with pytest.raises(SgdxError, match="1 too many"):
    SpanReader(schema, vocabulary, lengths={"inputs": shortest - 1}).check()


def test_a_service_that_does_not_fit_is_told_before_the_first_batch():
  """Regression: told while tf.data ran, which made it an error of its own, with a traceback."""
  services = open_corpus(SAMPLE).schema("test").services
  given = ("test", services, {"v3": Schema(services)}, tasks.sample_encoder_vocabulary())
  with pytest.raises(SgdxError, match="without the utterances"):
    span_examples.span_examples(*given, {"inputs": 60}, style=SpanStyle())


def test_slots_that_are_not_shown_take_no_room():
  """Regression: a service was refused, with the advice to leave out what was left out."""
  many = tuple(Slot(f"extra_{i}", "a slot that no intent takes", False) for i in range(30))
  find = Intent("Find", "", False, ("kind",), {}, ())
  service = Service("A_1", "", (Slot("kind", "", False), *many), (find,))
  vocabulary = tasks.sample_encoder_vocabulary()
  for style, fits in ((SpanStyle(all_slots=False), True), (SpanStyle(), False)):
    reader = SpanReader(Schema([service]), vocabulary, style, {"inputs": 128, "slots": 40})
    with contextlib.nullcontext() if fits else pytest.raises(SgdxError, match="too many"):
      reader.check()
