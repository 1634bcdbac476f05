"""Where slot values come from: seeded, with a share held out for test.

A value pool is either a list or a product of word lists. `holdout` splits it by a
hash of the word, so that a held-out value never occurs in train however many
dialogues are drawn.
"""

import dataclasses
import random
import zlib
from collections.abc import Mapping
from typing import Any

from sgdx_t5x.errors import SgdxError

HELD_OUT_PERCENT = 30

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August",
           "September", "October", "November", "December")  # fmt: skip
_ORDINALS = tuple(
  f"{d}{'th' if d in (11, 12, 13) else {1: 'st', 2: 'nd', 3: 'rd'}.get(d % 10, 'th')}"
  for d in range(1, 31)
)
_CLOCK = tuple(f"{h}{m}" for h in range(1, 13) for m in ("", ":15", ":30", ":45"))

KINDS: dict[str, tuple[tuple[str, ...], ...]] = {
  "city": (
    ("Alder", "Brook", "Cedar", "Dun", "Elm", "Fair", "Glen", "Hart", "Iron", "Kings", "Lake",
     "Marsh", "North", "Oak", "Pen", "Quarry", "Rose", "Stone", "Thorn", "Under", "Vale", "West",
     "Wind", "Yarrow"),
    ("bridge", "bury", "dale", "field", "ford", "gate", "ham", "haven", "holm", "mouth", "port",
     "ridge", "stead", "ton", "wick", "worth"),
  ),
  "person": (
    ("Ada ", "Amir ", "Bela ", "Carmen ", "Dario ", "Edith ", "Femi ", "Greta ", "Hana ", "Ivo ",
     "Jonas ", "Kira ", "Lena ", "Mateo ", "Nadia ", "Omar ", "Petra ", "Quinn ", "Rosa ",
     "Stefan ", "Tara ", "Uma ", "Viktor ", "Yusuf "),
    ("Abbott", "Bauer", "Castillo", "Dahl", "Eriksen", "Fontaine", "Grant", "Hughes", "Ivanov",
     "Jensen", "Kowalski", "Lindgren", "Moreau", "Novak", "Okafor", "Petrov", "Rossi", "Sato",
     "Turner", "Vogel", "Weber", "Zhou"),
  ),
  "date": (tuple(f"{m} " for m in _MONTHS), _ORDINALS),
  "weekday": (("next ", "this ", "on the coming "), _WEEKDAYS),
  "time": (tuple(f"{c} " for c in _CLOCK), ("am", "pm", "in the morning", "in the evening")),
  "count": (tuple(str(n) for n in range(1, 20)),),
}  # fmt: skip
# Dates, times and counts are closed sets: every speaker uses the same ones.
_CLOSED = frozenset({"date", "weekday", "time", "count"})


@dataclasses.dataclass(frozen=True)
class ValuePool:
  """Words to join into values; one list of whole values or a list per part."""

  parts: tuple[tuple[str, ...], ...]
  has_holdout: bool = True

  def draw(self, rng: random.Random, held_out: bool = False) -> str:
    """Returns a value; `held_out` takes its first word from the test-only share."""
    first = self.parts[0]
    if self.has_holdout:
      first = tuple(w for w in first if _is_held_out(w) == held_out) or first
    return "".join([rng.choice(first), *(rng.choice(words) for words in self.parts[1:])]).strip()


def parse_pool(spec: Mapping[str, Any], where: str) -> ValuePool:
  """Reads `{"kind": ...}`, `{"combine": [[...], ...]}` or `{"list": [...]}`."""
  if "kind" in spec:
    kind = spec["kind"]
    if kind not in KINDS:
      raise SgdxError(
        f"{where}: value kind {kind!r}",
        expected="a kind that the simulator can draw",
        available=", ".join(KINDS),
        fix="use one of them, or give a list of values",
      )
    return ValuePool(KINDS[kind], has_holdout=kind not in _CLOSED)
  if "combine" in spec:
    *heads, tail = spec["combine"]
    return ValuePool((*(tuple(f"{w} " for w in words) for words in heads), tuple(tail)))
  if spec.get("list"):
    return ValuePool((tuple(spec["list"]),))
  raise SgdxError(
    f"{where}: values {dict(spec)!r}",
    expected="one of the keys kind, combine, list, not empty",
    fix="give the slot a kind or a list of values",
  )


def _is_held_out(word: str) -> bool:
  return zlib.crc32(word.encode()) % 100 < HELD_OUT_PERCENT
