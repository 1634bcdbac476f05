"""Scores a tracker on the original and perturbed test sets, as `sgdx checkdst check` does.

from sgdx_t5x.papers.checkdst.checks import check, check_report
checked = check("sgd.zip", "test", {"ned": "perturbed/ned"},
                {"original": "preds/original", "ned": "preds/ned"})
check_report(checked)["sets"]["ned"]["rows"]["all"]["cjga"]
"""

import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import frame_id
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.variants import ORIGINAL
from sgdx_t5x.metrics import JOINT_GOAL, FrameScores, slot_failures
from sgdx_t5x.papers.checkdst.checks.counting import Baseline, Counter
from sgdx_t5x.papers.checkdst.checks.labels import every_set, labels
from sgdx_t5x.papers.checkdst.checks.sets import Gold, TestSet, open_sets, read_gold
from sgdx_t5x.papers.checkdst.entities import Slots, entity_slots
from sgdx_t5x.papers.checkdst.ratios import Counts
from sgdx_t5x.papers.checkdst.train_values import lookup_in_train
from sgdx_t5x.progress import OnProgress
from sgdx_t5x.prompts import load_format, signature_fields
from sgdx_t5x.scoring.predictions.files import Paths, have_rows
from sgdx_t5x.scoring.score import Scored, score_predictions
from sgdx_t5x.scoring.settings import Settings
from sgdx_t5x.signature import Signature
from sgdx_t5x.variants.variant_schemas import VariantSchemas

FEWEST_FRAMES = 100  # a set with fewer changed frames gets a remark


class SetFailure(NamedTuple):
  """A slot of a frame that is an error in a perturbed set, see `metrics.failures`.

  Attributes:
    slot: original name.
    gold: acceptable values in the set; empty if the slot is not in the gold state.
    before: acceptable values in the original dialogue.
    predicted: the value that is scored; None if the slot is not in the predicted state.
    kind: one of `metrics.KINDS`.
  """

  slot: str
  gold: tuple[str, ...]
  before: tuple[str, ...]
  predicted: str | None
  kind: str


@dataclasses.dataclass(frozen=True)
class CheckedSet:
  """One set, with one schema variant.

  Attributes:
    name: the name of the set: "original" or "ned".
    variant: the schema variant.
    kind: of perturbation; "" for the original.
    compared_with: label of the set it is compared with; "" if there is none.
    frames: scores of the frames that have a prediction.
    counts: counts of the same frames.
    source: name and checksum of the corpus, and how it was perturbed.
    failures: frame id -> failed slots of a perturbed set; None if not requested.
  """

  name: str
  variant: str
  kind: str
  compared_with: str
  frames: FrameScores
  counts: Counts
  source: Mapping[str, Any]
  failures: Mapping[str, Sequence[SetFailure]] | None = None


@dataclasses.dataclass(frozen=True)
class Checked:
  """A tracker's results on all sets.

  Attributes:
    settings: how it was scored.
    sets: label of the predictions ("original", "ned", "v3", "ned+v3") -> set.
    entities: slots whose values are names.
    signature: what the numbers depend on.
    warnings: what makes them PARTIAL, a line each.
    notes: what else a reader should know.
  """

  settings: Settings
  sets: Mapping[str, CheckedSet]
  entities: Slots
  signature: str
  warnings: tuple[str, ...]
  notes: tuple[str, ...]


def check(
  corpus: Corpus | str | pathlib.Path,
  split: str,
  perturbed: Mapping[str, Corpus | str | pathlib.Path],
  predictions: Mapping[str, Paths],
  *,
  failures: bool = False,
  on_progress: OnProgress = lambda *_: None,
  **settings: Any,
) -> Checked:
  """Reads and scores the predictions for every set.

  Args:
    corpus: the original corpus, or an argument of `sgdx_t5x.open_corpus`.
    split: "train", "dev" or "test".
    perturbed: name -> corpus written by `sgdx checkdst perturb` from the original; or any corpus
      with the same dialogues, named after its kind of perturbation.
    predictions: "original", the name of a set, a schema variant, or "SET+VARIANT" -> file, folder
      or files, see `score.score_predictions`. "original" is compared with the sets, "v3" with
      "ned+v3". "all" stands for every set named in JSONL ids.
    failures: whether to find the failed slots in perturbed sets, for `sgdx report`.
    on_progress: see `score.score_predictions`.
    **settings: see `Settings`, and `Settings.of`.

  Raises:
    SgdxError: invalid or mismatched input; missing frames, unless allowed.
  """
  options = Settings.of(settings)
  corpus = corpus if isinstance(corpus, Corpus) else open_corpus(corpus)
  sets = open_sets(corpus, split, perturbed)
  # Variants in the user's order.
  names = (*(label.rpartition("+")[2] for label in predictions), *options.schemas)
  predictions = every_set(predictions, sets, split, options.prompt_format)
  if not have_rows(predictions.values(), split):
    options = dataclasses.replace(options, prompt_format=load_format())
  by_set = labels(predictions, sets, VariantSchemas(corpus, options.schemas), split, names)
  entities = entity_slots(corpus.schema(split))
  in_train = lookup_in_train(corpus)
  work = _Work(corpus, split, options, entities, failures, on_progress, in_train)
  for name, by_variant in by_set.items():
    sources = {variant: predictions[label] for variant, label in by_variant.items()}
    if name == ORIGINAL:  # "original+v1" is "v1"
      by_variant = {variant: variant for variant in by_variant}
    work.add(sets[name], by_variant, sources)
  for label, checked_set in work.checked.items():
    changed = int(checked_set.counts.sums()["changed"])
    if checked_set.compared_with and changed < FEWEST_FRAMES:
      few = f"{label}: only {changed:,} frames were changed, fewer than {FEWEST_FRAMES}"
      work.notes[f"{few}; its scores may be due to chance"] = None
  signature = _signature(work, [sets[name] for name in by_set])
  return Checked(
    options, work.checked, entities, signature, tuple(work.warnings), tuple(work.notes)
  )


# --- parts -----------------------------------------------------------------------------------


@dataclasses.dataclass
class _Work:
  """Processes one set at a time, to keep only one in memory; see `check` for what it takes."""

  corpus: Corpus
  split: str
  settings: Settings
  entities: Slots
  with_failures: bool
  on_progress: OnProgress
  in_train: Callable[[str], bool] | None
  checked: dict[str, CheckedSet] = dataclasses.field(default_factory=dict)
  warnings: dict[str, None] = dataclasses.field(default_factory=dict)
  notes: dict[str, None] = dataclasses.field(default_factory=dict)
  fields: Mapping[str, str] = dataclasses.field(default_factory=dict)
  original: Gold = dataclasses.field(default_factory=lambda: Gold((), {}, {}))
  baselines: dict[str, Baseline] = dataclasses.field(default_factory=dict)

  def add(self, test_set: TestSet, labels: Mapping[str, str], sources: Mapping[str, Paths]) -> None:
    """Scores and counts a set; `labels` and `sources` map variants to labels and predictions."""
    gold = read_gold(test_set, self.split, self.entities, self.on_progress)
    scored = score_predictions(
      test_set.corpus,
      self.split,
      sources,
      gold=gold.frames,
      on_progress=self.on_progress,
      **vars(self.settings),
    )
    is_original = test_set.name == ORIGINAL
    if is_original:
      self.original = gold
      for variant in labels:
        frames, states = scored.frames[variant], scored.states[variant]
        jga = frames.metrics[JOINT_GOAL].tolist()
        scores = zip(frames.frame_ids.tolist(), jga, strict=True)
        self.baselines[variant] = {key: (states[key], score) for key, score in scores}
    self._say(test_set, scored)
    counter = Counter(
      test_set, self.split, self.entities, self.original, gold, self.in_train, self.settings.fuzzy
    )
    for variant, label in labels.items():
      compared_with = "" if is_original or variant not in self.baselines else variant
      if not is_original and not compared_with:
        self.notes[f"{label}: not compared, since there are no predictions {variant}="] = None
      frames, states = scored.frames[variant], scored.states[variant]
      has_failures = self.with_failures and not is_original
      self.checked[label] = CheckedSet(
        test_set.name,
        variant,
        test_set.kind,
        compared_with,
        dataclasses.replace(frames, metrics={}, dialogue_ids=counter.dialogues(frames)),
        counter.counts(frames, states, self.baselines.get(compared_with, {})),
        _about(test_set, self.corpus),
        self._failures(test_set, scored, variant) if has_failures else None,
      )

  def _failures(
    self, test_set: TestSet, scored: Scored, variant: str
  ) -> dict[str, tuple[SetFailure, ...]]:
    """Returns frame id -> failed slots under a variant, with their original gold values."""
    schema, failures_by_frame = scored.corpus.schema(self.split), {}
    for frame in scored.gold:
      state = {variant: scored.states[variant][frame.frame_id]}
      failed = slot_failures(schema[frame.service], frame.slot_values, state, self.settings.fuzzy)
      if failed:
        dialogue = test_set.original_dialogue(frame.dialogue_id)
        original = self.original.by_id.get(frame_id(dialogue, frame.turn, frame.service))
        gold = original.slot_values if original else {}
        failures_by_frame[frame.frame_id] = tuple(
          SetFailure(x.slot, x.gold, gold.get(x.slot, ()), x.predicted[variant], x.kinds[variant])
          for x in failed
        )
    return failures_by_frame

  def _say(self, test_set: TestSet, scored: Scored) -> None:
    """Collects the warnings and notes on a set's scores, without repetition."""
    self.fields = self.fields or scored.provenance.fields
    prefix = "" if test_set.name == ORIGINAL else f"{test_set.name}: "
    for text in scored.warnings:  # that the corpus is a part is said once
      is_repeated = text.startswith("the corpus has ") and text in self.warnings
      self.warnings[text if is_repeated else prefix + text] = None
    self.notes |= {prefix + text: None for text in scored.notes}


def _signature(work: _Work, used: Sequence[TestSet]) -> str:
  sets = [f"{x.name}:{x.corpus.checksum()}" for x in used if x.name != ORIGINAL]
  fields: dict[str, str | int] = {
    "split": work.split,
    "sets": "+".join(sets),
    "variants": "+".join(dict.fromkeys(x.variant for x in work.checked.values())),
    "services": "all+seen+unseen",
    "fuzzy": work.settings.fuzzy,
    **signature_fields(work.settings.prompt_format),
    **work.fields,
    "jga": "official-per-frame",
    "frames": len(next(iter(work.checked.values())).frames),
  }
  corpus = work.corpus
  return str(Signature.of(corpus.name, corpus.checksum(), fields, not work.warnings))


def _about(test_set: TestSet, original: Corpus) -> dict[str, Any]:
  corpus, manifest = test_set.corpus, test_set.manifest
  names = ("kind", "options", "seed", "counts")
  return {
    "corpus": original.name if test_set.name == ORIGINAL else corpus.name,
    "checksum": corpus.checksum(),
    "steps": [{name: getattr(manifest, name) for name in names}] if manifest else [],
  }
