"""Back-translated texts: their records, tables of records, and the protocol of providers."""

import dataclasses
import importlib.resources
import pathlib
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources.abc import Traversable
from typing import Any, Protocol

from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.corpus.variants import PIVOTS
from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files.reading import decode_lines, is_text, json_type
from sgdx_t5x.variants.wording import NAME, Element, Repair, reword, wording

Items = Sequence[tuple[Element, str]]  # element, its text in English, names as words
Progress = Callable[[str, int, int], None]  # task, number done, total
Notify = Callable[[str], None]
SOURCE = "en"  # the language of the schemas
TABLE_FORMAT = "sgdx-backtranslations/1"
UNTRANSLATED = "untranslated"
REPAIR_RULES = {  # the first applied by `apply_records`, the others by `wording.reword`
  UNTRANSLATED: "the translation adds non-Latin letters: the original is kept",
  "empty": "the translation is empty: the original is kept",
  "not a name": "the translation cannot be used as a name: the original is kept",
  "too long": "a name over 80 characters, or a description over 1,000: the original is kept",
  "collision": "another element already has this name: a number is appended",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
  """A text that was translated into another language and back.

  Attributes:
    element: whose text it is.
    pivot: the other language: "zh".
    pivot_text: the text in the pivot.
    text: the back-translation, names as words; nothing is repaired yet.
    provider: who or what translated, in both directions.
    date: of the back-translation: "2026-11-21".
  """

  element: Element
  pivot: str
  pivot_text: str
  text: str
  provider: str
  date: str

  def to_json(self) -> dict[str, str]:
    """Returns the record as a line of a table."""
    return {**dataclasses.asdict(self), "element": self.element.key}


class Provider(Protocol):
  """Makes a record of each text of a schema."""

  def check(self, pivots: Sequence[str]) -> None:
    """Refuses unsupported pivots, before anything is translated. Raises SgdxError."""

  def back_translate(self, items: Items, pivot: str, progress: Progress) -> list[Record]:
    """Returns the records of all items, in their order. Raises SgdxError if it fails."""


def apply_records(
  schema: Schema, records: Iterable[Record], origin: str
) -> tuple[Schema, list[Repair]]:
  """Returns the schema with the texts of records, repaired by `REPAIR_RULES`, and the repairs.

  Args:
    schema: the original; elements without a record stay as they are.
    records: of its elements.
    origin: of the result, for errors.

  Raises:
    SgdxError: a record of an element that the schema does not have.
  """
  original = wording(schema)
  texts: dict[Element, str] = {}
  repairs = []
  for record in records:
    element, text = record.element, record.text
    if _foreign_letters(text) - _foreign_letters(original.get(element, "")):
      stays = element.name if element.field == NAME else original.get(element, "")
      repairs.append(Repair(element, text, stays, UNTRANSLATED))
    else:
      texts[element] = text
  reworded, reword_repairs = reword(schema, texts, origin)
  return reworded, repairs + reword_repairs


def _foreign_letters(text: str) -> set[str]:
  """The letters of non-Latin scripts; full-width Latin letters count as Latin."""
  letters = filter(str.isalpha, unicodedata.normalize("NFKC", text))
  return {c for c in letters if not unicodedata.name(c, "").startswith("LATIN ")}


# --- tables --------------------------------------------------------------------------------

_FIELDS = tuple(field.name for field in dataclasses.fields(Record))


class TranslationTable:
  """Records by pivot and element."""

  def __init__(self, records: Iterable[Record], origin: str):
    """Args: the records; origin names them in errors. Raises SgdxError if two differ."""
    self._origin = origin
    self._records: dict[str, dict[Element, Record]] = {}
    for record in records:
      earlier = self._records.setdefault(record.pivot, {}).setdefault(record.element, record)
      if earlier.text != record.text:
        raise SgdxError(
          f"{origin}: two different texts for {record.element.key} via {record.pivot}",
          expected="one record per element and pivot",
          available=f"{earlier.text!r}, {record.text!r}",
          fix="remove one of them",
        )

  def check(self, pivots: Sequence[str]) -> None:
    """Refuses pivots without records."""
    for pivot in pivots:
      if pivot not in self._records:
        raise SgdxError(
          f"{self._origin}: no records for pivot {pivot!r}",
          expected="records for every pivot in --pivots",
          available=", ".join(self._records) or "none",
          fix="use pivots that the table has, or pass another file to --table",
        )

  def back_translate(
    self, items: Items, pivot: str, progress: Progress | None = None
  ) -> list[Record]:
    """Returns the records of all items. Raises SgdxError if elements have none."""
    self.check([pivot])
    records = self._records[pivot]
    missing = [element for element, _ in items if element not in records]
    if missing:
      raise self._no_records(pivot, missing, len(items))
    return [records[element] for element, _ in items]

  def _no_records(self, pivot: str, missing: Sequence[Element], num_elements: int) -> SgdxError:
    services = {element.service for element in self._records[pivot]}
    # Whole services rather than their elements: the table is then of another split.
    names = dict.fromkeys(element.service for element in missing)
    services_without = [name for name in names if name not in services]
    subject = name = missing[0].key
    if services_without:
      subject = f"{len(services_without)} services ({', '.join(services_without)})"
      name = services_without[0]
    return SgdxError(
      f"{self._origin}: no {pivot} record for {subject}; {len(missing)} of {num_elements} elements "
      "have none",
      expected="a record for every name and description in the schema",
      available=nearest(name, services),
      fix="add the missing records to the table, or translate with --provider hf",
    )


def open_table(table: Sequence[str]) -> TranslationTable:
  """Reads the files of --table as one table. Raises SgdxError if one is missing or wrong."""
  records: list[Record] = []
  for file in table:
    records += read_records(pathlib.Path(file))
  return TranslationTable(records, ", ".join(table))


def shipped_table() -> TranslationTable:
  """Returns the records that ship with the core, one file per pivot."""
  folder = importlib.resources.files("sgdx_t5x.variants.shipped")
  records: list[Record] = []
  for pivot in PIVOTS:
    records += read_records(folder / f"{pivot}.jsonl")
  return TranslationTable(records, "the shipped back-translations")


def read_records(file: pathlib.Path | Traversable) -> list[Record]:
  """Reads JSON lines, one record each.

  A first line with the key "format" is a header: its pivot, provider and date are the defaults
  for records without them.

  Raises:
    SgdxError: no such file, another format, or a line that is not a record.
  """
  expected, fix = "one JSON object per line", "correct the line, or restore the file if it was cut"
  try:
    content = file.read_bytes()
  except OSError as e:
    raise SgdxError(
      f"{file}: {e.strerror}",
      expected="a back-translation file (JSONL, UTF-8)",
      fix="check the path; `sgdx backtranslate` writes such files as texts.jsonl",
    ) from None
  defaults: Mapping[str, Any] = {}
  records = []
  for number, (place, data) in enumerate(decode_lines(content, str(file), expected, fix)):
    if not isinstance(data, dict):
      raise SgdxError(f"{place}: {json_type(data)}", expected=expected, fix=fix)
    if number == 0 and "format" in data:
      _check_format(data["format"], str(file))
      defaults = data
    else:
      records.append(_record({**defaults, **data}, place))
  return records


def _record(data: Mapping[str, Any], place: str) -> Record:
  bad_keys = [key for key in _FIELDS if not is_text(data.get(key))]
  if bad_keys:
    raise SgdxError(
      f"{place}: no string value for the key {', '.join(bad_keys)}",
      expected=f"the keys {', '.join(_FIELDS)}",
      available=", ".join(data),
      fix="add the missing keys; a header line may give pivot, provider and date for all lines",
    )
  return Record(Element.from_key(data["element"], place), *(data[key] for key in _FIELDS[1:]))


def _check_format(format_name: Any, place: str) -> None:
  if format_name != TABLE_FORMAT:
    raise SgdxError(
      f"{place}: format {format_name!r}",
      expected=TABLE_FORMAT,
      fix="pass a back-translation file, or install the version of sgdx_t5x that wrote it",
    )
