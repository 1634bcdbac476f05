"""Records of back-translated texts, and the protocol of their providers."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

from sgdx_t5x.variants.wording import Element

Items = Sequence[tuple[Element, str]]  # element, its text in English, names as words
Progress = Callable[[str, int, int], None]  # task, number done, total
Notify = Callable[[str], None]


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
