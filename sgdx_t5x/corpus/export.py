"""Writes a corpus's dialogues with its variants' names, as the official converter does.

The output equals that of generate_sgdx_dialogues.py in the dstc8 repository (as fixed in 2023-08)
byte for byte: its rules (`conversion.convert_json`), and the text of Python's json.dump with an
indent of 2 and sorted keys, which orjson writes in a twentieth of the time.
"""

import dataclasses
import json
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import orjson

from sgdx_t5x.corpus.conversion import convert_json, renamings
from sgdx_t5x.corpus.corpus import PERTURBATION, SIMULATION, Corpus, schema_path
from sgdx_t5x.corpus.dialogue import check_dialogue, decode_dialogues, read_dialogues
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.corpus.variants import ORIGINAL
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import not_utf8
from sgdx_t5x.files.writing import atomic_write, writing_fix

ALL = "all"
_MANIFESTS = (PERTURBATION, SIMULATION)
_NOT_ASCII = re.compile("[^\x00-\x7e]")


@dataclasses.dataclass(frozen=True, slots=True)
class Written:
  """A file of dialogues that was written, once per variant."""

  split: str
  variants: tuple[str, ...]
  dialogues: int


def choose(
  corpus: Corpus,
  variants: Iterable[str],
  splits: Iterable[str],
  schema: Callable[[str, str], Schema],
) -> dict[str, dict[str, Schema]]:
  """Returns split -> variant -> schema of what is to be written.

  Args:
    variants: names; "all" among them stands for all variants of the corpus but the original.
    splits: names; "all" among them stands for all.
    schema: callable (split, variant) -> schema.

  Raises:
    SgdxError: there is no such split or variant, or there are no dialogues in them.
  """
  variants = list(variants)  # once per split
  schemas_by_split: dict[str, dict[str, Schema]] = {}
  for split in _expanded(splits, corpus.splits):
    corpus.schema(split)  # raises if there is no such split
    released = [v for v in corpus.variants if v != ORIGINAL and corpus.has_schema(split, v)]
    schemas_by_split[split] = {}
    for name in _expanded(variants, released):
      corpus.check_kinds(split, name)
      schemas_by_split[split][name] = schema(split, name)
  if not any(schemas_by_split.values()):
    raise SgdxError(
      f"{corpus.origin}: no schema variants",
      expected="variants beside the original, for all of them to be exported",
      fix="name others: --variant corrupt_1, or --variant NAME=DIR for schemas of your own",
    )
  if not any(names and corpus.dialogue_files(split) for split, names in schemas_by_split.items()):
    raise SgdxError(
      f"{corpus.origin}: no dialogues to export in split {', '.join(schemas_by_split)}",
      expected="dialogues_*.json in the folder of the split, and a variant's schema",
      available=corpus.file_counts(),
      fix="choose a split that has both",
    )
  return schemas_by_split


def _expanded(names: Iterable[str], everything: Iterable[str]) -> list[str]:
  """Returns the names, each once; "all" among them stands for `everything`."""
  expanded: list[str] = []
  for name in names:
    expanded += everything if name == ALL else [name]
  return list(dict.fromkeys(expanded))


def export(
  corpus: Corpus, schemas_by_split: Mapping[str, Mapping[str, Schema]], out: str | pathlib.Path
) -> Iterator[Written]:
  """Writes {out}/{variant}/{split}/: schema.json, and the converted dialogues.

  A schema of the corpus is copied unchanged. Every file is written atomically, and replaces an
  existing one.

  Args:
    schemas_by_split: split -> variant -> schema, see `choose`.
    out: folder; created if missing.

  Yields:
    What was written, file by file in the order of the corpus.

  Raises:
    SgdxError: dialogues that do not fit the schema, a folder with dialogues of another corpus, or
      a file that cannot be written.
  """
  out = pathlib.Path(out)
  _check_others(corpus, schemas_by_split, out)
  for split, schemas in schemas_by_split.items():
    if not schemas:  # "all", and no variant has a schema for it
      continue
    original = corpus.schema(split)
    names = {}
    for variant, schema in schemas.items():
      names[variant] = renamings(original, schema)
      text = _schema_text(corpus, split, variant, schema)
      _write_file(out / variant / split / "schema.json", text)
      for name in _manifests(corpus, split):
        _write_file(out / variant / name, _text_of(corpus, name))
    for file in corpus.dialogue_files(split):
      origin, text = f"{corpus.origin}: {file}", corpus.source.read(file)
      # Checked as dialogues, converted as JSON: so unknown keys are in the output, too.
      for dialogue in read_dialogues(text, origin):
        check_dialogue(dialogue, original, origin)
      dialogues = decode_dialogues(text, origin)
      for variant, of_variant in names.items():
        converted = [convert_json(dialogue, of_variant) for dialogue in dialogues]
        _write_file(out / variant / file, json_text(converted))
      yield Written(split, tuple(names), len(dialogues))


def json_text(data: Any) -> str:
  """Returns the text of `json.dumps(data, indent=2, sort_keys=True)`; see the module."""
  try:
    text = orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode()
  except TypeError:  # half a character, or an integer of more than 64 bits
    return json.dumps(data, indent=2, sort_keys=True)
  if "null" in text:  # of SGD in no dialogue; orjson also writes it for NaN and Infinity
    return json.dumps(data, indent=2, sort_keys=True)
  # Python's json escapes what is not ASCII; orjson writes it as it is.
  return _NOT_ASCII.sub(lambda match: json.dumps(match[0])[1:-1], text)


def _check_others(
  corpus: Corpus, schemas_by_split: Mapping[str, Iterable[str]], out: pathlib.Path
) -> None:
  """Refuses folders with files of the split that are another corpus's."""
  for split, variants in schemas_by_split.items():
    manifests = _manifests(corpus, split)
    own_names = {*corpus.dialogue_files(split), *manifests}
    for variant in variants:
      folder = out / variant
      names = set()
      for pattern in (f"{split}/dialogues_*.json", *_MANIFESTS):
        for path in folder.glob(pattern.format(split=split)):
          names.add(path.relative_to(folder).as_posix())
      # Dialogues of a corpus that was made otherwise have the same names.
      if names - set(manifests) and (lacking := sorted(set(manifests) - names)):
        raise SgdxError(
          f"--out {folder} has dialogues, but no {lacking[0]} as {corpus.origin}",
          expected="a folder without files of another corpus: they would be replaced",
          fix=f"delete {folder / split}, or name another folder",
        )
      if foreign := sorted(names - own_names):
        raise SgdxError(
          f"--out {folder} contains {foreign[0]}, which {corpus.origin} lacks",
          expected="a folder without files of another corpus: they would be mixed with this one's",
          available=f"{len(foreign)} such files",
          fix=f"delete {folder / split}, or name another folder",
        )


def _manifests(corpus: Corpus, split: str) -> list[str]:
  """Returns the files that say how a split was made, and whether only last turns are scored."""
  return [name for manifest in _MANIFESTS if corpus.has(name := manifest.format(split=split))]


def _schema_text(corpus: Corpus, split: str, variant: str, schema: Schema) -> str:
  # The corpus's own schema keeps the spacing of its file, as in a copy by the converter.
  if corpus.has_schema(split, variant) and schema is corpus.schema(split, variant):
    return _text_of(corpus, schema_path(variant, split))
  return json.dumps(schema.to_json(), indent=2) + "\n"


def _text_of(corpus: Corpus, name: str) -> str:
  try:
    return corpus.source.read(name).decode("utf-8")
  except UnicodeDecodeError as e:
    raise not_utf8(f"{corpus.origin}: {name}", e, "UTF-8, in which it is copied") from None


def _write_file(path: pathlib.Path, text: str) -> None:
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path, "--out") as file:
      file.write(text)
  except (OSError, SgdxError) as e:
    raise SgdxError(
      e.found if isinstance(e, SgdxError) else f"--out {path.parent}: {e.strerror}",
      expected="a writable folder, on a disk with space for the dialogues of each variant",
      fix=writing_fix(e, "name another folder") + "; the files written so far are complete",
    ) from None
