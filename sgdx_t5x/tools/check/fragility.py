"""How much of what a model gets right survives other words, by tool and by kind of change."""

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from sgdx_t5x.metrics import BootstrapSamples
from sgdx_t5x.metrics.bootstrap import mean_interval
from sgdx_t5x.tools.check.asking import Words
from sgdx_t5x.tools.check.measuring import Measurements, most_called_instead
from sgdx_t5x.tools.check.plan import NAMES, TEXTS
from sgdx_t5x.tools.suite.cases import Case


@dataclasses.dataclass(frozen=True)
class Retained:
  """Cases right before, in several other words.

  Attributes:
    name: of a tool in the words of the base, or of a kind of change.
    cases: right before.
    share: of these that are still right, mean over the words.
    worst: the same in the worst words.
    interval: 95% interval of `share`, by bootstrap over cases; (nan, nan) for one case.
    called_instead: the tool that got most of the lost calls; "" if none did.
  """

  name: str
  cases: int
  share: float
  worst: float
  interval: tuple[float, float]
  called_instead: str


def by_kind(measurements: Measurements) -> list[Retained]:
  """Returns what is retained of all cases: in whole rewordings, names alone, texts alone."""
  groups = _words_by_kind(measurements).items()
  rows = (_retained(kind, measurements, measurements.cases, words) for kind, words in groups)
  return list(filter(None, rows))


def by_tool(measurements: Measurements) -> list[Retained]:
  """Returns what is retained of each tool's cases in whole rewordings, the least first."""
  words = next(iter(_words_by_kind(measurements).values()))
  groups = measurements.cases_by_tool().items()
  rows = (_retained(name, measurements, cases, words) for name, cases in groups)
  return sorted(filter(None, rows), key=lambda row: (row.share, row.worst))


def _words_by_kind(measurements: Measurements) -> dict[str, list[Words]]:
  groups: dict[str, list[Words]] = {"names and texts": [], NAMES: [], TEXTS: []}
  for words in measurements.plan.after:
    kind = words.name.rpartition(", ")[2]
    groups[kind if kind in (NAMES, TEXTS) else "names and texts"].append(words)
  return {kind: words for kind, words in groups.items() if words}


def _retained(
  name: str, measurements: Measurements, cases: Sequence[Case], words: Sequence[Words]
) -> Retained | None:
  """Returns what is retained of some cases; None if none was right before."""
  outcomes_before = measurements.right(measurements.plan.before, cases)
  right_before = [case for case, is_right in zip(cases, outcomes_before, strict=True) if is_right]
  if not right_before:
    return None
  still_right = np.stack([measurements.right(x, right_before) for x in words])  # [words, cases]
  ids = np.arange(len(right_before)).astype(str)
  interval = mean_interval(still_right.mean(axis=0), ids, BootstrapSamples.draw(ids))
  responses = itertools.starmap(measurements.response, itertools.product(words, right_before))
  by_words = still_right.mean(axis=1)
  return Retained(
    name,
    len(right_before),
    float(by_words.mean()),
    float(by_words.min()),
    interval,
    most_called_instead(responses),
  )
