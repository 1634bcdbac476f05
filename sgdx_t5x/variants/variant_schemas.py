"""What the schema of a variant is, and where it comes from: the one answer for every command.

A variant of a split's schema is the first of these that exists:

  a folder    of the user's, given as NAME=FOLDER: FOLDER/{split}/schema.json
  released    in the data set: original, v1 to v5, and bt_* where its corpus has them
  shipped     with this package: bt_zh, bt_ja, bt_ko and para_1 to para_15 of SGD's train services
  corrupted   corrupt_1, corrupt_2 ...: the number is the seed

For a perturbed corpus, "ned" is the original, and "ned+v3" is v3.
"""

import functools
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from sgdx_t5x import annexes
from sgdx_t5x.corpus.schema import Schema, check_aligned, load_schema
from sgdx_t5x.corpus.variants import (
  BACK_TRANSLATIONS,
  ORIGINAL,
  PARAPHRASES,
  PERTURBATIONS,
  SGDX_VARIANTS,
  untagged,
)
from sgdx_t5x.errors import SgdxError, escaped
from sgdx_t5x.files.writing import is_folder_name
from sgdx_t5x.variants.corrupt import corrupt_schema
from sgdx_t5x.variants.shipped import shipped_schema

# Variant that ships for some services -> (command that writes others, subfolder of its --out).
_WRITERS = {**dict.fromkeys(PARAPHRASES, ("sgdx compose", "v1")), **annexes.table("REWORDINGS")}
_CORRUPTED = re.compile(r"corrupt_(\d+)")
_SEPARATORS = re.compile(r"[|+=]")  # of the fields in a signature, and within them


class ReleasedSchemas(Protocol):
  """Schemas that belong to a data set: those of a `Corpus`, or of prepared records."""

  @property
  def origin(self) -> str:
    """Name of the data set, for errors."""

  @property
  def splits(self) -> tuple[str, ...]:
    """Splits that it has."""

  @property
  def variants(self) -> tuple[str, ...]:
    """Variants with a schema for some split, `original` first."""

  def has_schema(self, split: str, variant: str) -> bool:
    """Whether there is a schema of that variant for that split."""

  def schema(self, split: str, variant: str = ORIGINAL) -> Schema:
    """Returns it, aligned with the original. Raises SgdxError if there is none."""


class VariantSchemas:
  """The schemas of a data set in any variant, each read or made when first asked for."""

  def __init__(
    self, released: ReleasedSchemas, folders: Mapping[str, str | os.PathLike] | None = None
  ):
    """Args: released, schemas of the data set; folders, variant -> folder of custom schemas.

    Raises:
      SgdxError: a custom variant has a name that means something else, such as v1 of SGD-X, whose
        scores it would be taken for; or one that is no folder's, or would break up a signature.
    """
    # The last four have a meaning where a variant's name is in the key of a score: jga_orig.
    reserved = (ORIGINAL, *SGDX_VARIANTS, "orig", "v1_5", "reworded", "all")
    for name in folders or ():
      is_name = is_folder_name(name) and escaped(name) == name and not _SEPARATORS.search(name)
      if name in reserved or untagged(name)[0] or not is_name:
        raise SgdxError(
          f"a variant of your own named {name!r}",
          expected="a folder's name, without | + =, that does not stand for something else",
          available=f"all but {', '.join((*reserved, *PERTURBATIONS))}",
          fix="name it, for example, my_" + re.sub(r"[^-.\w]", "_", name),
        )
    self._released, self._folders = released, dict(folders or {})
    self._find_once = functools.cache(self._find)

  def get(self, split: str, variant: str = ORIGINAL) -> Schema:
    """Returns a split's schema in a variant, aligned with the original; see the module docstring.

    Raises:
      SgdxError: an unknown split or variant, or a schema that does not align.
    """
    schema = self._find_once(split, variant)
    if schema is not None:
      return schema
    fix = (
      "choose one of them; for a folder of your own, pass NAME=DIR to --variant, or to --schemas "
      "of `sgdx score` and `report`; SGD-X is part of the official archive"
    )
    if variant in _WRITERS:
      command, folder = _WRITERS[variant]
      fix = (
        "this variant of SGD's train services ships with sgdx_t5x; make that of other services "
        f"with `{command} --split {split} --out FOLDER` and use FOLDER/{folder} as a variant of "
        "your own (tasks/README.md)"
      )
    raise SgdxError(
      f"{self._released.origin}: no schema of variant {variant!r} for split {split!r}",
      expected="a variant from the data set, from this package, or in a folder of your own",
      available=", ".join((*self.names(split), "corrupt_1, corrupt_2, ...")),
      fix=fix,
    )

  def has(self, split: str, variant: str) -> bool:
    """Whether there is a schema of that variant for that split."""
    folder = self._folders.get(untagged(variant)[1])
    # A folder need not have every split; where it has none, `get` says so with an error.
    if folder is not None and not pathlib.Path(folder, split, "schema.json").is_file():
      return False
    return self._find_once(split, variant) is not None

  def names(self, split: str) -> tuple[str, ...]:
    """Variants of a split that can be listed: all but the corrupted ones, which are unlimited."""
    names = (*self._released.variants, *BACK_TRANSLATIONS, *PARAPHRASES, *self._folders)
    return tuple(name for name in dict.fromkeys(names) if self.has(split, name))

  def by_variant(
    self, variants: Sequence[str], shipped: bool = False
  ) -> dict[str, dict[str, Schema]]:
    """Returns variant -> split -> schema of those variants that the data set has, or that ship."""
    find = self._find_shipped if shipped else self._find_released
    by_variant: dict[str, dict[str, Schema]] = {}
    for variant in variants:
      for split in self._released.splits:
        if (schema := find(split, variant)) is not None:
          by_variant.setdefault(variant, {})[split] = schema
    return by_variant

  def _find(self, split: str, variant: str) -> Schema | None:
    """Returns a schema, read or made; None if there is none of that variant."""
    kinds, variant = untagged(variant)
    if kinds:  # "ned+v3": a perturbed corpus has the schemas of its original
      return self.get(split, variant) if self.has(split, variant) else None
    if variant in self._folders:
      return _read_folder(pathlib.Path(self._folders[variant]), split, self.get(split))
    if variant == ORIGINAL:
      return self._released.schema(split)  # or its error, which says what there is
    for find in (self._find_released, self._find_shipped):
      if (schema := find(split, variant)) is not None:
        return schema
    if seed := _CORRUPTED.fullmatch(variant):
      return corrupt_schema(self.get(split), int(seed[1]))
    return None

  def _find_released(self, split: str, variant: str) -> Schema | None:
    if self._released.has_schema(split, variant):
      return self._released.schema(split, variant)
    return None

  def _find_shipped(self, split: str, variant: str) -> Schema | None:
    # Not alongside the data set's own: that would mix two translators.
    has_own = any(self._released.has_schema(split, name) for name in BACK_TRANSLATIONS)
    if variant in BACK_TRANSLATIONS and has_own:
      return None
    return shipped_schema(self._released.schema(split), variant)


def _read_folder(folder: pathlib.Path, split: str, original: Schema) -> Schema:
  path = folder / split / "schema.json"
  if not path.is_file():
    raise SgdxError(
      f"no file at {path}",
      expected=f"the schemas of {split} in the folder given for this variant",
      available=", ".join(sorted(p.parent.name for p in folder.glob("*/schema.json"))),
      fix="put it there, or use a split that the folder has",
    )
  schema = load_schema(path.read_bytes(), str(path))
  check_aligned(original, schema)
  return schema
