"""What the schema of a variant is, and where it comes from."""

import os
import pathlib
import re
from collections.abc import Mapping
from typing import Any

from sgdx_t5x.augment import shipped
from sgdx_t5x.augment.corrupt import corrupt_schema
from sgdx_t5x.augment.distances import SGDX, Set
from sgdx_t5x.augment.shipped import shipped_schema
from sgdx_t5x.data.corpus import Corpus
from sgdx_t5x.data.schema import Schema, Service, check_aligned, load_schema, parse_schema
from sgdx_t5x.data.variants import BACK_TRANSLATIONS, ORIGINAL, SGDX_VARIANTS
from sgdx_t5x.errors import SgdxError

_CORRUPTED = re.compile(r"corrupt_(\d+)")


class Schemas:
  """Schemas for a prepared data set, each read or made when first asked for."""

  def __init__(self, source: Any, folders: Mapping[str, str | os.PathLike] | None = None):
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


def corpus_sets(corpus: Corpus) -> dict[str, Set]:
  """Returns SGD-X's variants and the back-translations of a corpus, and those that we ship for it.

  Those that ship are of SGD's train services, and left out where the corpus has its own.
  """
  found = {
    v: {s: corpus.schema(s, v) for s in corpus.splits if corpus.has_schema(s, v)}
    for v in (*SGDX_VARIANTS, *BACK_TRANSLATIONS)
  }
  shipped = {
    v: {s: schema for s in corpus.splits if (schema := shipped_schema(corpus.schema(s), v))}
    for v in BACK_TRANSLATIONS
    if not found[v]
  }
  sets = {
    SGDX: {v: found[v] for v in SGDX_VARIANTS},
    "back-translations": {v: found[v] for v in BACK_TRANSLATIONS},
    "back-translations that ship with sgdx_t5x": shipped,
  }
  sets = {name: {v: x for v, x in variants.items() if x} for name, variants in sets.items()}
  return {name: variants for name, variants in sets.items() if variants}
