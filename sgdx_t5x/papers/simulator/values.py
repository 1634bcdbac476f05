"""Sources of slot values: seeded, with a share held out for test.

A value pool is either a list or a product of word lists. Its values are split by a hash, so that
a held-out value never occurs in train however many dialogues are drawn. Values are canonical
("2019-03-05"): `variation` has their surface forms.
"""

import dataclasses
import datetime
import random
import zlib
from collections.abc import Mapping
from typing import Any

HELD_OUT_PERCENT = 30
TODAY = datetime.date(2019, 3, 1)  # when SGD's dialogues take place
_NUM_DAYS = 120

VALUE_KINDS: dict[str, tuple[tuple[str, ...], ...]] = {
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
  "title": (
    ("Amber ", "Blue ", "Copper ", "Distant ", "Early ", "Frozen ", "Gentle ", "Hidden ", "Ivory ",
     "Jade ", "Kindred ", "Little ", "Midnight ", "Nimble ", "Open ", "Paper ", "Quiet ",
     "Restless ", "Silver ", "Tall ", "Velvet ", "Wandering ", "Yellow ", "Zigzag "),
    ("Anchor", "Badger", "Candle", "Dragonfly", "Ember", "Fountain", "Garden", "Heron", "Island",
     "Juniper", "Kettle", "Lantern", "Meadow", "Nightingale", "Orchard", "Pepper", "Quill", "River",
     "Sparrow", "Thimble", "Umbrella", "Violin", "Willow", "Yard"),
    ("", "", "", " House", " Nights", " Corner", " Story", " Hill"),
  ),
  "style": (
    ("acoustic", "baroque", "classic", "coastal", "comic", "contemporary", "country",
     "experimental", "folk", "fusion", "garden", "historical", "island", "lyrical", "modern",
     "mountain", "northern", "romantic", "seasonal", "southern", "street", "traditional",
     "urban", "vintage"),
  ),
  "station": (
    ("Ash", "Beacon", "Clock", "Dock", "East", "Foundry", "Grand", "Hay", "Iris", "Jubilee", "King",
     "Linden", "Market", "New", "Old", "Port", "Queen", "Round", "South", "Tower", "Union",
     "Victory", "Water", "York"),
    (" Central", " Cross", " Gate", " Junction", " Park", " Square", " Street", " Terminal"),
  ),
  "address": (
    tuple(f"{n} " for n in range(1, 250, 4)),
    ("Acorn", "Bishop", "Chapel", "Dover", "Elder", "Forest", "Grove", "Hazel", "Inverness",
     "Juniper", "Kestrel", "Laurel", "Mulberry", "Nelson", "Orchard", "Poplar", "Quay", "Rowan",
     "Spruce", "Terrace", "Upton", "Vine", "Walnut", "Yew"),
    (" Street", " Street", " Avenue", " Road", " Lane", " Square"),
  ),
  "phone": (  # 555-0100 to 555-0199 are kept free for fiction
    ("213-", "224-", "305-", "312-", "404-", "415-", "503-", "512-", "602-", "617-", "702-", "713-",
     "801-", "808-", "907-", "915-"),
    ("555-01",), tuple("0123456789"), tuple("0123456789"),
  ),
  "date": (
    tuple((TODAY + datetime.timedelta(days)).isoformat() for days in range(_NUM_DAYS)),
  ),
  "time": (
    tuple(f"{q // 4:02}:{q % 4 * 15:02}" for q in range(7 * 4, 22 * 4 + 1)),
  ),
  "duration": (tuple(f"{n} minutes" for n in range(5, 61, 5)),),
  "count": (tuple(str(n) for n in range(1, 20)),),
  "number": (tuple(str(n) for n in range(1, 100)),),
  "rating": (tuple(f"{n / 10}" for n in range(30, 51)),),
  "price": (tuple(f"${n}" for n in (*range(5, 60), *range(60, 305, 5))),),
}  # fmt: skip
# Closed sets, without a held-out share.
_CLOSED = frozenset({"date", "time", "duration", "count", "number", "rating", "price"})
_TRIES = 100  # attempts to draw a value of the wanted share


@dataclasses.dataclass(frozen=True)
class ValuePool:
  """Words to join into values: one list of whole values, or a list per part.

  Attributes:
    word_lists: lists of words; a value has one of each.
    has_holdout: whether some values are for test only.
  """

  word_lists: tuple[tuple[str, ...], ...]
  has_holdout: bool = True

  def draw(self, rng: random.Random, held_out: bool = False) -> str:
    """Draws a value; `held_out`: a test-only one. If the wanted share is empty, any value."""
    for _ in range(_TRIES):
      value = "".join([rng.choice(words) for words in self.word_lists]).strip()
      in_share = zlib.crc32(value.encode()) % 100 < HELD_OUT_PERCENT
      if not self.has_holdout or in_share == held_out:
        break
    return value


def parse_pool(spec: Mapping[str, Any]) -> ValuePool:
  """Reads `{"kind": ...}`, `{"combine": [[...], ...]}` or `{"list": [...]}`."""
  if "kind" in spec:
    return ValuePool(VALUE_KINDS[spec["kind"]], spec["kind"] not in _CLOSED)
  if "combine" in spec:
    *heads, tail = spec["combine"]
    return ValuePool((*(tuple(f"{w} " for w in words) for words in heads), tuple(tail)))
  return ValuePool((tuple(spec["list"]),))
