"""What tasks read: the records of a prepared data set, and the schemas stored with them."""

import contextlib
import itertools
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import seqio
import tensorflow as tf

from sgdx_t5x import annexes
from sgdx_t5x.corpus.schema import Schema, parse_schema
from sgdx_t5x.corpus.variants import ORIGINAL
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.records.tracker_fields import FIELDS
from sgdx_t5x.records.turns import no_acts, no_spans

_SHUFFLED_RECORDS = 20_000  # about 20 MB of SGD
_RECORDS_AT_A_TIME = 128
_FILES_AT_A_TIME, _RECORDS_OF_EACH = 16, 16  # as TFDS reads
_REFUSALS = {"acts": no_acts, "spans": no_spans}
# T5X's gin files say "validation", the field says "dev".
_SPLITS = {"train": "train", "dev": "dev", "validation": "dev", "test": "test"}


class RecordSource(seqio.TfdsDataSource):
  """The records of `sgd`, serialized until `batches`; errors say how to prepare missing ones.

  TFDS parses record by record, which takes 15 times as long as parsing many at once.
  """

  def __init__(
    self, config: str, name: str, tracker: str | None = None, needs: Sequence[str] = ("acts",)
  ):
    """Reads the newest prepared version of the records.

    Args:
      config: "full", "sample", or that of a perturbed corpus, see `builder.config_name`.
      name: of the task; part of the shuffle seed.
      tracker: name, for errors, of the tracker that reads the fields of `tracker_fields`; None
        leaves these fields out.
      needs: annotations that the tracker cannot be trained without: "acts" of the system, "spans"
        of the users' values.
    """
    super().__init__(tfds_name=f"sgd/{config}:1.*.*", splits=_SPLITS, read_only=True)
    self._config, self._name, self._tracker, self._needs = config, name, tracker, tuple(needs)

  def metadata(self) -> Mapping:
    """The builder's metadata. Raises SgdxError if no usable records are prepared."""
    fix = f"{self._preparing()}, and pass the same DIR as --tfds_data_dir"
    missing, builder = f"no records of sgd/{self._config}", None
    with contextlib.suppress(ValueError):  # TFDS finds no config of a name of one's own
      builder = self.tfds_dataset.builder
      missing += f" at {builder.data_dir}"
    if builder is None or not builder.info.metadata:
      raise SgdxError(missing, expected="a prepared data set", fix=fix)
    if self._tracker and not builder.info.features.keys() >= set(FIELDS):
      raise SgdxError(
        f"{builder.data_dir}: records of version {builder.version}",
        expected=f"version 1.1.0 or newer, with the annotation that {self._tracker} reads",
        available="tasks of T5DST, D3ST and SDT, which can use these records",
        fix=fix,
      )
    return builder.info.metadata

  def _preparing(self) -> str:
    """The command that prepares these records."""
    if self._config in ("full", "sample"):
      corpus_option = (
        "--corpus sample" if self._config == "sample" else "--corpus FILE (or --download)"
      )
      return f"sgdx data prepare {corpus_option} --data-dir DIR"
    name = self._config.removeprefix("sample_")
    prepare = f"sgdx data prepare --corpus CORPUS --name {self._config} --data-dir DIR"
    if name not in annexes.table("RECORDS"):
      return prepare
    command = annexes.table("RECORDS")[name][0]
    if self._config.startswith("sample_"):
      command = command.replace("--corpus FILE", "--corpus sample")
    return f"`{command}`, then `{prepare}`"

  def get_dataset(self, split="train", shuffle=True, seed=None, shard_info=None, **unused):
    """Returns serialized records, in the order in which TfdsDataSource gives them.

    SeqIO shuffles within 1,000 examples: a few hundred frames, and in a mixture the same frames
    for each variant at the same time. So records are shuffled here too, in a
    different order for each task.
    """
    metadata, field = self.metadata(), _SPLITS.get(split, split)
    if field not in metadata["counts"]:
      raise SgdxError(
        f"records of {metadata['corpus']}: no split {split!r}",
        expected="a split that was prepared",
        available=", ".join(metadata["counts"]),
        fix="choose one of them; the split dev is also called validation",
      )
    for need in self._needs if self._tracker else ():
      if place := metadata.get(f"without_{need}", {}).get(field):
        raise _REFUSALS[need](f"records of {metadata['corpus']}, {field}, {place}", self._tracker)
    if shuffle and seed is not None:
      seed = (seed + zlib.crc32(self._name.encode())) % 2**31
    # From here on as TFDS reads, but without parsing.
    paths = [os.fspath(part.filename) for part in self.tfds_dataset.files(split)]
    files = tf.data.Dataset.from_tensor_slices(paths)
    if shard_info:
      files = files.shard(shard_info.num_shards, shard_info.index)
    if shuffle:
      files = files.shuffle(len(paths), seed=seed)
    records = files.interleave(
      tf.data.TFRecordDataset,
      cycle_length=_FILES_AT_A_TIME,
      block_length=_RECORDS_OF_EACH,
      num_parallel_calls=tf.data.AUTOTUNE,
      deterministic=True,
    )
    if not shard_info:  # fewer are an error
      number = tf.data.experimental.assert_cardinality(self.num_input_examples(split))
      records = records.apply(number)
    if shuffle:
      records = records.shuffle(_SHUFFLED_RECORDS, seed=seed)
    records.sgdx_split = _SPLITS.get(split)  # for `split_of`
    return records

  def batches(self, records: tf.data.Dataset) -> tf.data.Dataset:
    """SeqIO preprocessor: serialized records -> parsed batches, with lists as ragged tensors."""
    specs = self.tfds_dataset.info.features.get_tensor_spec()
    left_out = () if self._tracker else FIELDS  # prompts do without them, and parsing takes time
    specs = {name: spec for name, spec in specs.items() if name not in left_out}
    features = {name: _parsed_as(spec) for name, spec in specs.items()}

    @tf.autograph.experimental.do_not_convert  # converting takes longer than tracing
    def parse(serialized):
      columns = tf.io.parse_example(serialized, features)
      return {name: tf.cast(columns[name], spec.dtype) for name, spec in specs.items()}

    return records.batch(_RECORDS_AT_A_TIME).map(parse)

  def num_input_examples(self, split):
    """Number of records of a split; None if there is no such split."""
    has = _SPLITS.get(split, split) in self.metadata()["counts"]
    return super().num_input_examples(split) if has else None

  def list_shards(self, split):
    """Files of a split."""
    self.metadata()
    return super().list_shards(split)


def flat_fields(
  batch: Mapping[str, Any], scalars: Sequence[str], lists: Sequence[str]
) -> list[tf.Tensor]:
  """Returns fields of a batch as flat tensors, since `tf.numpy_function` takes no ragged ones.

  Args:
    batch: of `RecordSource.batches`.
    scalars: names of fields with a value per record, the first of those returned.
    lists: names of fields with a list per record; each gives its values, then its row splits.
  """
  tensors = [batch[name] for name in scalars]
  for name in lists:
    tensors += [batch[name].flat_values, batch[name].row_splits]
  return tensors


def rows_of_fields(arrays: Sequence[np.ndarray], num_scalars: int) -> Iterator[tuple]:
  """Yields the fields of each record as Python values. Args: arrays, from `flat_fields`."""
  lists = arrays[num_scalars:]
  columns: list[Iterable] = [scalar.tolist() for scalar in arrays[:num_scalars]]
  columns += map(_rows, lists[::2], lists[1::2])
  return zip(*columns, strict=True)


def _rows(values: np.ndarray, splits: np.ndarray) -> list[list]:
  values = values.tolist()  # at once: items of an array are slow to take one by one
  return [values[start:end] for start, end in itertools.pairwise(splits.tolist())]


def _parsed_as(spec: tf.TensorSpec) -> tf.io.FixedLenFeature | tf.io.RaggedFeature:
  kind = tf.string if spec.dtype == tf.string else tf.int64  # as TFDS writes int32 and bool
  if spec.shape.rank == 0:
    return tf.io.FixedLenFeature([], kind)
  return tf.io.RaggedFeature(kind, row_splits_dtype=tf.int64)


class RecordSchemas:
  """The schemas stored with prepared records; a `variant_schemas.ReleasedSchemas`."""

  def __init__(self, source: RecordSource):
    """Args: source, read when a schema is first requested."""
    self._source = source
    self._parsed: dict[tuple[str, str], Schema] = {}

  @property
  def origin(self) -> str:
    """Name of the data set, for errors."""
    return self._source.tfds_dataset.name

  @property
  def splits(self) -> tuple[str, ...]:
    """Splits that were prepared."""
    return tuple(self._stored()[ORIGINAL])

  @property
  def variants(self) -> tuple[str, ...]:
    """Variants with a schema for some split, `original` first."""
    return tuple(self._stored())

  def has_schema(self, split: str, variant: str) -> bool:
    """Whether there is a schema of that variant for that split."""
    return split in self._stored().get(variant, {})

  def schema(self, split: str, variant: str = ORIGINAL) -> Schema:
    """Returns a split's schema. Raises SgdxError if nothing of that split is prepared."""
    if not self.has_schema(split, variant):
      raise SgdxError(
        f"{self.origin}: no {variant} schema of split {split!r}",
        expected="a split of the prepared data set",
        available=", ".join(self.splits),
        fix="prepare a corpus that has it, in another folder: sgdx data prepare --corpus FILE",
      )
    key = (split, variant)
    if key not in self._parsed:
      origin = f"{variant} schema of {split}"
      self._parsed[key] = parse_schema(self._stored()[variant][split], origin)
    return self._parsed[key]

  def _stored(self) -> Mapping[str, Mapping[str, Any]]:
    return self._source.metadata()["schemas"]


def split_of(batches: tf.data.Dataset) -> str | None:
  """The split that batches of records were read from.

  The first batch says it, but reading that fills the shuffle buffer; so RecordSource's datasets
  carry it as an attribute, found beneath whatever SeqIO has stacked on them.
  """
  dataset = batches
  while dataset is not None:
    if split := getattr(dataset, "sgdx_split", None):
      return split
    dataset = next(iter(dataset._inputs()), None)
  for batch in batches.take(1).as_numpy_iterator():
    return batch["split"][0].decode()
  return None
