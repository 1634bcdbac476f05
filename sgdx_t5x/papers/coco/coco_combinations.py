"""Which slots users inform in one turn, counted in a corpus and written to combinations.json."""

import collections
import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import USER, decode_dialogues
from sgdx_t5x.corpus.schema import Schema, Service
from sgdx_t5x.papers.checkdst.split import Split, annotation_of
from sgdx_t5x.papers.checkdst.values import frames_of
from sgdx_t5x.papers.simulator.variation import is_moment

FORMAT = "sgdx-combinations/1"
FREQ, NEUTRAL, RARE = "freq", "neutral", "rare"
SHARES = {FREQ: (0.2, 2.0), NEUTRAL: (0.0, 2.0), RARE: (0.0, 0.05)}  # low, high (exclusive)
_Pairs = collections.Counter[tuple[str, str]]
_Shares = dict[str, dict[str, float]]  # slot -> other slot -> share


@dataclasses.dataclass(frozen=True)
class Combinations:
  """Which slots users inform together.

  Attributes:
    shares: service -> slot -> other slot -> share of the turns with the slot that have the other
      one, too; all pairs of an intent.
    earlier: service -> (slot, slot): days or times of which the first is not after the second.
  """

  shares: Mapping[str, Mapping[str, Mapping[str, float]]]
  earlier: Mapping[str, tuple[tuple[str, str], ...]]

  def allowed(self, frequency: str, service: str, slot: str, added_slot: str) -> bool:
    """Whether another slot may be added to a turn with a slot. Args: frequency, key of SHARES."""
    share = self.shares.get(service, {}).get(slot, {}).get(added_slot)
    low, high = SHARES[frequency]
    return share is not None and low <= share < high

  def text(self) -> str:
    """Returns the text of combinations.json."""
    data = {"format": FORMAT, "services": self.shares, "earlier": self.earlier}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def count_combinations(split: Split) -> Combinations:
  """Counts in train and, for services that its users never inform, in the split itself."""
  corpus, schema = split.corpus, split.schema
  tables: list[tuple[_Counts, _Counts]] = []
  if split.name != "train" and "train" in corpus.splits:
    tables.append(_count(_train_dialogues(corpus), schema))
  tables.append(_count(split.dialogues(), schema))
  shares, earlier = {}, {}
  for service in schema:
    informed, order = tables[0] if tables[0][0].get(service.name) else tables[-1]
    if shares_of_slots := _shares(service, informed.get(service.name, {})):
      shares[service.name] = shares_of_slots
    counts = order.get(service.name, {})
    if pairs := [pair for pair, number in counts.items() if number > counts.get(pair[::-1], 0)]:
      earlier[service.name] = tuple(sorted(pairs))
  return Combinations(shares, earlier)


_Counts = dict[str, _Pairs]  # service -> (slot, other slot) -> turns; (slot, slot): turns with it


def _train_dialogues(corpus: Corpus) -> Iterator[dict[str, Any]]:
  """Yields decoded dialogues without the checks of `Split`: train is large."""
  for name in corpus.dialogue_files("train"):
    yield from decode_dialogues(corpus.source.read(name), f"{corpus.origin}: {name}")


def _count(dialogues: Iterable[Mapping[str, Any]], schema: Schema) -> tuple[_Counts, _Counts]:
  """Counts turns with two slots, and frames in which one day or time is not after another."""
  informed: _Counts = {}
  order: _Counts = {}
  for data in dialogues:
    with annotation_of(data):
      for number, frame in frames_of(data):
        service, actions = frame["service"], frame.get("actions")
        if service not in schema or not actions:
          continue
        if data["turns"][number]["speaker"] == USER:
          slots = sorted({a["slot"] for a in actions if a["act"] == "INFORM"})
          pairs = itertools.product(slots, slots)
          informed.setdefault(service, collections.Counter()).update(pairs)
        _count_order(order.setdefault(service, collections.Counter()), actions)
  return informed, order


def _count_order(order: _Pairs, actions: Iterable[Mapping[str, Any]]) -> None:
  moments: dict[str, str] = {}
  for action in actions:
    values = action.get("canonical_values") or action.get("values") or []
    if len(values) == 1 and is_moment(values[0]):
      moments[action["slot"]] = values[0]
  for a, b in itertools.permutations(moments, 2):
    x, y = moments[a], moments[b]
    if (":" in x) == (":" in y) and x <= y:
      order[a, b] += 1


def _shares(service: Service, informed: Mapping[tuple[str, str], int]) -> _Shares:
  shares: _Shares = {}
  for intent in service.intents:
    slots = (*intent.required_slots, *intent.optional_slots)
    for slot, other_slot in itertools.permutations(slots, 2):
      turns = informed.get((slot, slot), 0)
      share = informed.get((slot, other_slot), 0) / turns if turns else 0.0
      shares.setdefault(slot, {})[other_slot] = round(share, 4)
  return shares
