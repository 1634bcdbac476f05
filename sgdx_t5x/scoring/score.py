"""Scores predictions: `sgdx score` for notebooks and other programs.

from sgdx_t5x.scoring import score_predictions
scored = score_predictions("sgd.zip", "test", {"original": "preds/original", "v1": "preds/v1"})
scored.frames["v1"].metrics["joint_goal_accuracy"]  # [F], one score per frame
Scores(scored).jga_v1_5  # of `scoring.scores`: what `sgdx_t5x.score` returns
"""

import dataclasses
import functools
import os
import pathlib
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sgdx_t5x import metrics
from sgdx_t5x.arguments import PATH, checked_arguments
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.corpus.variants import in_order, reworded_variants
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.metrics import Failure, FrameScores, GoldFrame
from sgdx_t5x.metrics.failures import State
from sgdx_t5x.progress import MEGABYTE, OnProgress, counter
from sgdx_t5x.prompts import load_format, provenance, signature_fields
from sgdx_t5x.prompts.protocol import Provenance
from sgdx_t5x.scoring.by_source import source_rows
from sgdx_t5x.scoring.frame_table import FrameTable, scores_checksum
from sgdx_t5x.scoring.gold import gold_frames
from sgdx_t5x.scoring.notes import ignored_lines, note_lines, warning_lines, with_origins
from sgdx_t5x.scoring.predictions import read_all_variants, read_predictions
from sgdx_t5x.scoring.predictions.files import (
  Predictions,
  PredictionSource,
  Selection,
  files_of,
  have_rows,
  size_of,
  sources_of,
)
from sgdx_t5x.scoring.rows import GROUPS
from sgdx_t5x.scoring.score_files import REPORT_FORMAT as FORMAT
from sgdx_t5x.scoring.score_tables import annex_notes
from sgdx_t5x.scoring.settings import Settings
from sgdx_t5x.scoring.summaries import null_for_nan, summaries
from sgdx_t5x.signature import Signature

ALL = "all"  # stands for every variant named in JSONL ids


@dataclasses.dataclass(frozen=True)
class Scored:
  """The scores of a set of predictions.

  Attributes:
    corpus: the corpus they were scored with.
    split: the split of the corpus.
    settings: how they were scored.
    frames: variant -> scores of the frames it has predictions for.
    common: variant -> scores of the frames that all variants have, in the same order.
    gold: those frames.
    states: variant -> frame id -> predicted state, in original names.
    empty_state_scores: scores of predicting empty states on the same frames.
    sample: 8 hex digits that identify the frames; "" if they are all frames of the split.
    missing: variant -> number of frames of the split without a prediction.
    warnings: what makes the scores PARTIAL, a line each.
    notes: what else a reader should know.
    provenance: what the signature says about the files that prompts were made from.
    further: what the prompt format counts beside states (`count_answers`): key of the report ->
      variant -> numbers.
  """

  corpus: Corpus
  split: str
  settings: Settings
  frames: dict[str, FrameScores]
  common: dict[str, FrameScores]
  gold: tuple[GoldFrame, ...]
  states: dict[str, dict[str, State]]
  empty_state_scores: FrameScores
  sample: str
  missing: dict[str, int]
  warnings: tuple[str, ...]
  notes: tuple[str, ...]
  provenance: Provenance = dataclasses.field(default_factory=Provenance)
  further: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)

  def __repr__(self) -> str:
    state = "complete" if self.complete else "PARTIAL"
    frames = f"{len(self.empty_state_scores):,} frames of {self.split} of {self.corpus.name}"
    return f"<Scored {', '.join(self.frames)}: {frames}, {state}>"

  @property
  def complete(self) -> bool:
    """Whether every frame of the published split has been scored, in every variant given."""
    return not self.warnings

  @property
  def signature(self) -> str:
    """What the scores depend on, in one line to report with them (as sacreBLEU does)."""
    fields: dict[str, str | int] = {
      "split": self.split,
      "variants": "+".join(self.frames),
      "services": "all+seen+unseen",
      "fuzzy": self.settings.fuzzy,
      **signature_fields(self.settings.prompt_format),
      **self.provenance.fields,
      "jga": f"official-{'across-turn' if self.settings.across_turn else 'per-frame'}",
      "zero_mean": self.settings.zero_mean,
      "frames": len(self.empty_state_scores),
      "sample": self.sample,
    }
    return str(Signature.of(self.corpus.name, self.corpus.checksum(), fields, self.complete))

  def failures(self) -> dict[str, tuple[Failure, ...]]:
    """Returns frame id -> failed slots, for the common frames with at least one."""
    schema, failures = self.corpus.schema(self.split), {}
    for frame in self.gold:
      states = {variant: by_frame[frame.frame_id] for variant, by_frame in self.states.items()}
      failed = metrics.slot_failures(
        schema[frame.service], frame.slot_values, states, self.settings.fuzzy
      )
      if failed:
        failures[frame.frame_id] = failed
    return failures

  @functools.cached_property
  def agreement(self) -> dict[str, float]:
    """Frame id -> agreement of the variants on the common frames; empty if any is missing."""
    variants = reworded_variants(self.states)
    if not set(variants) <= self.states.keys():
      return {}
    schema, agreement = self.corpus.schema(self.split), {}
    for frame in self.gold:  # only id and service are used
      states = [self.states[variant][frame.frame_id] for variant in variants]
      agreement[frame.frame_id] = metrics.frame_agreement(
        schema[frame.service], states, self.settings.fuzzy
      )
    return agreement

  def table(self, path: str | pathlib.Path) -> FrameTable:
    """Returns the per-frame scores, as `score_files.read_frames` would read them from `path`."""
    return FrameTable(
      pathlib.Path(path),
      self.signature,
      scores_checksum(self.common),
      self.common,
      tuple(next(iter(self.common.values())).metrics),
      self.warnings,
      self.failures(),
      self.agreement or None,
      notes=tuple(annex_notes(self.further)),
    )


@checked_arguments(
  corpus=(Corpus, *PATH), split=str, predictions=Mapping, gold=Collection, on_progress=Callable
)
def score_predictions(
  corpus: Corpus | str | os.PathLike,
  split: str,
  predictions: Mapping[str, Any],
  *,
  gold: Sequence[GoldFrame] | None = None,
  on_progress: OnProgress = lambda *_: None,
  **settings: Any,
) -> Scored:
  """Reads and scores predictions.

  Args:
    corpus, split, predictions: see `score`.
    gold: frames of the split, if already read.
    on_progress: called with (task, done, total, unit).
    **settings: those of `score`.

  Raises:
    SgdxError: invalid or mismatched input; missing frames, unless allowed.
  """
  options = Settings.of(settings)
  if not predictions:
    raise UsageError(
      "no predictions", expected="variant -> file or folder", fix='pass {"original": PATH}'
    )
  corpus = corpus if isinstance(corpus, Corpus) else open_corpus(corpus)
  sources = sources_of(predictions)
  for name in predictions:
    # "ned+v1" is scored with that perturbed corpus alone.
    corpus.check_kinds(split, name)
  names = (*sources, *options.schemas)  # the order in which the user named variants
  if gold is None or options.provenance:  # frames already read may lack the origins of values
    gold = gold_frames(corpus, split, split, options.provenance, on_progress)
  if not have_rows(sources.values(), split):
    options = dataclasses.replace(options, prompt_format=load_format())
  files = provenance(options.prompt_format, corpus, gold)
  score = functools.partial(
    metrics.score_frames,
    schema=corpus.schema(split),
    seen_services=corpus.seen_services(split),
    backend=options.fuzzy,
  )
  size = 0
  for source in sources.values():
    size += sum(map(size_of, files_of(source, split)))
  on_read = counter(on_progress, "reading predictions", size, "MB", MEGABYTE)
  selection = Selection(
    corpus, split, gold, options.prompt_format, options.allow_missing, on_read, options.schemas
  )
  results = _score_variants(gold, sources, selection, score)
  # Rows name their variants in any order.
  results = {variant: results[variant] for variant in in_order(results, names)}
  return _joined(results, selection, sources, options, files, score)


def _joined(
  results: Mapping[str, "_Variant"],
  selection: Selection,
  sources: Mapping[str, PredictionSource],
  options: Settings,
  files: Provenance,
  score: Callable[..., FrameScores],
) -> Scored:
  """Returns the scores of all variants, and what is the same or compared in all of them.

  Args:
    results: in the order shown.
    files: what the prompt format records of the files that prompts were made from.
    score: see `_score_variants`.
  """
  corpus, split, gold = selection.corpus, selection.split, selection.gold
  scores: dict[str, FrameScores] = {}
  missing: dict[str, int] = {}
  own_schemas: dict[str, Schema] = {}
  further: dict[str, dict[str, Any]] = {}
  for variant, result in results.items():
    scores[variant] = result.scores
    # Before turns are left out: their other frames do have a prediction.
    missing[variant] = len(gold) - len(result.scores)
    if options.across_turn and missing[variant]:
      scores[variant] = _whole_turns(result.scores, gold)
    if variant in options.schemas:
      own_schemas[variant] = selection.schemas.get(split, variant)
    for key, numbers in result.further.items():
      further.setdefault(key, {})[variant] = numbers
  common, common_gold = _common(scores, gold)
  # Their scores must not be taken for a tracker's own.
  oracles = [variant for variant, result in results.items() if result.gold_history]
  files = with_origins(files, own_schemas, oracles)
  notes = (
    *annex_notes(further),
    *note_lines(scores, sources, split, options),
    *ignored_lines({v: (result.ignored, len(result.scores)) for v, result in results.items()}),
    *files.notes,
  )
  extra = {variant: result.extra_dialogues for variant, result in results.items()}
  return Scored(
    corpus=corpus,
    split=split,
    settings=options,
    frames=scores,
    common=common,
    gold=common_gold,
    states={variant: result.states for variant, result in results.items()},
    empty_state_scores=score(common_gold, metrics.predict_nothing(common_gold)),
    sample=_digest(common_gold) if len(common_gold) < len(gold) else "",
    missing=missing,
    warnings=tuple(warning_lines(missing, extra, selection)),
    notes=notes,
    provenance=files,
    further=further,
  )


def _digest(gold: Sequence[GoldFrame]) -> str:
  """Returns 8 hex digits of frames that are a part of a split, whose name does not say which."""
  return f"{zlib.crc32(' '.join(frame.frame_id for frame in gold).encode()):08x}"


class _Variant(NamedTuple):
  """What is kept of the `Predictions` for a variant; see `Scored`."""

  scores: FrameScores
  states: dict[str, State]
  ignored: list[int]  # parts of answers that could not be read, per frame that has any
  extra_dialogues: int
  further: Mapping[str, Any]
  gold_history: bool


def _score_variants(
  gold: Sequence[GoldFrame],
  sources: Mapping[str, PredictionSource],
  selection: Selection,
  score: Callable[..., FrameScores],
) -> dict[str, _Variant]:
  """Reads and scores one variant after the other. Args: score, of (gold, predicted frames)."""
  # Of an annex's format, such as the share of answers that call a tool that does not exist.
  frame_metrics = getattr(selection.prompt_format, "frame_metrics", None)
  count_answers = getattr(selection.prompt_format, "count_answers", None)
  variants: dict[str, _Variant] = {}
  scores: dict[str, FrameScores] = {}
  for variant, predicted in _read(sources, selection):
    frames = predicted.frames
    frame_scores = score(gold, frames)
    if frame_metrics:
      frame_scores = frame_scores.with_metrics(frame_metrics(frames, variant, selection))
    scores[variant] = metrics.sharing_columns(frame_scores, scores)
    variants[variant] = _Variant(
      scores[variant],
      {key: frame.slot_values for key, frame in frames.items()},
      [frame.ignored for frame in frames.values() if frame.ignored],
      predicted.extra_dialogues,
      count_answers(frames, variant, selection) if count_answers else {},
      predicted.gold_history,
    )
    del predicted, frames  # before the next are read: they are what takes the most memory
  return variants


@checked_arguments(scored=Scored, per_frame=Mapping, on_progress=Callable)
def score_report(
  scored: Scored,
  per_frame: Mapping[str, str] | None = None,
  on_progress: OnProgress = lambda *_: None,
) -> dict[str, Any]:
  """Returns what `sgdx score --json` writes; docs/score-json.md describes it.

  Args:
    scored: the scores.
    per_frame: name and checksum of the file of per-frame scores.
    on_progress: called with (task, done, total, unit).
  """
  settings, common = scored.settings, scored.common
  samples = None
  if settings.bootstrap_samples:
    samples = metrics.BootstrapSamples.draw(
      scored.empty_state_scores.dialogue_ids, settings.bootstrap_samples, settings.seed
    )
  jga = metrics.JOINT_GOAL
  # Who predicts nothing does so with every schema, so that all pairs of states agree.
  empty_states = dict.fromkeys(common, scored.empty_state_scores)
  agreement = scored.empty_state_scores.column(scored.agreement)
  full_agreement = np.where(np.isnan(agreement), np.nan, 1.0)
  services = {frame.service for frame in scored.gold}
  domains = {service.split("_")[0] for service in services}
  rows_per_metric = len(GROUPS) + len(domains) + len(services)  # all take about as long
  total = rows_per_metric * (1 + len(settings.metrics))
  on_row = counter(on_progress, "computing scores", total, "rows")
  rows_by_metric = {}
  for name in settings.metrics:
    rows_by_metric[name] = summaries(common, name, name, settings, samples, on_row).to_json()
  # Official scores are of all frames that a variant has; what compares variants, of those that all
  # have.
  official = {}
  for variant, scores in scored.frames.items():
    groups = metrics.official_scores(scores, settings.across_turn)
    official[variant] = {group: null_for_nan(means) for group, means in groups.items()}
  report: dict[str, Any] = {
    "format": FORMAT,
    "signature": scored.signature,
    "complete": scored.complete,
    "warnings": list(scored.warnings),
    "notes": list(scored.notes),
    "missing": dict(scored.missing),
    "per_frame": per_frame,
    "variants": official,
    "sgdx": summaries(common, jga, "jga", settings, samples, on_row, agreement=agreement).to_json(),
    "metrics": rows_by_metric,
    "predict_nothing": summaries(
      empty_states, jga, "jga", settings, None, per_service=False, agreement=full_agreement
    ).to_json(),
  }
  if settings.provenance:
    schema = scored.corpus.schema(scored.split)
    report["provenance"] = source_rows(
      common, scored.gold, scored.states, schema, settings, samples
    )
  return report | scored.further


# --- reading -------------------------------------------------------------------------------


def _read(
  sources: Mapping[str, PredictionSource], selection: Selection
) -> Iterator[tuple[str, Predictions]]:
  """Yields (variant, predictions) one variant at a time, to keep only one in memory."""
  names: set[str] = set()
  for name, path in sources.items():
    if name == ALL:
      by_variant = read_all_variants(path, selection)
    else:
      by_variant = {name: read_predictions(path, name, selection)}
    if repeated := names.intersection(by_variant):
      raise UsageError(
        f"{', '.join(sorted(repeated))}: predictions both in {path} and elsewhere",
        expected="one source of predictions per variant",
        fix="leave out one of the two",
      )
    names.update(by_variant)
    # Popped: whoever scores them can then free them before the next.
    for variant in list(by_variant):
      yield variant, by_variant.pop(variant)


def _common(
  scores: Mapping[str, FrameScores], gold: Sequence[GoldFrame]
) -> tuple[dict[str, FrameScores], tuple[GoldFrame, ...]]:
  """Returns the scores of the frames that all variants have, and these frames."""
  common = metrics.common_frames(scores)
  frame_ids = set(next(iter(common.values())).frame_ids.tolist())
  if not frame_ids:
    raise SgdxError(
      "no frame has predictions for all the given variants",
      expected="predictions for the same frames under every variant",
      available=", ".join(f"{v}: {len(frames):,} frames" for v, frames in scores.items()),
      fix="score the variants separately, or complete their predictions",
    )
  return common, tuple(frame for frame in gold if frame.frame_id in frame_ids)


def _whole_turns(scores: FrameScores, gold: Sequence[GoldFrame]) -> FrameScores:
  """Keeps the turns whose frames all have a prediction."""
  ids = set(scores.frame_ids.tolist())
  incomplete = {(f.dialogue_id, f.turn) for f in gold if f.frame_id not in ids}
  # A product over some of a turn's frames would be higher than over all.
  is_whole = [(dialogue, turn) not in incomplete for _, dialogue, turn, *_ in scores.places()]
  return scores.take(np.array(is_whole, dtype=bool))
