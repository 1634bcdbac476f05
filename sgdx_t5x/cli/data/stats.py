"""`sgdx data stats`: statistics of dialogues, next to those of the SGD paper.

examples:
  sgdx data stats --corpus sample
  sgdx data stats --corpus sgd.zip

docs/corpus-statistics.md has definitions and the numbers of SGD.
"""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.options import add_command, add_corpus
from sgdx_t5x.tables import Number, Row, Table, count, percent

_PAPER = "SGD paper, train"  # it has no other split
_COUNT, _MEAN, _SHARE = ",d", ".2f", ".1%"
_ROWS = {  # key: label, format
  "dialogues": ("dialogues", _COUNT),
  "single_domain": ("  single-domain (one service)", _COUNT),
  "multi_domain": ("  multi-domain", _COUNT),
  "services_per_dialogue": ("services per dialogue", _MEAN),
  "turns": ("turns", _COUNT),
  "turns_per_dialogue": ("turns per dialogue", _MEAN),
  "tokens_per_turn": ("tokens per turn", _MEAN),
  "unique_tokens": ("unique tokens", _COUNT),
  "domains": ("domains", _COUNT),
  "services": ("services", _COUNT),
  "intents": ("intents", _COUNT),
  "slots": ("slots", _COUNT),
  "slot_values": ("slot values", _COUNT),
  "user_frames": ("user frames", _COUNT),
  "active_slots_per_frame": ("active slots per user frame", _MEAN),
  "unseen_domains": ("unseen domains", _COUNT),
  "unseen_services": ("unseen services", _COUNT),
  "unseen_dialogues": ("dialogues with an unseen service", _SHARE),
  "unseen_frames": ("user frames of unseen services", _SHARE),
  "oov_values": ("slot values not in train", _SHARE),
  "oov_values_noncategorical": ("  of non-categorical slots", _SHARE),
  "oov_uses": ("  weighted by dialogues", _SHARE),
  "oov_uses_noncategorical": ("  weighted, non-categorical", _SHARE),
}
_PROVENANCE = {  # key: label
  "entered": "values that enter a state",
  "informed": "  informed by the user",
  "accepted": "  accepted from the system",
  "accepted_last_turn": "    said in the turn before",
  "accepted_earlier": "    said earlier",
  "carried": "  carried from another service",
  "carried_state": "    from its state",
  "carried_system": "    from the system's words only",
  "own": "  from another slot of the service",
  "unknown": "  of unknown source",
  "accepted_frames": "user frames with an accepted value",
  "carried_frames": "user frames with a carried value",
  "carried_slots": "  carried values in them",
  "carried_dialogues": "dialogues with a carried value",
}
_LEGEND = (
  "tokens: separated by whitespace; unique tokens are lowercased",
  "slot values: distinct (service, slot, value) in states, lowercased, no dontcare",
  "unseen: not in train's schema; not in train: in no state of train, for any slot",
  f"{_PAPER}: Rastogi et al. 2020, Table 1. SGD train: the release",
)


def add_verb(verbs: Any) -> None:
  """Adds `stats` to the verbs of `sgdx data`."""
  summary = "statistics of dialogues, acts and values, next to the SGD paper's"
  parser = add_command(verbs, "stats", __doc__, help=summary)
  add_corpus(parser)
  output.add_format(parser)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Counts and prints. Returns 0. Raises SgdxError for anything wrong in the corpus."""
  from sgdx_t5x.cli.progress import progress
  from sgdx_t5x.corpus import statistics
  from sgdx_t5x.corpus.opening import open_corpus

  corpus = open_corpus(args.corpus)
  with progress("dialogues") as update:
    report = statistics.report(corpus, update)
  notes, signatures = tuple(_notes(report)), {"": report["signature"]}
  about = {"warnings": report["warnings"], "notes": notes, "signatures": signatures}
  output.show(args.format, _layout(report), report, **about)
  return 0


# --- output --------------------------------------------------------------------------------


def _layout(report: Mapping[str, Any]) -> list[Table]:
  splits, paper = report["splits"], report["paper"]
  names = [name if split["complete"] else f"{name} PARTIAL" for name, split in splits.items()]
  rows: list[Row] = []
  for key, (label, form) in _ROWS.items():
    numbers = [_number(split[key], form) for split in splits.values()]
    rows.append((label, _number(paper.get(key), form), *numbers))
  tables = [Table("dialogues", ("", _PAPER, *names), tuple(rows))]
  rows = []
  for key, label in _PROVENANCE.items():
    rows.append((label, *(count(split["provenance"][key]) for split in splits.values())))
  tables.append(Table("provenance of values", ("", *names), tuple(rows)))
  for speaker in ("user", "system"):
    by_split = [split["acts"][speaker]["actions"] for split in splits.values()]
    sgd_shares = report["sgd_train_acts"][speaker]
    rows = []
    for act in sorted({*sgd_shares}.union(*by_split)):  # those of SGD that are missing show too
      shares = [_share(actions, act) for actions in by_split]
      rows.append((act, percent(sgd_shares.get(act, 0)), *shares))
    if rows:
      tables.append(Table(f"{speaker} acts (%)", ("", "SGD train", *names), tuple(rows)))
  return tables


def _number(value: float | None, form: str) -> Number:
  return Number(value, "-" if value is None else format(value, form))


def _share(actions: Mapping[str, int], act: str) -> Number:
  return percent(actions.get(act, 0) / sum(actions.values()) if actions else None)


def _notes(report: Mapping[str, Any]) -> Iterator[str]:
  yield from _LEGEND
  for split, statistics in report["splits"].items():
    for speaker, acts in statistics["acts"].items():
      if without_acts := acts["frames_without_acts"]:
        yield f"{split}: {without_acts:,} of {acts['frames']:,} {speaker} frames have no acts"
  if any(s["oov_values"] is None for name, s in report["splits"].items() if name != "train"):
    yield "no train dialogues: shares of values that are not in train cannot be computed"
