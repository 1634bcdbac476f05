"""Predictions in, scores out: what `sgdx score` does, for a notebook or another program.

from sgdx_t5x.scoring import score_predictions
scored = score_predictions("sgd.zip", "test", {"original": "preds/original", "v1": "preds/v1"})
scored.frames["v1"].metrics["joint_goal_accuracy"]  # [F], one score per frame
report(scored)["sgdx"]["unseen"]["jga_v1"]          # what --json writes
"""

import dataclasses
import math
import pathlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sgdx_t5x import metrics
from sgdx_t5x.corpora import open_corpus
from sgdx_t5x.data.corpus import PUBLISHED_DIALOGUES, Corpus
from sgdx_t5x.errors import SgdxError, UsageError, nearest
from sgdx_t5x.metrics import Failure, FrameScores, GoldFrame
from sgdx_t5x.metrics.failures import State
from sgdx_t5x.prompts import load_format, signature_fields
from sgdx_t5x.prompts.protocol import PromptFormat
from sgdx_t5x.scoring.predictions import read_all_variants, read_predictions
from sgdx_t5x.scoring.predictions.files import (
  Predictions,
  PredictionSource,
  Selection,
  find_files,
  is_rows,
)
from sgdx_t5x.signature import package_version

ALL = "all"  # stands for every variant that JSONL ids name
FORMAT = "sgdx-score/1"  # raise the number when a reader of the report must change


@dataclasses.dataclass(frozen=True)
class Settings:
  """What a score depends on besides corpus and predictions.

  Attributes:
    fuzzy: how non-categorical values are compared, see `metrics.fuzzy.match`.
    zero_mean: what SS counts for a frame that every variant gets wrong: "zero" or "exclude".
    across_turn: multiply joint metrics over the frames of a turn (official, for MultiWOZ).
    metrics: official keys to summarise over variants too, besides JGA.
    allow_missing: score what is there if frames are missing or dialogues unknown.
    prompt_format: how the prompts of JSONL predictions were made, to read the text back.
    resamples: of dialogues, for 95% intervals; 0 makes none.
    seed: of the resamples.
  """

  fuzzy: str = "difflib"
  zero_mean: str = "zero"
  across_turn: bool = False
  metrics: tuple[str, ...] = ()
  allow_missing: bool = False
  prompt_format: PromptFormat = dataclasses.field(default_factory=load_format)
  resamples: int = 1000
  seed: int = 0

  def __post_init__(self):
    if self.seed < 0 or not (self.resamples == 0 or 100 <= self.resamples <= 1_000_000):
      raise UsageError(
        f"{self.resamples} resamples, seed {self.seed}",
        expected="0 resamples (no intervals) or 100 to 1,000,000; a seed of 0 or more",
        fix="leave both out: 1,000 resamples, seed 0",
      )
    for name in self.metrics:
      if name not in metrics.OFFICIAL_METRICS:
        raise UsageError(
          f"metric {name!r}",
          expected="an official metric of a frame",
          available=nearest(name, metrics.OFFICIAL_METRICS),
          fix="name one of: " + ", ".join(metrics.OFFICIAL_METRICS),
        )


@dataclasses.dataclass(frozen=True)
class Scored:
  """The scores of a set of predictions.

  Attributes:
    corpus: what they were scored with.
    split: of the corpus.
    settings: how.
    frames: variant -> scores of the frames it has predictions for.
    common: variant -> scores of the frames that all variants have, in one order.
    gold: those frames.
    states: variant -> frame id -> predicted state, in original names.
    nothing: scores of predicting nothing, of the same frames.
    sample: 8 hex digits that tell the frames apart, if they are not all of the corpus.
    missing: variant -> how many frames of the corpus have no prediction.
    warnings: what makes it PARTIAL, a line each.
    notes: what else a reader should know.
  """

  corpus: Corpus
  split: str
  settings: Settings
  frames: dict[str, FrameScores]
  common: dict[str, FrameScores]
  gold: tuple[GoldFrame, ...]
  states: dict[str, dict[str, State]]
  nothing: FrameScores
  sample: str
  missing: dict[str, int]
  warnings: tuple[str, ...]
  notes: tuple[str, ...]

  @property
  def complete(self) -> bool:
    """Whether every frame of the published split has been scored, in every variant given."""
    return not self.warnings

  @property
  def signature(self) -> str:
    """What the scores depend on, in one line to copy beside them (as sacreBLEU does)."""
    prompts = signature_fields(self.settings.prompt_format)
    return "|".join(
      (
        "sgdx",
        f"corpus:{self.corpus.name}:{self.corpus.checksum()}",
        f"split:{self.split}",
        f"variants:{'+'.join(self.frames)}",
        "services:all+seen+unseen",
        f"fuzzy:{self.settings.fuzzy}",
        *(f"{name}:{text}" for name, text in prompts.items()),
        f"jga:official-{'across-turn' if self.settings.across_turn else 'per-frame'}",
        f"zero_mean:{self.settings.zero_mean}",
        f"frames:{len(self.nothing)}",
        *([f"sample:{self.sample}"] if self.sample else []),
        "complete" if self.complete else "PARTIAL",
        f"version:{package_version()}",
      )
    )

  def failures(self) -> dict[str, tuple[Failure, ...]]:
    """Returns frame id -> slots that fail, of the common frames in which one does."""
    schema, found = self.corpus.schema(self.split), {}
    for frame in self.gold:
      states = {version: known[frame.frame_id] for version, known in self.states.items()}
      service, fuzzy = schema[frame.service], self.settings.fuzzy
      if failed := metrics.slot_failures(service, frame.slot_values, states, fuzzy):
        found[frame.frame_id] = failed
    return found


def score_predictions(
  corpus: Corpus | str | pathlib.Path,
  split: str,
  predictions: Mapping[str, PredictionSource],
  **settings: Any,
) -> Scored:
  """Reads and scores predictions.

  Args:
    corpus: an opened one, or what `corpus.open_corpus` opens.
    split: "train", "dev" or "test".
    predictions: variant -> file, folder or files, see `predictions.read_predictions`; the key "all"
      takes every variant that JSONL ids name.
    **settings: attributes of `Settings`; style=PromptStyle(...) is short for
      prompt_format=T5DST(PromptStyle(...)).

  Raises:
    SgdxError: anything that does not fit; missing frames, unless allowed.
  """
  if style := settings.pop("style", None):
    settings["prompt_format"] = load_format(style=style)
  how = Settings(**settings)
  if not predictions:
    raise UsageError(
      "no predictions", expected="variant -> file or folder", fix='give {"original": PATH}'
    )
  corpus = corpus if isinstance(corpus, Corpus) else open_corpus(corpus)
  gold = metrics.gold_frames(corpus.dialogues(split))
  if not gold:
    raise SgdxError(
      f"{corpus.origin}: no user frames in split {split}",
      expected="dialogues with gold states",
      available=", ".join(f"{s}: {len(corpus.dialogue_files(s))} files" for s in corpus.splits),
      fix="name a split that has dialogues",
    )
  schema, seen = corpus.schema(split), corpus.seen_services(split)
  selection = Selection(corpus, split, gold, how.prompt_format, how.allow_missing)
  found: dict[str, FrameScores] = {}
  extra: dict[str, int] = {}
  states: dict[str, dict[str, State]] = {}
  for variant, predicted in _read(predictions, selection):
    states[variant] = {key: frame.slot_values for key, frame in predicted.frames.items()}
    found[variant] = metrics.score_frames(gold, predicted.frames, schema, seen, how.fuzzy)
    extra[variant] = predicted.extra_dialogues
  found = {variant: found[variant] for variant in corpus.variants if variant in found}
  missing = {variant: len(gold) - len(scores) for variant, scores in found.items()}
  if how.across_turn and any(missing.values()):
    found = {v: _whole_turns(scores, gold) for v, scores in found.items()}
  common = _common(found)
  kept = set(next(iter(common.values())).frame_ids.tolist())
  rest = tuple(frame for frame in gold if frame.frame_id in kept)
  states = {variant: states[variant] for variant in found}
  nothing = metrics.score_frames(rest, metrics.predict_nothing(rest), schema, seen, how.fuzzy)
  sample = ""
  if len(rest) < len(gold):
    sample = f"{zlib.crc32(' '.join(frame.frame_id for frame in rest).encode()):08x}"
  warnings = tuple(_warnings(missing, extra, selection))
  notes = tuple(_notes(found, predictions, split, how))
  return Scored(
    corpus, split, how, found, common, rest, states, nothing, sample, missing, warnings, notes
  )


def report(scored: Scored, per_frame: Mapping[str, str] | None = None) -> dict[str, Any]:
  """Returns what `sgdx score --json` writes; docs/score-json.md describes it.

  Args:
    scored: the scores.
    per_frame: name and checksum of the file of scores per frame, if there is one.
  """
  how, common = scored.settings, scored.common
  resamples = None
  if how.resamples:
    first = next(iter(common.values()))
    resamples = metrics.BootstrapSamples.draw(first.dialogue_ids, how.resamples, how.seed)
  jga = metrics.JOINT_GOAL
  nothing = dict.fromkeys(common, scored.nothing)
  return _null_for_nan(
    {
      "format": FORMAT,
      "signature": scored.signature,
      "complete": scored.complete,
      "warnings": list(scored.warnings),
      "notes": list(scored.notes),
      "missing": dict(scored.missing),
      "per_frame": per_frame,
      "variants": {
        variant: metrics.official_scores(scores, how.across_turn)
        for variant, scores in scored.frames.items()
      },
      "sgdx": _rows(common, jga, "jga", how, resamples),
      "metrics": {name: _rows(common, name, name, how, resamples) for name in how.metrics},
      "predict_nothing": _rows(nothing, jga, "jga", how, None, per_service=False),
    }
  )


# --- reading -------------------------------------------------------------------------------


def _read(
  sources: Mapping[str, PredictionSource], selection: Selection
) -> Iterator[tuple[str, Predictions]]:
  """Yields (variant, predictions), one variant after the other, so that one is in memory."""
  done: set[str] = set()
  for name, path in sources.items():
    if name == ALL:
      found = read_all_variants(path, selection)
    else:
      found = {name: read_predictions(path, name, selection)}
    if again := done.intersection(found):
      raise UsageError(
        f"{', '.join(sorted(again))}: predictions in {path} and in another place",
        expected="each variant once",
        fix="leave one of the two out",
      )
    done.update(found)
    while found:
      yield found.popitem()


def _common(found: Mapping[str, FrameScores]) -> dict[str, FrameScores]:
  common = metrics.common_frames(found)
  if not len(next(iter(common.values()))):
    raise SgdxError(
      "no frame has predictions in all variants given",
      expected="predictions for the same frames",
      available=", ".join(f"{v}: {len(score):,} frames" for v, score in found.items()),
      fix="score the variants one by one, or complete their predictions",
    )
  return common


def _whole_turns(scores: FrameScores, gold: Sequence[GoldFrame]) -> FrameScores:
  """Keeps the turns of which all frames have a prediction."""
  known = set(scores.frame_ids.tolist())
  cut = {(f.dialogue_id, f.turn) for f in gold if f.frame_id not in known}
  turns = zip(scores.dialogue_ids.tolist(), scores.turns.tolist(), strict=True)
  return scores.take(np.array([turn not in cut for turn in turns], dtype=bool))


def _warnings(
  missing: Mapping[str, int], extra: Mapping[str, int], selection: Selection
) -> Iterator[str]:
  corpus, split, gold = selection.corpus, selection.split, selection.gold
  num_dialogues = len({frame.dialogue_id for frame in gold})
  if not corpus.is_complete(split, num_dialogues):
    yield (
      f"the corpus has {num_dialogues:,} of the {PUBLISHED_DIALOGUES[split]:,} dialogues of "
      f"{split}: not comparable with published scores"
    )
  for absent, variants in _by_count(missing):
    yield f"{absent:,} of {len(gold):,} frames of {variants} have no prediction"
  for unknown, variants in _by_count(extra):
    yield f"{unknown:,} dialogues predicted for {variants} are not in the corpus"


def _by_count(counts: Mapping[str, int]) -> Iterator[tuple[int, str]]:
  """Yields each count that is not 0, and the variants that have it."""
  for count in dict.fromkeys(counts.values()):
    if count:
      yield count, ", ".join(variant for variant, n in counts.items() if n == count)


def _notes(
  found: Mapping[str, FrameScores],
  sources: Mapping[str, PredictionSource],
  split: str,
  how: Settings,
) -> Iterator[str]:
  by_file: dict[pathlib.Path, list[str]] = {}
  for variant, place in sources.items():
    by_file.setdefault(find_files(place, split)[0].resolve(), []).append(variant)
  for file, variants in by_file.items():
    if len(variants) > 1 and not is_rows(file):
      yield f"the same predictions are given for {', '.join(variants)}: nothing can differ"
  for name in how.metrics:
    if absent := [v for v, scores in found.items() if np.isnan(scores.metrics[name]).all()]:
      yield f"{name}: the predictions for {', '.join(absent)} do not have it"
  for variant, scores in found.items():
    absent = int(np.isnan(scores.metrics["slot_tagging_f1"]).sum())
    if 0 < absent < len(scores):
      yield (
        f"slot tagging of {variant} is over the {len(scores) - absent:,} of {len(scores):,} "
        'frames that have "slots", as officially'
      )


# --- rows ----------------------------------------------------------------------------------


def _rows(
  frames: Mapping[str, FrameScores],
  metric: str,
  name: str,
  how: Settings,
  resamples: "metrics.BootstrapSamples | None",
  per_service: bool = True,
) -> dict[str, Any]:
  """Returns the rows of the paper's Table 2, and one per domain and service.

  Args:
    frames: variant -> scores, all of the same frames in the same order.
    metric: official key to summarise.
    name: see `metrics.summarise`.
    how: see `Settings`.
    resamples: of the frames' dialogues, or None: no intervals.
    per_service: whether to add the rows of domains and services.
  """

  def row(mask: np.ndarray) -> dict[str, Any]:
    units = {v: metrics.unit_values(s, metric, mask, how.across_turn) for v, s in frames.items()}
    values = {variant: found for variant, (found, _) in units.items()}
    positions = next(iter(units.values()))[1]
    result: dict[str, Any] = dict(metrics.summarise(values, how.zero_mean, name))
    known = frames_with_score[mask]
    result["num_frames"] = int(known.sum())
    result["num_dialogues"] = len(np.unique(first.dialogue_ids[mask][known]))
    if resamples is not None:
      dialogues = first.dialogue_ids[positions]
      found = metrics.summary_intervals(values, dialogues, resamples, how.zero_mean, name)
      result["ci95"] = {key: _interval(ends) for key, ends in found.items()}
    return result

  first = next(iter(frames.values()))
  everything = np.ones(len(first), dtype=bool)
  frames_with_score = ~np.isnan(sum(scores.metrics[metric] for scores in frames.values()))
  masks = {"all": everything, "seen": first.seen, "unseen": ~first.seen}
  rows: dict[str, Any] = {key: row(mask) for key, mask in masks.items()}
  if per_service:
    services = sorted(set(first.services.tolist()))
    domains: dict[str, np.ndarray] = {}
    by_service = {service: first.services == service for service in services}
    for service, mask in by_service.items():
      domain = service.split("_")[0]
      domains[domain] = domains.get(domain, False) | mask
    rows["domains"] = {domain: row(mask) for domain, mask in domains.items()}
    rows["services"] = {service: row(mask) for service, mask in by_service.items()}
  return rows


def _interval(ends: tuple[float, float]) -> list[float] | None:
  return None if math.isnan(ends[0]) else list(ends)


def _null_for_nan(value: Any) -> Any:
  """JSON has no nan: what cannot be computed is null."""
  if isinstance(value, dict):
    return {key: _null_for_nan(v) for key, v in value.items()}
  return None if isinstance(value, float) and math.isnan(value) else value
