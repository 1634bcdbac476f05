"""Counterfactual turns in a check, compared with originals and control; their utterances."""

import collections
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sgdx_t5x import metrics
from sgdx_t5x.corpus.dialogue import frame_id
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics.ratios import Counts, Ratio, ratio_intervals, ratios, share
from sgdx_t5x.papers.checkdst.checks.columns import GOALS
from sgdx_t5x.papers.checkdst.manifest import CONTROL_KIND, COUNTERFACTUAL_KIND
from sgdx_t5x.papers.checkdst.metrics_counterfactual import GoalEdit
from sgdx_t5x.papers.checkdst.texts import words
from sgdx_t5x.scoring.summaries import null_for_nan
from sgdx_t5x.tables import Number, Table, count, percent
from sgdx_t5x.variants.distances import corpus_bleu

_THREE = ("original", "control", "counterfactual")
_STATISTICS: dict[str, Ratio] = {
  **{name: share(name, "turns") for name in _THREE},
  "cjga": share("both", "turns"),
  "cjga_control": share("control_both", "turns"),
}


@dataclasses.dataclass(frozen=True)
class Spoken:
  """The utterances of the last turns of a set.

  Attributes:
    before: dialogue id -> the original utterance.
    after: dialogue id -> the set's utterance.
  """

  before: Mapping[str, str]
  after: Mapping[str, str]


def edit_of(line: Mapping[str, Any]) -> GoalEdit:
  """Returns the edit described by a line of changes.jsonl."""
  return GoalEdit(
    line["service"],
    frozenset(line["kept"]),
    {slot: old for slot, (old, _) in line["changed"].items()},
    frozenset(line["dropped"]),
    frozenset(line["added"]),
  )


def counterfactual_report(
  sets: Mapping[str, Any], samples: metrics.BootstrapSamples | None
) -> dict[str, dict[str, Any]]:
  """Returns label -> numbers, for the counterfactual sets that are compared with the original.

  Args:
    sets: label -> `check.CheckedSet`.
    samples: bootstrap samples of the original dialogues; None for no intervals.
  """
  found = {}
  for label, one in sets.items():
    if one.kinds[-1:] == (COUNTERFACTUAL_KIND,) and one.before:
      control = next((x for x in sets.values() if _is_control(one, x)), None)
      found[label] = _of_set(one, sets[one.before], control, samples)
  return found


def _is_control(one: Any, other: Any) -> bool:
  if other.kinds[-1:] != (CONTROL_KIND,) or other.variant != one.variant:
    return False
  mine, its = one.about["steps"][-1], other.about["steps"][-1]
  return (mine["options"], mine["seed"]) == (its["options"], its["seed"])


def _of_set(
  one: Any, before: Any, control: Any, samples: metrics.BootstrapSamples | None
) -> dict[str, Any]:
  counts = one.about["steps"][-1]["counts"]
  old, new, edited = _jga(before), _jga(one), _jga(one, "changed")
  ids = original_ids(one)
  replaced = {ids[key]: value for key, value in new.items() if ids[key] in old}
  report: dict[str, Any] = {
    **{key: counts[key] for key in ("eligible", "generated", "source", "kept")},
    "control_set": control.label if control else None,
    "original_all": _mean(old.values()),
    "with_fallback": _mean([replaced.get(key, value) for key, value in old.items()]),
  }
  same = _jga(control) if control else {}
  keys = [key for key in edited if not control or key in same]
  values = _values([(old[ids[x]], same.get(x, 0.0), new[x]) for x in keys])
  dialogues = np.array([ids[key].rsplit("-", 2)[0] for key in keys], dtype=str)
  table = Counts(("turns", *_THREE, "both", "control_both"), values, dialogues)
  shown = {k: v for k, v in _STATISTICS.items() if control or "control" not in k}
  report |= {"num_frames": len(keys), **null_for_nan(ratios(shown, table))}
  if samples is not None and keys:
    ends = ratio_intervals(shown, table, samples)
    report["intervals"] = {k: None if math.isnan(v[0]) else list(v) for k, v in ends.items()}
  report["texts"] = dict(_texts(one.spoken, control.spoken if control else None))
  return report


def _values(rows: Sequence[tuple[float, float, float]]) -> np.ndarray:
  right = np.array(rows, dtype=float).reshape(-1, 3) >= 1
  old, same, new = right.T
  columns = (np.ones(len(right)), old, same, new, old & new, same & new)
  return np.array(columns, dtype=float)


def _jga(found: Any, which: str = "scored") -> dict[str, float]:
  """Returns frame id -> JGA of a set's frames; "changed": only of those whose goal was edited."""
  names = found.counts.names
  taken, jga = (found.counts.values[names.index(name)] for name in (which, "jga"))
  rows = zip(found.frames.frame_ids.tolist(), taken.tolist(), jga.tolist(), strict=True)
  return {key: value for key, is_taken, value in rows if is_taken}


def original_ids(found: Any) -> dict[str, str]:
  """Returns frame id of a `check.CheckedSet` -> id of the original frame, in the set's order."""
  # Dialogue ids of a checked set are already those of the original.
  frames = found.frames
  columns = (frames.frame_ids, frames.dialogue_ids, frames.turns, frames.services)
  rows = zip(*(column.tolist() for column in columns), strict=True)
  return {key: frame_id(dialogue, turn, service) for key, dialogue, turn, service in rows}


def _mean(values: Any) -> float | None:
  values = list(values)
  return math.fsum(values) / len(values) if values else None


# --- utterances ------------------------------------------------------------------------------


def _texts(one: Spoken | None, control: Spoken | None) -> Iterator[tuple[str, dict[str, Any]]]:
  """Yields (name, diversity and length of the utterances), over the turns that all have."""
  if one is None:
    return
  keys = sorted(one.after.keys() & control.after.keys() if control else one.after)
  before = [one.before[key] for key in keys]
  yield "original", _about_texts(before)
  if control:
    same = [control.after[key] for key in keys]
    yield "control", {**_about_texts(same), "bleu": _bleu(same, before)}
  yield "counterfactual", _about_texts([one.after[key] for key in keys])


def _bleu(texts: Sequence[str], references: Sequence[str]) -> float | None:
  try:
    return corpus_bleu(texts, references)
  except SgdxError:  # sacrebleu is an extra
    return None


def _about_texts(texts: Sequence[str]) -> dict[str, Any]:
  found = [words(text) for text in texts]
  numbers: dict[str, Any] = {"words": _mean([len(x) for x in found])}
  return numbers | {f"distinct_{n}": distinct(found, n) for n in range(1, 5)}


def distinct(texts: Sequence[Sequence[str]], n: int) -> float | None:
  """Returns the share of distinct word n-grams over all texts; None if there are no n-grams."""
  grams = collections.Counter(
    tuple(text[i : i + n]) for text in texts for i in range(len(text) - n + 1)
  )
  return len(grams) / total if (total := sum(grams.values())) else None


def counterfactual_rows(numbers: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
  """Yields (name, key, value, ci95_low, ci95_high) for CSV, of a set's numbers.

  Names are "all", and those of parts: "source", "kept", "texts: control".
  """
  intervals = numbers.get("intervals") or {}
  parts = {part: numbers[part] for part in ("source", "kept")}
  parts |= {f"texts: {name}": found for name, found in numbers["texts"].items()}
  for key, value in numbers.items():
    if key not in ("source", "kept", "texts", "intervals", "control_set"):
      yield "all", key, value, *(intervals.get(key) or ("", ""))
  for part, found in parts.items():
    for key, value in found.items():
      yield part, key, value, "", ""


# --- tables ----------------------------------------------------------------------------------


def counterfactual_tables(report: Mapping[str, Any]) -> Iterator[Table]:
  """Yields the tables of the counterfactual sets in a report, in percent."""
  found = report.get("counterfactual") or {}
  if not found:
    return
  header = ("", *_THREE, "cJGA", "turns", "all frames", "with fallback")
  rows = tuple(
    (
      label,
      *(percent(x.get(key)) for key in (*_THREE, "cjga")),
      count(x["num_frames"]),
      percent(x.get("original_all")),
      percent(x.get("with_fallback")),
    )
    for label, x in found.items()
  )
  yield Table("counterfactual turns, right before, as control, after (%)", header, rows)
  values = {label: report["sets"][label]["rows"]["all"] for label in found}
  rows = tuple((label, *(percent(x.get(c.key)) for c in GOALS)) for label, x in values.items())
  title = "slots of all counterfactual turns: right, by what became of the goal (%)"
  yield Table(title, ("", *(column.heading for column in GOALS)), rows)
  yield _made_table(found)
  yield _texts_table(found)


def _made_table(found: Mapping[str, Mapping[str, Any]]) -> Table:
  rows = []
  for label, x in found.items():
    made = ", ".join(f"{number:,} {name}" for name, number in x["source"].items())
    lacks = ", ".join(f"{number:,} {name}" for name, number in x["kept"].items())
    rows.append((label, count(x["eligible"]), count(x["generated"]), made, lacks))
  header = ("", "eligible", "generated", "by", "left out")
  return Table("turns that tell something", header, tuple(rows))


def _texts_table(found: Mapping[str, Mapping[str, Any]]) -> Table:
  rows = tuple(
    (
      f"{label}: {name}",
      *(percent(x.get(f"distinct_{n}")) for n in range(1, 5)),
      *(_one_decimal(x.get(key)) for key in ("words", "bleu")),
    )
    for label, one in found.items()
    for name, x in one["texts"].items()
  )
  header = ("", *(f"distinct-{n}" for n in range(1, 5)), "words", "BLEU")
  return Table("their utterances (%; BLEU against the original)", header, rows)


def _one_decimal(value: float | None) -> Number:
  return Number(value, "" if value is None else f"{value:.1f}")


def notes(report: Mapping[str, Any]) -> Iterator[str]:
  """Yields what a reader of the tables should know."""
  for label, x in (report.get("counterfactual") or {}).items():
    if x["control_set"] is None:
      yield (
        f"{label}: without its control set (kind {CONTROL_KIND}, written alongside), the effect of "
        "the new goal cannot be separated from that of the generator's style"
      )
    yield (
      f'{label}: "with fallback" is computed as in CoCo: over all frames, where frames without a '
      "counterfactual keep their original score"
    )
