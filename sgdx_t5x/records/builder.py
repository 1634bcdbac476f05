"""TensorFlow Datasets builder `sgd`: one record per user frame, stored once.

A record is written for the original schema. Variants and back-translations are in the
builder's metadata as schema tables; what a variant calls a slot is looked up when a
prompt is made (see `sgdx_t5x/prompts/`), so no copy of the dialogues is ever written.
"""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import tensorflow_datasets as tfds

from sgdx_t5x import annexes
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import EMPTY_STATE, Dialogue, example_pick, frame_id
from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import as_text
from sgdx_t5x.records import tracker_fields
from sgdx_t5x.records.turns import without_acts, without_spans

FULL = "full"
# The official archive; TFDS's own builder `schema_guided_dialogue` has the same address.
ARCHIVE_URL = (
  "https://github.com/google-research-datasets/dstc8-schema-guided-dialogue/"
  "archive/refs/heads/master.zip"
)

_ANNEX_CONFIGS = []
for _name, (_command, *_) in annexes.table("RECORDS").items():
  for _prefix in ("", f"{SAMPLE}_"):
    _ANNEX_CONFIGS.append(
      tfds.core.BuilderConfig(name=f"{_prefix}{_name}", description=f"A corpus of `{_command}`.")
    )

# Metadata key -> function that returns a dialogue's first turn without that annotation.
_ANNOTATED = {"without_acts": without_acts, "without_spans": without_spans}


class Sgd(tfds.core.GeneratorBasedBuilder):
  """Schema-Guided Dialogue and SGD-X (config "full"), or the embedded sample ("sample").

  Perturbed corpora have configs of their own: "KIND", "sample_KIND", or any other name.

  Fill it with `sgdx data prepare`; `sgdx_t5x.records.prepare` does the same from Python.
  """

  VERSION = tfds.core.Version("1.1.0")
  RELEASE_NOTES: ClassVar = {
    "1.1.0": "What the system did, the states before the turn, spans: tracker_fields.py.",
    "1.0.0": "One record per user frame; schemas of all variants in the metadata.",
  }
  BUILDER_CONFIGS: ClassVar = [
    tfds.core.BuilderConfig(name=FULL, description="The official archive, SGD-X schemas included."),
    tfds.core.BuilderConfig(name=SAMPLE, description="The sample corpus of sgdx_t5x."),
    *_ANNEX_CONFIGS,
  ]
  corpus: Corpus | None = None  # where records come from; None: sample, or the official archive
  on_dialogue: Callable[[str, dict[str, int]], None] | None = None  # called with the counts so far

  def _info(self) -> tfds.core.DatasetInfo:
    text = tfds.features.Text()
    features = {
      "frame_id": text,
      "dialogue_id": text,
      "split": text,
      "turn": np.int32,  # index among all turns of the dialogue
      "service": text,  # by its name in the original schema
      "service_index": np.int32,  # in the split's schema
      "seen": np.bool_,  # whether train's schema has the service
      "pick": np.int32,  # pseudo-random, fixed: picks one of several gold values
      "utterances": tfds.features.Sequence(text),  # from the first turn, USER first
      "gold_slot": tfds.features.Sequence(np.int32),  # position of the slot of each gold value
      "gold_value": tfds.features.Sequence(text),
      "active_intent": text,
      "requested_slots": tfds.features.Sequence(text),
      **tracker_fields.features(),
    }
    return self.dataset_info_from_configs(
      features=tfds.features.FeaturesDict(features),
      homepage="https://github.com/google-research-datasets/dstc8-schema-guided-dialogue",
      metadata=tfds.core.MetadataDict(),
    )

  def _split_generators(self, dl_manager: tfds.download.DownloadManager):
    corpus = self.corpus
    if corpus is None:
      is_sample = self.builder_config.name == SAMPLE
      corpus = open_corpus(SAMPLE if is_sample else dl_manager.download(ARCHIVE_URL))
    schemas: dict[str, dict[str, list]] = {}  # tasks look up here what a variant calls a slot
    for variant in corpus.variants:
      schemas[variant] = {}
      for split in corpus.splits:
        if corpus.has_schema(split, variant):
          schemas[variant][split] = corpus.schema(split, variant).to_json()
    self.info.metadata.update(
      corpus=corpus.name, checksum=corpus.checksum(), schemas=schemas, counts={}, complete={}
    )
    for annotation in _ANNOTATED:
      self.info.metadata[annotation] = {}  # split -> the first place, if any
    # A split with a schema alone has no records; train's schema says which services are seen.
    splits = [split for split in corpus.splits if next(corpus.dialogues(split), None)]
    if not splits:
      raise SgdxError(
        f"{corpus.origin}: no dialogues",
        expected="dialogues_*.json in train/, dev/ or test/, with a dialogue or more",
        available=corpus.file_counts(),
        fix="add the dialogues; sgdx data verify checks them",
      )
    return {split: self._generate_examples(corpus, split) for split in splits}

  def _generate_examples(self, corpus: Corpus, split: str):
    schema, seen_services = corpus.schema(split), corpus.seen_services(split)
    counts = {"dialogues": 0, "user_turns": 0, "frames": 0}
    for dialogue in corpus.dialogues(split):
      counts["dialogues"] += 1
      turns = set()
      for annotation, first_turn_without in _ANNOTATED.items():
        if (turn := first_turn_without(dialogue)) is not None:
          place = f"dialogue {dialogue.dialogue_id}, turn {turn}"
          self.info.metadata[annotation].setdefault(split, place)
      for record in frame_records(dialogue, schema, seen_services):
        turns.add(record["turn"])
        counts["frames"] += 1
        yield record["frame_id"], {**record, "split": split}
      counts["user_turns"] += len(turns)
      if self.on_dialogue is not None:
        self.on_dialogue(split, counts)
    self.info.metadata["counts"][split] = counts
    self.info.metadata["complete"][split] = corpus.is_complete(split, counts["dialogues"])


def config_name(corpus: Corpus | None) -> str:
  """Returns the config of a corpus' records: "full", "sample", "KIND", "sample_KIND_aug"...

  "_aug" marks a perturbed train split, which is training data.
  """
  if corpus is None:
    return FULL
  manifest = next(filter(None, map(corpus.manifest, corpus.splits)), None)
  if manifest is None:
    return SAMPLE if corpus.name == SAMPLE else FULL
  prefix = f"{SAMPLE}_" if corpus.name.split("+")[0] == SAMPLE else ""
  suffix = "_aug" if manifest.split == "train" else ""
  return f"{prefix}{manifest.label}{suffix}"


def frame_records(dialogue: Dialogue, schema: Schema, seen_services: frozenset[str]):
  """Yields the records of a dialogue's user frames, without their split."""
  utterances = [as_text(turn.utterance) for turn in dialogue.turns]
  position = {name: i for i, name in enumerate(schema.names)}
  fields = tracker_fields.tracker_fields(dialogue, schema)
  for (turn, frame), of_trackers in zip(dialogue.user_frames(), fields, strict=True):
    slot_index, state = schema[frame.service].slot_index, frame.state or EMPTY_STATE
    gold_slots: list[int] = []  # a slot with several values recurs
    gold_values: list[str] = []
    for slot, values in state.slot_values.items():
      gold_slots += [slot_index[slot]] * len(values)
      gold_values += map(as_text, values)
    for field in tracker_fields.TEXTS:
      of_trackers[field] = [*map(as_text, of_trackers[field])]
    name = frame_id(dialogue.dialogue_id, turn, frame.service)
    yield {
      "frame_id": name,
      "dialogue_id": dialogue.dialogue_id,
      "turn": turn,
      "service": frame.service,
      "service_index": position[frame.service],
      "seen": frame.service in seen_services,
      "pick": example_pick(name),
      "utterances": utterances[: turn + 1],
      "gold_slot": gold_slots,
      "gold_value": gold_values,
      "active_intent": state.active_intent,
      "requested_slots": list(state.requested_slots),
      **of_trackers,
    }
