"""The tf.data pipeline's examples equal those of the plain Python functions."""

import itertools

import pytest
import seqio
import tensorflow as tf

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.seqio_steps import read_back
from sgdx_t5x.prompts.t5dst import T5DST, PromptStyle
from sgdx_t5x.prompts.t5dst import text as t5dst
from sgdx_t5x.records.builder import frame_records
from sgdx_t5x.tasks import sample_vocabulary

VOCABULARY = sample_vocabulary()
FEATURES = {
  name: seqio.Feature(VOCABULARY, add_eos=True, dtype=tf.int32) for name in ("inputs", "targets")
}


class CorpusSchemas:
  """Schemas straight from a corpus, in place of a builder's metadata."""

  def __init__(self, corpus):
    self.get = lambda split, variant="original": corpus.schema(split, variant)
    self.service = lambda split, name: corpus.schema(split)[name]


@pytest.fixture(scope="module")
def corpus():
  return open_corpus("sample")


def with_several_values(record):
  """Gives the record's first gold value two alternatives (SGD's free slots have up to four)."""
  if record["gold_slot"]:
    record["gold_slot"] += [record["gold_slot"][0]] * 2
    record["gold_value"] += ["Second Best", "third"]
  return record


@pytest.fixture(scope="module")
def records(corpus):
  seen = corpus.seen_services("dev")
  found = [
    {**with_several_values(record), "split": "dev"}
    for dialogue in list(corpus.dialogues("dev"))[::8]
    for record in frame_records(dialogue, corpus.schema("dev"), seen)
  ]
  # White space that only Unicode calls so.
  found[3]["utterances"][-1] = f" \u00a0\u2028{found[3]['utterances'][-1]}\x1f\u3000\x0b"
  return found


def batches(records):
  signature = {
    key: tf.TensorSpec([None], value[1])
    if isinstance(records[0][key], list)
    else tf.TensorSpec([], value[1])
    for key, value in {
      "frame_id": (0, tf.string),
      "split": (0, tf.string),
      "service_index": (0, tf.int32),
      "seen": (0, tf.bool),
      "pick": (0, tf.int32),
      "utterances": (1, tf.string),
      "gold_slot": (1, tf.int32),
      "gold_value": (1, tf.string),
      "active_intent": (0, tf.string),
      "requested_slots": (1, tf.string),
    }.items()
  }
  rows = [{key: record[key] for key in signature} for record in records]
  ds = tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=signature)
  return ds.ragged_batch(64)


def make(corpus, records, variants, style, length=None):
  found = T5DST(style).examples(
    batches(records), lengths(length), FEATURES, schemas=CorpusSchemas(corpus), variants=variants
  )
  return list(found.unbatch().as_numpy_iterator())


def lengths(inputs):
  return {"inputs": inputs, "targets": 32} if inputs else None


def history(record):
  return [(("USER", "SYSTEM")[i % 2], text) for i, text in enumerate(record["utterances"])]


def prompt_text(history, service, slot, style):
  turns = [t5dst.utterance_text(speaker, text, style) for speaker, text in history]
  return " ".join([*turns, t5dst.slot_text(service, slot, style)])


STYLES = {
  "default": PromptStyle(),
  "letters": PromptStyle(values="letters", service_name=False, slot_name=False, lowercase=True),
  "join": PromptStyle(target="join", values="absent", service_description=True),
  "sample": PromptStyle(target="sample", slots="all", lowercase=True),
}


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_equals_the_plain_prompt(corpus, records, style):
  variants = ("original", "v3", "bt_ko")
  expected = []
  for record in records:
    gold = {}
    for slot, value in zip(record["gold_slot"], record["gold_value"], strict=True):
      gold.setdefault(slot, []).append(value)
    for variant in variants:
      service = corpus.schema("dev", variant).services[record["service_index"]]
      original = corpus.schema("dev").services[record["service_index"]]
      slots = t5dst.slot_indices(original, style)
      for i in slots:
        name = f"{variant}/dev/{record['frame_id']}/{original.slots[i].name}"
        expected.append(
          {
            "id": name,
            "inputs": prompt_text(history(record), service, service.slots[i], style),
            "targets": t5dst.target_text(service.slots[i], gold.get(i, []), style, record["pick"]),
            "gold": gold.get(i, []),
            "num_slots": len(slots),
          }
        )
  found = make(corpus, records, variants, style)
  assert len(found) == len(expected)
  for f, e in zip(found, expected, strict=True):
    assert f["example_id_pretokenized"].decode() == e["id"]
    assert f["inputs_pretokenized"].decode() == e["inputs"]
    assert f["targets_pretokenized"].decode() == e["targets"]
    # Concatenated token runs equal the tokens of the joined text.
    assert f["inputs"].tolist() == VOCABULARY.encode(e["inputs"])
    assert f["targets"].tolist() == VOCABULARY.encode(e["targets"])
    assert [v.decode() for v in f["gold"]] == e["gold"]
    assert f["num_slots"] == e["num_slots"]


@pytest.fixture(scope="module")
def uncut(corpus, records):
  return make(corpus, records, ("original",), PromptStyle())


@pytest.mark.parametrize("length", [48, 64, 96])
def test_oldest_turns_are_cut_never_the_slot_prompt(corpus, records, uncut, length):
  num_cut = 0
  for example, whole in zip(
    make(corpus, records, ("original",), PromptStyle(), length), uncut, strict=True
  ):
    inputs, full = example["inputs"].tolist(), whole["inputs"].tolist()
    assert len(inputs) <= length - 1  # </s> still fits
    assert full[len(full) - len(inputs) :] == inputs  # a suffix: newest turns and slot prompt
    if len(inputs) < len(full):
      num_cut += 1
      text = VOCABULARY.decode(inputs)
      assert text.startswith(("[USER]", "[SYSTEM]")) or text.count("[USER]") == 0
  assert num_cut > 10


def test_a_length_without_room_for_the_prompt_is_refused(corpus, records):
  with pytest.raises(SgdxError, match=r"prompt of \d+ tokens") as error:
    make(corpus, records, ("original",), PromptStyle(), 16)
  assert "TASK_FEATURE_LENGTHS" in str(error.value)


def test_what_metrics_are_given(corpus, records):
  example = make(corpus, records, ("v1",), PromptStyle())[0]
  how = {"prompt_format": T5DST(), "schemas": CorpusSchemas(corpus)}
  target = read_back("", example, True, **how)
  name = example["example_id_pretokenized"].decode()
  assert target["id"] == name
  assert target["service_slots"] == 4
  assert read_back("none", example, **how) is None
  assert read_back(" Some  Port", example, **how) == "Some Port"


@pytest.mark.real
def test_runs_equal_joint_tokenisation_on_real_prompts(real_archive, t5_vocabulary_file):
  """T5's pieces never cross white space: 1,000 real prompts."""
  vocabulary = seqio.SentencePieceVocabulary(str(t5_vocabulary_file))
  corpus = open_corpus(real_archive)
  style, num_prompts = PromptStyle(), 0
  for dialogue in corpus.dialogues("dev"):
    turn, frame = list(dialogue.user_frames())[-1]
    said = [(t.speaker, t.utterance) for t in dialogue.turns[: turn + 1]]
    service = corpus.schema("dev")[frame.service]
    for i in service.tracked_slots[:2]:
      prompt = prompt_text(said, service, service.slots[i], style)
      runs = [vocabulary.encode(t5dst.utterance_text(*turn, style)) for turn in said]
      runs.append(vocabulary.encode(t5dst.slot_text(service, service.slots[i], style)))
      assert list(itertools.chain(*runs)) == vocabulary.encode(prompt)
      num_prompts += 1
    if num_prompts >= 1000:
      return
