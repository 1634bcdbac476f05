"""Back-translation of a schema: the paper's augmentation (SGD-X paper, section 5).

Every name and description is translated from English into a pivot language and back; names are
translated as words and joined again. A returned text that cannot be used in a schema is repaired
by `translations.REPAIR_RULES`, and every repair is recorded.
"""

import dataclasses
import json
import pathlib
from collections.abc import Iterable, Mapping

from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.files.writing import atomic_folder, check_folder, json_line
from sgdx_t5x.papers.backtranslation.translations import Progress, Provider, Record, apply_records
from sgdx_t5x.variants.wording import Repair, wording

SCHEMA, TEXTS, REPAIRS = "schema.json", "texts.jsonl", "repairs.jsonl"


@dataclasses.dataclass(frozen=True)
class BackTranslation:
  """A back-translated variant of a schema, and how it was made.

  Attributes:
    pivot: code of the pivot language.
    schema: the result, aligned by position with the original.
    records: of every element, as the provider returned them.
    repairs: of texts that could not be used unchanged.
    unchanged: how many texts came back unchanged, not counting repaired ones.
  """

  pivot: str
  schema: Schema
  records: tuple[Record, ...]
  repairs: tuple[Repair, ...]
  unchanged: int


def back_translate(
  schema: Schema, provider: Provider, pivot: str, progress: Progress = lambda *_: None
) -> BackTranslation:
  """Translates a schema into a pivot language and back.

  Args:
    schema: the original.
    provider: the translation provider; the pivot has passed its `check`.
    pivot: language code, "zh".
    progress: callback for the provider's progress.

  Raises:
    SgdxError: the provider fails.
  """
  records = provider.back_translate(list(wording(schema).items()), pivot, progress)
  variant, repairs = apply_records(schema, records, f"{schema.origin} through {pivot}")
  returned = wording(variant, schema)
  repaired = {repair.element for repair in repairs}
  unchanged = sum(returned[e] == text for e, text in wording(schema).items() if e not in repaired)
  return BackTranslation(pivot, variant, tuple(records), tuple(repairs), unchanged)


def write_back_translation(result: BackTranslation, folder: pathlib.Path) -> list[str]:
  """Writes schema, texts and, if any, repairs, all or nothing.

  Args:
    result: what to write.
    folder: DIR/{pivot}/{split}, new or empty, or with these very files.

  Returns:
    The names of the files.

  Raises:
    SgdxError: the folder holds other texts or other files, or cannot be written.
  """
  contents = _contents(result)
  present = [path for path in map(folder.joinpath, (SCHEMA, TEXTS, REPAIRS)) if path.is_file()]
  if {path.name: path.read_bytes() for path in present} != contents:
    path = check_folder(
      folder,
      expected="a folder that is new or empty, or that has the same schema and texts (translated "
      "texts stay in the cache; nothing is sent again)",
    )
    with atomic_folder(path) as temporary:
      temporary.mkdir()
      for name, data in contents.items():
        (temporary / name).write_bytes(data)
  return sorted(contents)


def _contents(result: BackTranslation) -> dict[str, bytes]:
  """Returns name -> content of the files; there is none without content."""
  contents = {
    TEXTS: _json_lines(record.to_json() for record in result.records),
    REPAIRS: _json_lines(
      {"element": r.element.key, "found": r.found, "made": r.made, "rule": r.rule}
      for r in result.repairs
    ),
    SCHEMA: json.dumps(result.schema.to_json(), indent=2) + "\n",
  }
  return {name: text.encode() for name, text in contents.items() if text}


def _json_lines(rows: Iterable[Mapping[str, str]]) -> str:
  return "".join(map(json_line, rows))
