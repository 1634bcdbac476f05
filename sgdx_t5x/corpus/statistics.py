"""Statistics of a corpus' dialogues, next to those that the SGD paper reports.

The paper: Rastogi et al. 2020, "Towards Scalable Multi-Domain Conversational Agents: The
Schema-Guided Dialogue Dataset", Table 1. Definitions: docs/corpus-statistics.md.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from typing import Any

from sgdx_t5x.corpus import provenance
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import SYSTEM, USER, Dialogue
from sgdx_t5x.corpus.schema import DONTCARE, Schema
from sgdx_t5x.errors import SgdxError, malformed
from sgdx_t5x.progress import OnProgress, counted, no_progress
from sgdx_t5x.signature import Signature

# Of SGD's train. The paper's unique tokens and slot values are left out until they are checked.
PAPER = {
  "dialogues": 16_142,
  "turns": 329_964,
  "turns_per_dialogue": 20.44,
  "tokens_per_turn": 9.75,
  "domains": 16,
  "services": 26,
  "slots": 214,
}
# Shares of acts in the train split of the release, computed by this module.
SGD_ACTS = {
  "user": {
    "AFFIRM": 0.074, "AFFIRM_INTENT": 0.015, "GOODBYE": 0.035, "INFORM": 0.337,
    "INFORM_INTENT": 0.142, "NEGATE": 0.046, "NEGATE_INTENT": 0.018, "REQUEST": 0.115,
    "REQUEST_ALTS": 0.042, "SELECT": 0.09, "THANK_YOU": 0.085,
  },
  "system": {
    "CONFIRM": 0.249, "GOODBYE": 0.048, "INFORM": 0.098, "INFORM_COUNT": 0.043,
    "NOTIFY_FAILURE": 0.007, "NOTIFY_SUCCESS": 0.05, "OFFER": 0.302, "OFFER_INTENT": 0.029,
    "REQUEST": 0.138, "REQ_MORE": 0.035,
  },
}  # fmt: skip
_TRAIN = "train"
_SPEAKERS = {USER: "user", SYSTEM: "system"}


@dataclasses.dataclass(frozen=True)
class Counts:
  """Counts over dialogues; its size grows with words and values, not with their number.

  Attributes:
    totals: turns, tokens, active_slots (slots in the states of user frames).
    vocabulary: whitespace-separated words, lower-cased.
    service_sets: set of services -> number of dialogues with exactly these.
    user_frames: service -> frames of user turns.
    values: (service, slot, lower-cased value) of states, without dontcare -> dialogues.
    acts: speaker -> act -> actions.
    frames: speaker -> frames.
    frames_without_acts: speaker -> frames that have no actions.
    provenance: `provenance.COUNTS` -> values or frames.
  """

  totals: Counter[str] = dataclasses.field(default_factory=Counter)
  vocabulary: set[str] = dataclasses.field(default_factory=set)
  service_sets: Counter[frozenset[str]] = dataclasses.field(default_factory=Counter)
  user_frames: Counter[str] = dataclasses.field(default_factory=Counter)
  values: Counter[tuple[str, str, str]] = dataclasses.field(default_factory=Counter)
  acts: Mapping[str, Counter[str]] = dataclasses.field(
    default_factory=lambda: {speaker: Counter() for speaker in _SPEAKERS}
  )
  frames: Counter[str] = dataclasses.field(default_factory=Counter)
  frames_without_acts: Counter[str] = dataclasses.field(default_factory=Counter)
  provenance: Counter[str] = dataclasses.field(default_factory=Counter)


def count(dialogues: Iterable[Dialogue]) -> Counts:
  """Counts in one pass. Raises SgdxError for an action without an act, or values of wrong types."""
  counts = Counts()
  for dialogue in dialogues:
    try:
      _add(counts, dialogue)
    except (AttributeError, KeyError, TypeError) as e:
      raise SgdxError(
        f"dialogue {dialogue.dialogue_id}: {malformed(e)}",
        expected="utterances and values that are strings, and an act in every action",
        fix="restore the file from the archive, or write it again",
      ) from None
  return counts


def summarise(
  counts: Counts, schema: Schema, train: Schema | None, train_values: Set[str] | None
) -> dict[str, Any]:
  """Returns the statistics of one split.

  Args:
    counts, schema: of the split.
    train: train's schema, for what is unseen.
    train_values: lower-cased values of train's states, for what is not in train; None for train.

  Returns:
    Counts, means, and shares in 0..1; None for what cannot be computed. `acts` has, per
    speaker, frames, frames without actions, and act -> actions; `provenance` has
    `provenance.COUNTS`.
  """
  totals, frames = counts.totals, counts.user_frames.total()
  dialogues = counts.service_sets.total()
  num_services = 0
  dialogues_by_size: Counter[int] = Counter()  # number of services -> dialogues
  for services, number in counts.service_sets.items():
    num_services += len(services) * number
    dialogues_by_size[len(services)] += number
  acts = {}
  for speaker, name in _SPEAKERS.items():
    acts[name] = {
      "frames": counts.frames[speaker],
      "frames_without_acts": counts.frames_without_acts[speaker],
      "actions": dict(counts.acts[speaker].most_common()),
    }
  return {
    "dialogues": dialogues,
    "single_domain": dialogues_by_size[1],
    "multi_domain": dialogues - dialogues_by_size[0] - dialogues_by_size[1],
    "services_per_dialogue": _ratio(num_services, dialogues),
    "turns": totals["turns"],
    "turns_per_dialogue": _ratio(totals["turns"], dialogues),
    "tokens_per_turn": _ratio(totals["tokens"], totals["turns"]),
    "unique_tokens": len(counts.vocabulary),
    "domains": len({service.domain for service in schema}),
    "services": len(schema),
    "intents": sum(len(service.intents) for service in schema),
    "slots": sum(len(service.slots) for service in schema),
    "slot_values": len(counts.values),
    "user_frames": frames,
    "active_slots_per_frame": _ratio(totals["active_slots"], frames),
    **_unseen(counts, schema, train),
    **_out_of_vocabulary(counts, schema, train_values),
    "acts": acts,
    "provenance": {key: counts.provenance[key] for key in provenance.COUNTS},
  }


def report(corpus: Corpus, on_progress: OnProgress = no_progress) -> dict[str, Any]:
  """Returns the statistics of a corpus' splits, ready for JSON. Raises SgdxError: a broken file."""
  schemas = {split: corpus.schema(split) for split in corpus.splits}  # fail before the long reading
  train = schemas.get(_TRAIN)
  train_values, statistics, warnings = None, {}, []
  # Train is the first: what is out of vocabulary in a split is what train's values lack.
  for split, schema in schemas.items():
    total = corpus.expected_dialogues(split)
    dialogues = corpus.dialogues(split)
    counts = count(counted(dialogues, on_progress, f"counting {split}", total, "dialogues"))
    number = counts.service_sets.total()
    complete = corpus.is_complete(split, number)
    if not complete:
      warnings.append(f"{split}: {corpus.part(split, number)}")
    statistics[split] = {"complete": complete, **summarise(counts, schema, train, train_values)}
    if split == _TRAIN and number:
      train_values = {value for _, _, value in counts.values}
  fields = {"splits": "+".join(statistics), "tokens": "white-space"}
  return {
    "format": "sgdx-corpus-statistics/1",
    "signature": str(Signature.of(corpus.name, corpus.checksum(), fields, not warnings)),
    "complete": not warnings,
    "warnings": warnings,
    "splits": statistics,
    "paper": dict(PAPER),
    "sgd_train_acts": SGD_ACTS,
  }


def _add(counts: Counts, dialogue: Dialogue) -> None:
  totals = counts.totals
  services, values = set(), set()
  totals["turns"] += len(dialogue.turns)
  for number, turn in enumerate(dialogue.turns):
    words = turn.utterance.lower().split()
    totals["tokens"] += len(words)
    counts.vocabulary.update(words)
    acts = counts.acts[turn.speaker]
    counts.frames[turn.speaker] += len(turn.frames)
    for frame in turn.frames:
      services.add(frame.service)
      if not frame.actions:
        counts.frames_without_acts[turn.speaker] += 1
      for action in frame.actions or ():
        acts[action["act"]] += 1
      # The same frames as in scores.
      if turn.speaker == USER and frame.state is not None and dialogue.is_scored(number):
        counts.user_frames[frame.service] += 1
        totals["active_slots"] += len(frame.state.slot_values)
        for slot, ways in frame.state.slot_values.items():
          for value in ways:
            if value != DONTCARE:
              values.add((frame.service, slot, value.lower()))
  counts.service_sets[frozenset(services)] += 1
  counts.values.update(values)  # a dialogue counts once, however many states repeat the value
  counts.provenance.update(provenance.count(dialogue))


def _unseen(counts: Counts, schema: Schema, train: Schema | None) -> dict[str, Any]:
  """What train's schema does not have: the zero-shot part of a split."""
  if train is None:
    keys = ("unseen_domains", "unseen_services", "unseen_dialogues", "unseen_frames")
    return dict.fromkeys(keys)
  unseen = set(schema.names).difference(train.names)
  dialogues = sum(n for services, n in counts.service_sets.items() if services & unseen)
  frames = sum(n for service, n in counts.user_frames.items() if service in unseen)
  return {
    "unseen_domains": len({s.domain for s in schema} - {s.domain for s in train}),
    "unseen_services": len(unseen),
    "unseen_dialogues": _ratio(dialogues, counts.service_sets.total()),
    "unseen_frames": _ratio(frames, counts.user_frames.total()),
  }


def _out_of_vocabulary(
  counts: Counts, schema: Schema, train_values: Set[str] | None
) -> dict[str, Any]:
  """Shares of values that occur in no state of train, in any slot.

  `oov_values` counts distinct values; `oov_uses` weights each by the dialogues that have it.
  """
  result: dict[str, float | None] = {}
  for suffix, noncategorical_only in (("", False), ("_noncategorical", True)):
    uses, new_uses = [], []  # dialogues that have a value, by value
    for (service, slot, value), dialogues in counts.values.items():
      if not noncategorical_only or slot in schema[service].noncategorical_slots:
        uses.append(dialogues)
        if train_values is not None and value not in train_values:
          new_uses.append(dialogues)
    is_known = train_values is not None
    result[f"oov_values{suffix}"] = _ratio(len(new_uses), len(uses)) if is_known else None
    result[f"oov_uses{suffix}"] = _ratio(sum(new_uses), sum(uses)) if is_known else None
  return result


def _ratio(part: float, total: float) -> float | None:
  return part / total if total else None
