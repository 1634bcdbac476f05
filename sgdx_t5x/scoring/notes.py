"""Remarks on scores: what makes them PARTIAL, other notes, and what signatures say of files."""

import json
import pathlib
import zlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.metrics import GOAL_METRICS, FrameScores
from sgdx_t5x.prompts.protocol import Provenance
from sgdx_t5x.scoring.predictions.files import PredictionSource, Selection, files_of, is_rows
from sgdx_t5x.scoring.settings import Settings


def warning_lines(
  missing: Mapping[str, int], extra: Mapping[str, int], selection: Selection
) -> Iterator[str]:
  """Yields what makes scores PARTIAL.

  Args:
    missing: variant -> number of frames without a prediction.
    extra: variant -> number of dialogues that are not in the corpus.
    selection: what is scored.
  """
  corpus, split, gold = selection.corpus, selection.split, selection.gold
  num_dialogues = len({frame.dialogue_id for frame in gold})
  if not corpus.is_complete(split, num_dialogues):
    yield (
      f"the corpus has {corpus.part(split, num_dialogues)} of {split}; "
      "the scores are not comparable with published ones"
    )
  for absent, variants in _by_count(missing):
    yield f"{absent:,} of {len(gold):,} frames of {variants} have no prediction"
  for unknown, variants in _by_count(extra):
    yield f"{unknown:,} dialogues predicted for {variants} are not in the corpus"


def _by_count(counts: Mapping[str, int]) -> Iterator[tuple[int, str]]:
  """Yields each nonzero count with the variants that have it."""
  # Usually all variants lack the same frames: one line for those with equal counts.
  for count in dict.fromkeys(counts.values()):
    if count:
      yield count, ", ".join(variant for variant, n in counts.items() if n == count)


def note_lines(
  by_variant: Mapping[str, FrameScores],
  sources: Mapping[str, PredictionSource],
  split: str,
  settings: Settings,
) -> Iterator[str]:
  """Yields what a reader should know about the scored predictions.

  Args:
    by_variant: variant -> scores of its frames.
    sources: variant -> where its predictions are.
    split: the split that was scored.
    settings: the scorer's settings.
  """
  # Somebody who copies a command easily passes one variant's file for another, too. Only rows name
  # their variant, so that one file of them can be right for several.
  by_file: dict[pathlib.Path, list[str]] = {}
  for variant, place in sources.items():
    file = files_of(place, split)[0]
    if isinstance(file, pathlib.Path):
      by_file.setdefault(file.resolve(), []).append(variant)
  for file, variants in by_file.items():
    if len(variants) > 1 and not is_rows(file):
      yield f"the same predictions are used for {', '.join(variants)}; results cannot differ"
  for name in settings.metrics:
    if absent := [v for v, scores in by_variant.items() if np.isnan(scores.metrics[name]).all()]:
      if name in GOAL_METRICS:  # of states, which every tracker predicts
        yield f"{name}: no scored frame has a slot of this kind"
      else:
        yield f"{name}: the predictions for {', '.join(absent)} do not include it"
  for variant, scores in by_variant.items():
    absent = int(np.isnan(scores.metrics["slot_tagging_f1"]).sum())
    if 0 < absent < len(scores):  # not if slot tagging is not predicted at all
      yield (
        f"slot tagging of {variant} covers the {len(scores) - absent:,} of {len(scores):,} "
        'frames that have "slots", as in the official scorer'
      )


def ignored_lines(ignored: Mapping[str, tuple[Sequence[int], int]]) -> Iterator[str]:
  """Yields notes on answers that name slots or intents not in their prompts.

  Args: ignored, variant -> (ignored parts of each answer that has any, number of answers).
  """
  for variant, (counts, num_answers) in ignored.items():
    if counts:
      yield (
        f"{len(counts):,} of {num_answers:,} answers for {variant} contain slots or intents that "
        f"were not in the prompt ({sum(counts):,} in total); these parts are ignored"
      )


def with_origins(
  files: Provenance, schemas: Mapping[str, Schema], oracles: Sequence[str]
) -> Provenance:
  """Adds what neither the corpus' checksum nor a prompt format says.

  Args:
    files: what the prompt format records.
    schemas: variant of the user's own -> its schema.
    oracles: variants that were predicted with the gold states of earlier turns.
  """
  fields, notes = dict(files.fields), files.notes
  if schemas:
    checksums = [f"{name}={schema_checksum(schema)}" for name, schema in sorted(schemas.items())]
    fields["schemas"] = "+".join(checksums)
  if oracles:
    fields["history"] = "gold"
    names = ", ".join(oracles)
    notes += (f"{names}: oracle scores, tracked with the gold states of earlier turns",)
  return Provenance(fields, notes)


def schema_checksum(schema: Schema) -> str:
  """Returns 8 hex digits, by which a signature names a variant of the user's own."""
  return f"{zlib.crc32(json.dumps(schema.to_json(), sort_keys=True).encode()):08x}"
