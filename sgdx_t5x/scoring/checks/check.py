"""Scores a tracker on the original test set and on perturbed ones: what `sgdx check` does.

from sgdx_t5x.scoring.checks import check, check_report
checked = check("sgd.zip", "test", {"ned": "perturbed/ned"},
                {"original": "preds/original", "ned": "preds/ned"})
check_report(checked)["sets"]["ned"]["rows"]["all"]["cjga"]
"""

import dataclasses
import pathlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sgdx_t5x import metrics
from sgdx_t5x.corpora import open_corpus
from sgdx_t5x.data.corpus import Corpus
from sgdx_t5x.data.provenance import CARRIED
from sgdx_t5x.data.variants import ORIGINAL
from sgdx_t5x.errors import SgdxError, UsageError, nearest
from sgdx_t5x.metrics import FrameScores, GoldFrame
from sgdx_t5x.metrics.factuality import History
from sgdx_t5x.metrics.failures import State
from sgdx_t5x.metrics.perturbed import COUNTS, Around, Before, frame_counts
from sgdx_t5x.metrics.ratios import Counts
from sgdx_t5x.perturb.entities import Slots, entity_slots
from sgdx_t5x.prompts import load_format, signature_fields
from sgdx_t5x.scoring.checks.sets import (
  KINDS,
  Gold,
  TestSet,
  changes_of,
  is_changed,
  open_sets,
  read_gold,
)
from sgdx_t5x.scoring.checks.train_values import TrainValues
from sgdx_t5x.scoring.predictions.files import PredictionSource
from sgdx_t5x.scoring.progress import OnProgress
from sgdx_t5x.scoring.score import score_predictions
from sgdx_t5x.scoring.settings import Settings
from sgdx_t5x.signature import Signature

FEWEST_FRAMES = 100  # changed frames of a set, below which a remark says so
_EXPECTED_KINDS = ("ned", "pi", "sdi")  # CheckDST's


@dataclasses.dataclass(frozen=True)
class CheckedSet:
  """One set, with one schema variant.

  Attributes:
    label: as the predictions were named: "original", "ned", "v3", "ned+v3".
    name: of the set, "original" or "ned".
    variant: of the schema.
    kinds: of perturbation.
    before: label of what it is compared with; "" if it is not, or not given.
    frames: scores of the frames that have a prediction.
    counts: of the same frames.
    about: name and checksum of the corpus, and how it was perturbed.
  """

  label: str
  name: str
  variant: str
  kinds: tuple[str, ...]
  before: str
  frames: FrameScores
  counts: Counts
  about: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Checked:
  """A tracker on all sets.

  Attributes:
    corpus: the original.
    split: of it.
    settings: how it was scored.
    sets: label -> set.
    entities: slots that hold names.
    signature: what the numbers depend on.
    warnings: what makes them PARTIAL, a line each.
    notes: what else a reader should know.
  """

  corpus: Corpus
  split: str
  settings: Settings
  sets: Mapping[str, CheckedSet]
  entities: Slots
  signature: str
  warnings: tuple[str, ...]
  notes: tuple[str, ...]

  @property
  def complete(self) -> bool:
    """Whether every frame of the published split has been scored, in every set."""
    return not self.warnings


def check(
  corpus: Corpus | str | pathlib.Path,
  split: str,
  perturbed: Mapping[str, Corpus | str | pathlib.Path],
  predictions: Mapping[str, PredictionSource],
  *,
  entities: Slots | None = None,
  on_progress: OnProgress = lambda *_: None,
  **settings: Any,
) -> Checked:
  """Reads and scores the predictions for every set.

  Args:
    corpus: the original one, or what `corpora.open_corpus` opens.
    split: "train", "dev" or "test".
    perturbed: name -> corpus of `sgdx perturb`, made from the original; or any corpus with the
      same dialogues, called as its kind is.
    predictions: "original", the name of a set, a schema variant, or "SET+VARIANT" -> file, folder
      or files, see `score.score_predictions`. "original" is compared with the sets, "v3" with
      "ned+v3".
    entities: slots that hold names; by default, those of titles, persons and places.
    on_progress: see `score.score_predictions`.
    **settings: attributes of `Settings`.

  Raises:
    SgdxError: anything that does not fit; missing frames, unless allowed.
  """
  if style := settings.pop("style", None):
    settings["prompt_format"] = load_format(style=style)
  how = Settings(**settings)
  corpus = corpus if isinstance(corpus, Corpus) else open_corpus(corpus)
  sets = open_sets(corpus, split, perturbed)
  labels = _labels(predictions, sets, corpus)
  slots = entity_slots(corpus.schema(split)) if entities is None else entities
  used = [sets[name] for name in labels]
  derived = any(x.replaces_names and not x.manifests for x in used)
  train = TrainValues(corpus)
  original: Gold | None = None
  known: dict[str, _Known] = {}
  checked: dict[str, CheckedSet] = {}
  warnings: dict[str, None] = {}
  notes: dict[str, None] = {}
  fields: Mapping[str, str] = {}
  for name, by_variant in labels.items():
    test_set = sets[name]
    gold = read_gold(test_set, split, slots if derived else None, on_progress)
    original = original or gold
    sources = {variant: predictions[label] for variant, label in by_variant.items()}
    scored = score_predictions(
      test_set.corpus,
      split,
      sources,
      gold=gold.frames,
      on_progress=on_progress,
      **dataclasses.asdict(how) | {"prompt_format": how.prompt_format},
    )
    fields = fields or scored.provenance.fields
    said = f"{name}: " if name != ORIGINAL else ""
    warnings |= {text if text in warnings else said + text: None for text in scored.warnings}
    notes |= {said + text: None for text in scored.notes}
    counter = _Counter(test_set, split, slots, original, gold, train, how.fuzzy)
    for variant, label in by_variant.items():
      before = variant if name != ORIGINAL else ""
      if name == ORIGINAL:
        jga = scored.frames[variant].metrics[metrics.JOINT_GOAL].tolist()
        ids = scored.frames[variant].frame_ids.tolist()
        known[variant] = _Known(scored.states[variant], dict(zip(ids, jga, strict=True)))
      elif variant not in known:
        before = ""
        notes[f"{label}: no predictions {variant}=, so there is nothing to compare it with"] = None
      counts = counter.counts(scored.frames[variant], scored.states[variant], known.get(before))
      checked[label] = CheckedSet(
        label,
        name,
        variant,
        test_set.kinds,
        before,
        scored.frames[variant],
        counts,
        _about(test_set, corpus),
      )
  _check_shared(checked)
  notes |= dict.fromkeys(_remarks(checked))
  parts = [f"{x.name}:{x.corpus.checksum()}" for x in used if x.name != ORIGINAL]
  signed: dict[str, str | int] = {
    "split": split,
    "sets": "+".join(parts),
    "variants": "+".join(dict.fromkeys(x.variant for x in checked.values())),
    "services": "all+seen+unseen",
    "fuzzy": how.fuzzy,
    **signature_fields(how.prompt_format),
    **fields,
    "jga": "official-per-frame",
    "names": "" if entities is None else _crc(entities),
    "frames": len(next(iter(checked.values())).frames),
  }
  signature = Signature.of(corpus.name, corpus.checksum(), signed, not warnings)
  return Checked(corpus, split, how, checked, slots, str(signature), tuple(warnings), tuple(notes))


# --- parts -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Known:
  """Predictions for the original set: frame id -> state, and JGA."""

  states: Mapping[str, State]
  jga: Mapping[str, float]


def _labels(
  predictions: Mapping[str, PredictionSource], sets: Mapping[str, TestSet], corpus: Corpus
) -> dict[str, dict[str, str]]:
  """Returns set -> schema variant -> label of the predictions, the original set first."""
  found: dict[str, dict[str, str]] = {name: {} for name in sets}
  for label in predictions:
    name, _, variant = label.partition("+")
    if name not in sets and not variant:
      name, variant = ORIGINAL, label
    variant = variant or ORIGINAL
    if name not in sets or (variant not in corpus.variants and not variant.startswith("bt_")):
      raise UsageError(
        f"predictions for {label}",
        expected="the name of a set, a schema variant, or SET+VARIANT",
        available=nearest(label, [*sets, *corpus.variants]),
        fix=f"give the set as --perturbed {name}=DIR, or correct the name",
      )
    if variant in found[name]:
      raise UsageError(
        f"predictions for {label} and for {found[name][variant]}, which are the same",
        expected="each set and variant once",
        fix="leave one of the two out",
      )
    found[name][variant] = label
  if not found[ORIGINAL]:
    raise UsageError(
      "no predictions for the original dialogues",
      expected="original=DIR, which the perturbed sets are compared with",
      available=", ".join(predictions) or "none at all",
      fix="add --predictions original=DIR",
    )
  for name in [name for name, by_variant in found.items() if not by_variant]:
    raise UsageError(
      f"no predictions for the perturbed set {name}",
      expected=f"{name}=DIR among the predictions",
      available=", ".join(predictions),
      fix=f"add --predictions {name}=DIR, or leave --perturbed {name}=... out",
    )
  return found


class _Counter:
  """Counts frames of one set."""

  def __init__(
    self,
    test_set: TestSet,
    split: str,
    entities: Slots,
    original: Gold,
    gold: Gold,
    train: TrainValues,
    fuzzy: str,
  ):
    self._set, self._gold, self._fuzzy = test_set, gold, fuzzy
    self._schema = test_set.corpus.schema(split)
    self._entities, self._replaced = entities, test_set.replaced(entities)
    self._changes = changes_of(test_set, split, original, gold)
    self._by_id = {frame.frame_id: frame for frame in gold.frames}
    self._sticky = _sticky(gold.frames)
    self._in_train = train.__contains__ if train.known else None
    is_original = original is gold
    before = {} if is_original else {frame.frame_id: frame for frame in original.frames}
    self._changed = {
      key: is_changed(test_set.kinds, before[key], frame)
      for key, frame in self._by_id.items()
      if key in before
    }

  def counts(
    self, frames: FrameScores, states: Mapping[str, State], known: _Known | None
  ) -> Counts:
    """Returns the counts of the frames that were scored, in their order."""
    values = np.zeros((len(frames), len(COUNTS)))
    position = {name: i for i, name in enumerate(COUNTS)}
    dialogue, history = "", History(())
    jga = frames.metrics[metrics.JOINT_GOAL].tolist()
    for row, (key, score) in enumerate(zip(frames.frame_ids.tolist(), jga, strict=True)):
      gold = self._by_id[key]
      if gold.dialogue_id != dialogue:
        dialogue, history = gold.dialogue_id, History(self._gold.utterances[gold.dialogue_id])
      found = frame_counts(
        self._schema[gold.service],
        gold,
        states[key],
        score,
        self._before(gold, known),
        self._around(gold, history),
        self._fuzzy,
      )
      for name, number in found.items():
        values[row, position[name]] = number
    return Counts(COUNTS, values.T, frames.dialogue_ids)

  def _before(self, gold: GoldFrame, known: _Known | None) -> Before | None:
    key = gold.frame_id
    if known is None or key not in known.jga or key not in self._changed:
      return None
    names = self._changes.names.get(gold.dialogue_id, {}) if self._set.replaces_names else None
    choices = {
      slot: replaced
      for (service, slot), replaced in self._changes.choices.get(gold.dialogue_id, {}).items()
      if service == gold.service
    }
    return Before(known.states[key], known.jga[key], self._changed[key], names, choices)

  def _around(self, gold: GoldFrame, history: History) -> Around:
    repairs = self._changes.repairs.get((gold.dialogue_id, gold.turn), {})
    nothing: frozenset[str] = frozenset()
    return Around(
      history,
      self._entities.get(gold.service, nothing),
      self._replaced.get(gold.service, nothing),
      gold.frame_id in self._sticky,
      {slot: value for (service, slot), value in repairs.items() if service == gold.service},
      self._in_train,
    )


def _sticky(frames: Sequence[GoldFrame]) -> frozenset[str]:
  """Returns the frames from the first carried value of a dialogue on."""
  found, dialogues = set(), set()
  for frame in frames:
    if any(origin.source == CARRIED for origin in frame.origins.values()):
      dialogues.add(frame.dialogue_id)
    if frame.dialogue_id in dialogues:
      found.add(frame.frame_id)
  return frozenset(found)


def _about(test_set: TestSet, original: Corpus) -> dict[str, Any]:
  corpus = test_set.corpus
  steps = [
    {"kind": x.kind, "options": dict(x.options), "seed": x.seed, "counts": dict(x.counts)}
    for x in test_set.manifests
  ]
  return {
    "corpus": original.name if test_set.name == ORIGINAL else corpus.name,
    "checksum": corpus.checksum(),
    "steps": steps,
  }


def _check_shared(checked: Mapping[str, CheckedSet]) -> None:
  for found in checked.values():
    if not found.before:
      continue
    ids = set(checked[found.before].frames.frame_ids.tolist())
    if ids.isdisjoint(found.frames.frame_ids.tolist()):
      raise SgdxError(
        f"{found.label} and {found.before} share no frames",
        expected="predictions for the same dialogues, user turns and services in both",
        available=f"{found.label}: {found.frames.frame_ids[0]}, {found.before}: {min(ids)}",
        fix="perturb the corpus that was predicted, or predict the dialogues that were perturbed",
      )


def _remarks(checked: Mapping[str, CheckedSet]) -> Iterator[str]:
  for found in checked.values():
    changed = int(found.counts.sums()["changed"])
    if found.before and changed < FEWEST_FRAMES:
      yield (
        f"{found.label}: {changed:,} frames were changed, fewer than {FEWEST_FRAMES}: its numbers "
        "may be chance"
      )
  given = {kind for found in checked.values() for kind in found.kinds}
  if lacking := [kind for kind in _EXPECTED_KINDS if kind not in given]:
    yield f"no set of kind {', '.join(lacking)}; there are {', '.join(KINDS)}, see `sgdx perturb`"


def _crc(entities: Slots) -> str:
  text = " ".join(f"{name}.{slot}" for name in sorted(entities) for slot in sorted(entities[name]))
  return f"{zlib.crc32(text.encode()):08x}"
