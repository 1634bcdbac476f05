"""Reads predictions from disk as frames in original names, joined to gold frames.

Two kinds of files are read: DSTC8 dialogues, as the official scorer reads them, with the names
of the variant or of the original; and JSONL, with one row per example of a prompt format.
A format may read rows of its own (`read_rows`).
Missing, unknown or repeated predictions raise an error; they are never skipped silently.
"""

import pathlib

from sgdx_t5x.corpus.variants import in_order
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.scoring.predictions.dialogues import dialogue_frames
from sgdx_t5x.scoring.predictions.files import (
  Predictions,
  PredictionSource,
  Selection,
  check_missing,
  files_of,
  is_rows,
)
from sgdx_t5x.scoring.predictions.rows import collect_rows, row_frames


def read_predictions(path: PredictionSource, variant: str, selection: Selection) -> Predictions:
  """Reads the predictions for one variant.

  Args:
    path: a file, or a folder of `dialogues*.json` or `*.jsonl`. JSONL may hold other
      variants too, which are ignored.
    variant: the schema variant that the tracker was given, "original" or "v1" to "v5".
    selection: what to join them to.

  Raises:
    SgdxError: see the module; missing predictions, unless allowed.
  """
  selection.schemas.get(selection.split, variant)  # raises for an unknown variant
  files = files_of(path, selection.split)
  if not is_rows(files[0]):
    return check_missing(dialogue_frames(files, variant, selection), path, variant, selection)
  answers, extra = collect_rows(files, selection, variant)
  return row_frames(answers, extra, path, variant, selection)


def read_all_variants(source: PredictionSource, selection: Selection) -> dict[str, Predictions]:
  """Reads JSONL predictions for every variant named in their ids.

  Args: see `read_predictions`; `source` may also be a list of files. DSTC8 dialogues do not name a
  variant and raise an error.
  """
  files = files_of(source, selection.split)
  path: PredictionSource | pathlib.Path = source
  if isinstance(files[0], pathlib.Path) and not isinstance(source, str | pathlib.Path):
    path = files[0].parent  # of a list of files
  if not is_rows(files[0]):
    raise SgdxError(
      f"{path}: DSTC8 dialogues do not state which variant they were predicted for",
      expected="JSONL, in which the ids contain the variant",
      available=", ".join(f.name for f in files[:3]),
      fix="name the variants: --predictions v1=DIR v2=DIR ... of `sgdx score`; for `sgdx report`, "
      "folders named original, v1 ... in one folder",
    )
  answers, extra = collect_rows(files, selection)
  variants = in_order(sorted({**answers, **extra}))  # whatever the order of rows
  if not variants:
    fix = "rerun inference, or answer the prompts again"
    if selection.allow_missing:
      fix += "; without --allow-missing, requests that failed are named"
    raise SgdxError(
      f"{path}: no rows with an answer",
      expected="one row per example of t5x.infer or t5x.eval, or per prompt of `sgdx prompts`",
      available=", ".join(f.name for f in files[:8]),
      fix=fix,
    )
  return {v: row_frames(answers, extra, path, v, selection) for v in variants}
