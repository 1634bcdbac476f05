"""Records of back-translated texts, and the protocol of their providers."""

import dataclasses
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.variants.wording import NAME, Element, Repair, reword, wording

Items = Sequence[tuple[Element, str]]  # element, its text in English, names as words
Progress = Callable[[str, int, int], None]  # task, number done, total
Notify = Callable[[str], None]
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
    fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
    return {**fields, "element": self.element.key}


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
  """What is left to do for a pivot, found without calling anything.

  Attributes:
    texts: distinct texts.
    known: how many of them are already translated, in both directions.
    characters_to: to be translated into the pivot.
    characters_back: to be translated back; texts not yet in the pivot count with their English
      length.
    is_paid: whether characters are charged for.
  """

  texts: int
  known: int
  characters_to: int = 0
  characters_back: int = 0
  is_paid: bool = False


class Provider(Protocol):
  """Makes a record of each text of a schema."""

  def check(self, pivots: Sequence[str]) -> None:
    """Refuses unsupported pivots, before anything is translated. Raises SgdxError."""

  def plan(self, items: Items, pivot: str) -> Plan:
    """Returns what `back_translate` would do. Calls and writes nothing. Raises SgdxError."""

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
  made, more = reword(schema, texts, origin)
  return made, repairs + more


def _foreign_letters(text: str) -> set[str]:
  """The letters of non-Latin scripts; full-width Latin letters count as Latin."""
  return {
    c
    for c in unicodedata.normalize("NFKC", text)
    if c.isalpha() and not unicodedata.name(c, "").startswith("LATIN ")
  }
