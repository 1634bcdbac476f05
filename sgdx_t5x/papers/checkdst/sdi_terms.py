"""The words of disfluent speech and how often they occur: sdi_terms.json, or a custom file.

The lists and rates are our own. Spontaneous English has 2 to 3 fillers in 100 words; these rates
are denser than real speech by design, so that most turns are changed.
"""

import dataclasses
import functools
import importlib.resources
import itertools
import math
import random
from typing import Any

from sgdx_t5x.errors import SgdxError, quoted
from sgdx_t5x.files.reading import decode_json, is_number, is_text, read_input

DEFAULT = "default"
_RATES = ("repair", "filler", "repeat", "restart")
_LISTS = ("restarts", "fillers", "repeat_joins", "edits")
_EXPECTED = (
  f'"rates" with {", ".join(_RATES)} from 0 to 1, and {", ".join(_LISTS)}: lists of [text, weight]'
)


@dataclasses.dataclass(frozen=True)
class WeightedTexts:
  """Texts to draw one of, by weight."""

  texts: tuple[str, ...]
  cumulative: tuple[float, ...]

  def draw(self, rng: random.Random) -> str:
    """Returns one of the texts."""
    return rng.choices(self.texts, cum_weights=self.cumulative)[0]


@dataclasses.dataclass(frozen=True)
class Terms:
  """What disfluent speech consists of.

  Attributes:
    rates: kind -> probability: of a repair, per turn with values; of a filler and of a repeat,
      per word; of a restart, per turn that is already changed.
    restarts, fillers, repeat_joins, edits: what is said. Edits ("I mean") stand between a wrong
      value and its correction.
  """

  rates: dict[str, float]
  restarts: WeightedTexts
  fillers: WeightedTexts
  repeat_joins: WeightedTexts
  edits: WeightedTexts


def read_terms(where: str = DEFAULT) -> Terms:
  """Reads the terms. Args: where, a JSON file, or "default". Raises SgdxError if it is wrong."""
  if where == DEFAULT:
    return _default_terms()
  text = read_input(where, "terms of disfluent speech (JSON)")
  return _parse(decode_json(text, where, _EXPECTED, "correct it"), where)


@functools.cache
def _default_terms() -> Terms:
  file = importlib.resources.files(__package__) / "sdi_terms.json"
  return _parse(decode_json(file.read_bytes(), file.name, _EXPECTED, "restore it"), file.name)


def _parse(data: Any, origin: str) -> Terms:
  problem = next(_problems(data), None)
  if problem:
    raise SgdxError(
      f"{origin}: {problem}",
      expected=_EXPECTED,
      fix="correct it; sgdx_t5x/papers/checkdst/sdi_terms.json is an example",
    )
  lists = {
    name: WeightedTexts(
      tuple(text for text, _ in data[name]),
      tuple(itertools.accumulate(float(weight) for _, weight in data[name])),
    )
    for name in _LISTS
  }
  return Terms({kind: float(data["rates"][kind]) for kind in _RATES}, **lists)


def _problems(data: Any):
  if not isinstance(data, dict):
    yield "not an object"
    return
  for key in sorted({"rates", *_LISTS} ^ data.keys()):
    yield f"unknown key {key!r}" if key in data else f"no {key!r}"
  rates = data["rates"]
  if not isinstance(rates, dict) or rates.keys() != set(_RATES):
    yield "rates"
    return
  for kind, rate in rates.items():
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
      yield f"rate of {kind}: {quoted(rate)}"
  for name in _LISTS:
    texts = data[name]
    if not isinstance(texts, list) or not texts or not all(map(_is_weighted, texts)):
      yield f"{name}: not a list of [text, weight]"
    elif not math.isfinite(sum(float(weight) for _, weight in texts)):
      yield f"{name}: weights with an infinite sum"
    elif name != "repeat_joins" and any(text != text.strip() for text, _ in texts):
      yield f"{name}: a text with surrounding whitespace"


def _is_weighted(item: Any) -> bool:
  return (
    isinstance(item, list)
    and len(item) == 2
    and is_text(item[0])
    and item[0] != ""
    and is_number(item[1])
    and item[1] > 0
  )
