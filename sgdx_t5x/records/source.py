"""What tasks read: the records of a prepared data set, and the wordings to ask in."""

import os
import pathlib
import re
import zlib
from collections.abc import Mapping

import seqio
import tensorflow as tf

import sgdx_t5x.records.builder  # noqa: F401  # TFDS finds the builder once it is imported
from sgdx_t5x.augment import shipped
from sgdx_t5x.augment.corrupt import corrupt_schema
from sgdx_t5x.data.schema import Schema, Service, check_aligned, load_schema, parse_schema
from sgdx_t5x.data.variants import ORIGINAL
from sgdx_t5x.errors import SgdxError

_SHUFFLED_RECORDS = 20_000  # about 30 MB of SGD
# T5X's gin files speak of validation, the field of dev.
_SPLITS = {"train": "train", "dev": "dev", "validation": "dev", "test": "test"}
_CORRUPTED = re.compile(r"corrupt_(\d+)")


class RecordSource(seqio.TfdsDataSource):
  """The records of `sgd`; says how to prepare them where they are missing."""

  def __init__(self, config: str, name: str):
    """Args: config is "full" or "sample"; name, of the task, gives the order of shuffling."""
    super().__init__(tfds_name=f"sgd/{config}:1.0.0", splits=_SPLITS, read_only=True)
    self._config, self._name = config, name

  def metadata(self) -> Mapping:
    """The builder's metadata. Raises SgdxError if nothing is prepared."""
    builder = self.tfds_dataset.builder
    if not builder.info.metadata:
      what = "--sample" if self._config == "sample" else "--archive FILE (or --download)"
      raise SgdxError(
        f"no records of {self.tfds_dataset.name} at {builder.data_dir}",
        expected="a prepared data set",
        fix=f"sgdx data prepare {what} --data-dir DIR, and give the same DIR as --tfds_data_dir",
      )
    return builder.info.metadata

  def get_dataset(self, split=None, shuffle=True, seed=None, *args, **kwargs):
    """As TfdsDataSource, after making sure that there is something to read.

    SeqIO shuffles within 1,000 examples: a few hundred frames, and in a mixture the same frames
    for each schema version at the same time. So records are shuffled here too, in an
    order of its own for each task.
    """
    self.metadata()
    if shuffle and seed is not None:
      seed = (seed + zlib.crc32(self._name.encode())) % 2**31
    records = super().get_dataset(split, shuffle, seed, *args, **kwargs)
    if shuffle:
      records = records.shuffle(_SHUFFLED_RECORDS, seed=seed)
    records.sgdx_split = _SPLITS.get(split)  # for `_split_of`
    return records

  def num_input_examples(self, split):
    """Number of records of a split."""
    self.metadata()
    return super().num_input_examples(split)

  def list_shards(self, split):
    """Files of a split."""
    self.metadata()
    return super().list_shards(split)


def split_of(records: tf.data.Dataset) -> str | None:
  """The split a dataset was read from.

  Its first record says it, but asking that fills the shuffle's buffer; so RecordSource's datasets
  carry it, under whatever SeqIO put on top of them.
  """
  dataset = records
  while dataset is not None:
    if split := getattr(dataset, "sgdx_split", None):
      return split
    dataset = next(iter(dataset._inputs()), None)
  for record in records.take(1).as_numpy_iterator():
    return record["split"].decode()
  return None


class Schemas:
  """Schemas for a prepared data set, each read or made when first asked for."""

  def __init__(self, source: RecordSource, folders: Mapping[str, str | os.PathLike] | None = None):
    """Args: source; folders, variant -> folder of its schemas, see `sgdx_t5x.tasks.register`."""
    self._source, self._folders = source, dict(folders or {})
    self._cache: dict[tuple[str, str], Schema] = {}

  def get(self, split: str, variant: str = ORIGINAL) -> Schema:
    """Returns a split's schema in the wording of a variant, aligned with the original.

    That is, the first there is of: the folder given for the variant; the schemas of the data set
    (original, v1 to v5, bt_* if its corpus has them); if that has no bt_*, back-translations that
    ship with this package (bt_zh, bt_ja, bt_ko, for SGD's train services); corruption (corrupt_1,
    corrupt_2 ...: the number is the seed).

    Raises:
      SgdxError: there is none, or it does not align.
    """
    key = (split, variant)
    if key not in self._cache:
      schema = self._find(split, variant)
      if schema is None:
        raise self._missing(split, variant)
      self._cache[key] = schema
    return self._cache[key]

  def service(self, split: str, name: str) -> Service:
    """Returns a service in the original wording."""
    return self.get(split)[name]

  def _find(self, split: str, variant: str) -> Schema | None:
    if variant in self._folders:
      return _read_folder(pathlib.Path(self._folders[variant]), split, self.get(split))
    schemas = self._source.metadata()["schemas"]
    if split in schemas.get(variant, {}):
      return parse_schema(schemas[variant][split], f"{variant} schema of {split}")
    # Not beside somebody's own: a mixture of two translators would be neither's.
    own = any(split in schemas[v] for v in schemas if v.startswith("bt_"))
    if variant.startswith("bt_") and split in schemas[ORIGINAL] and not own:
      return shipped.shipped_schema(self.get(split), variant)
    if (seed := _CORRUPTED.fullmatch(variant)) and split in schemas[ORIGINAL]:
      return corrupt_schema(self.get(split), int(seed[1]))[0]
    return None

  def _missing(self, split: str, variant: str) -> SgdxError:
    schemas = self._source.metadata()["schemas"]
    fix = "prepare a corpus that has it with: sgdx data prepare --archive FILE --overwrite"
    if variant.startswith("bt_"):
      fix = (
        "back-translations of SGD's train services ship with sgdx_t5x; make those of other "
        f"services with sgdx backtranslate --split {split} --out FOLDER, and register FOLDER (see "
        "tasks/README.md)"
      )
    return SgdxError(
      f"{self._source.tfds_dataset.name}: no schema of variant {variant!r} for split {split!r}",
      expected="a variant of the prepared data set, or a registered folder of schemas",
      available=", ".join(v for v in schemas if split in schemas[v]),
      fix=fix,
    )


def _read_folder(folder: pathlib.Path, split: str, original: Schema) -> Schema:
  path = folder / split / "schema.json"
  if not path.is_file():
    raise SgdxError(
      f"no file at {path}",
      expected=f"the schemas of {split} in the folder registered for this wording",
      available=", ".join(sorted(p.parent.name for p in folder.glob("*/schema.json"))),
      fix="put it there, or use a split that the folder has",
    )
  schema = load_schema(path.read_bytes(), str(path))
  check_aligned(original, schema)
  return schema
