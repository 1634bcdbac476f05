"""Prediction files: where they are, their format, and what their frames are joined to."""

import dataclasses
import functools
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.arguments import check_kind
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.corpus.variants import untagged
from sgdx_t5x.errors import SgdxError, UsageError, nearest
from sgdx_t5x.files.reading import not_found, opened
from sgdx_t5x.metrics.frames import GoldFrame, PredictedFrame
from sgdx_t5x.prompts import load_format
from sgdx_t5x.prompts.protocol import PromptFormat, ServicePair, service_pairs
from sgdx_t5x.variants.variant_schemas import VariantSchemas


@dataclasses.dataclass(frozen=True)
class InMemory:
  """Predictions that a program holds: the rows of a JSONL file, or DSTC8 dialogues.

  Attributes:
    variant: what they are for, as the caller named it.
    items: rows or dialogues, as JSON would decode them; at least one.
  """

  variant: str
  items: Sequence[Mapping[str, Any]]

  def __str__(self) -> str:
    return self.name

  @property
  def name(self) -> str:
    """Where they are, for errors."""
    return f"predictions[{self.variant!r}]"


# A file named after a variant: v1.json, v1.jsonl.gz, or a part v1.jsonl-00000-of-00002.
_OF_VARIANT = re.compile(r"(.+)\.json(l(-\d+-of-\d+)?)?(\.gz|\.xz)?")
_PART = re.compile(r"-\d+-of-")
_ROWS = re.compile(r"\.jsonl(-\d+-of-\d+)?(\.gz|\.xz)?\Z")
# Where predictions are: a file, a folder to search, a list of files, or rows in memory.
Paths = str | os.PathLike | Sequence[str | os.PathLike]
PredictionSource = Paths | InMemory
PredictionFile = pathlib.Path | InMemory
SAME_CORPUS = "score against the corpus and split that were predicted"
FIX_FOR_EXTRA = (
  f"{SAME_CORPUS}; --allow-missing skips dialogues that are not in the corpus (PARTIAL)"
)


@dataclasses.dataclass(frozen=True)
class Selection:
  """What predictions are joined to.

  Attributes:
    corpus: the corpus that was predicted.
    split: the split that was predicted.
    gold: its frames.
    prompt_format: format of the prompts behind JSONL predictions, to parse the output text.
    allow_missing: leave out missing frames, and dialogues that are not in the corpus, instead
      of raising an error.
    on_read: called with the number of further bytes read.
    folders: variant -> folder of its schemas, for variants of one's own.
  """

  corpus: Corpus
  split: str
  gold: Sequence[GoldFrame]
  prompt_format: PromptFormat = dataclasses.field(default_factory=load_format)
  allow_missing: bool = False
  on_read: Callable[[int], None] = lambda size: None
  folders: Mapping[str, str | os.PathLike] = dataclasses.field(default_factory=dict)

  @property
  def schema(self) -> Schema:
    """The original schema of the split."""
    return self.corpus.schema(self.split)

  def services(self, variant: str) -> Mapping[str, ServicePair]:
    """Returns original name -> service in the original and in the variant's schema."""
    return service_pairs(self.schema, self.schemas.get(self.split, variant))

  @functools.cached_property
  def dialogue_ids(self) -> frozenset[str]:
    """Those of all dialogues, also without user frames; read when an id is in no gold frame."""
    return frozenset(dialogue.dialogue_id for dialogue in self.corpus.dialogues(self.split))

  @functools.cached_property
  def schemas(self) -> VariantSchemas:
    """The schemas of all variants that tasks and `sgdx prompts` can use."""
    return VariantSchemas(self.corpus, self.folders)


@dataclasses.dataclass(frozen=True)
class Predictions:
  """The predictions for one variant.

  Attributes:
    frames: frame id -> prediction, in original names. With `allow_missing`, frames that lack one
      or more slots are left out.
    extra_dialogues: number of dialogues left out because they are not in the corpus.
    gold_history: whether the tracker read gold states of earlier turns, according to any file.
  """

  frames: dict[str, PredictedFrame]
  extra_dialogues: int = 0
  gold_history: bool = False


def sources_of(predictions: Mapping[str, Any]) -> dict[str, PredictionSource]:
  """Returns where predictions are by variant alone, "v1" for "ned+v1", and wraps those in memory.

  Raises:
    UsageError: two for one variant, or one that is neither paths nor rows.
  """
  sources: dict[str, PredictionSource] = {}
  for name, items in predictions.items():
    check_kind(name, "a variant of the predictions", str)
    variant, source = untagged(name)[1], _source(items, name)
    if variant in sources:
      raise UsageError(
        f"two predictions of variant {variant}: {sources[variant]} and {source}",
        expected="one source per variant, from one corpus",
        fix="score the predictions for each perturbed corpus in a separate run",
      )
    sources[variant] = source
  return sources


def _source(source: Any, variant: str) -> PredictionSource:
  items = source if isinstance(source, list | tuple) else [source]
  if items and all(isinstance(item, str | os.PathLike) for item in items):
    return source
  # Paths may come one by one or in a list, rows only in a list.
  if items is source and items and all(isinstance(item, Mapping) for item in items):
    return InMemory(variant, items)
  kinds = sorted({type(item).__name__ for item in items})
  kind = f"a list of {' and '.join(kinds)}" if items else "an empty list"
  raise UsageError(
    f"the predictions for {variant!r} are "
    + (kind if items is source else f"of type {type(source).__name__}"),
    expected="the path of a file or folder, a list of files, or a list of rows",
    fix='pass rows such as {"id": ..., "prediction": ...}, one per prompt of `sgdx prompts`, or '
    "dialogues with predicted states as DSTC8 has them",
  )


def files_of(source: PredictionSource, split: str) -> Sequence[PredictionFile]:
  """Returns what predictions are read from. Raises SgdxError: see `find_files`."""
  return [source] if isinstance(source, InMemory) else find_files(source, split)


def have_rows(sources: Iterable[PredictionSource], split: str) -> bool:
  """Whether any predictions answer prompts; dialogues have none, nor a prompt format."""
  return any(is_rows(files_of(source, split)[0]) for source in sources)


def find_files(path: Paths, split: str) -> list[pathlib.Path]:
  """Returns the prediction files at a path, sorted, of one format.

  `dialogues*.json` and `*.jsonl` are searched for in the folder itself, then in its
  `inference_eval/` (made by T5X), then in its subfolder named after the split.

  Raises:
    SgdxError: no such files, none at all, or both formats.
  """
  if not isinstance(path, str | os.PathLike):
    files = [pathlib.Path(file) for file in path]
    for file in files:
      if not os.path.isfile(file):
        raise not_found(file, "predictions")
    return files
  path = pathlib.Path(path)
  if os.path.isfile(path):
    return [path]
  if not os.path.isdir(path):
    raise not_found(path, "predictions", "file or folder")
  for folder, files in _files_by_folder(path, split):
    if len(set(map(is_rows, files))) > 1:
      raise SgdxError(
        f"{folder}: both DSTC8 dialogues and JSONL",
        expected="predictions in one format",
        available=", ".join(p.name for p in files[:8]),
        fix="pass the file instead, or move the files of one format elsewhere",
      )
    if files:
      return files
  raise SgdxError(
    f"{path}: no predictions in this folder",
    expected="dialogues*.json (DSTC8 format) or *.jsonl (T5X, SeqIO)",
    available=nearest("dialogues_001.json", sorted(p.name for p in path.iterdir())),
    fix="pass the folder that contains them: OUT of t5x.infer, inference_eval of t5x.eval",
  )


def _files_by_folder(
  path: pathlib.Path, split: str
) -> Iterator[tuple[pathlib.Path, list[pathlib.Path]]]:
  """Yields the folders that are searched, in this order, and the prediction files in each."""
  for folder in (path, path / "inference_eval", path / split):
    files = [p for p in folder.glob("*") if p.is_file() and _holds_predictions(p.name)]
    yield folder, sorted(files)


def find_variants(folder: pathlib.Path, split: str, schemas: VariantSchemas) -> dict[str, Paths]:
  """Returns variant -> its folder, file, or parts of a file, in a folder that has them by name.

  Raises:
    SgdxError: two for one variant; or, beside these, predictions whose name is no variant's.
  """
  found: dict[str, list[pathlib.Path]] = {}
  unknown: dict[str, pathlib.Path] = {}
  for path in sorted(folder.iterdir()) if folder.is_dir() else ():
    of_variant = _OF_VARIANT.fullmatch(path.name)
    if not (of_variant or path.is_dir()):
      continue
    variant = of_variant[1] if of_variant and path.is_file() else path.name
    if untagged(variant)[0]:
      continue  # of a perturbed set, which is scored with its own corpus
    if schemas.has(split, variant):
      found.setdefault(variant, []).append(path)
    elif _is_predictions(path, split):
      unknown.setdefault(variant, path)
  for variant, paths in found.items():
    if len({_PART.sub("-of-", path.name) for path in paths}) > 1:
      raise SgdxError(
        f"{folder}: two predictions of variant {variant}",
        expected="one folder, or one file, for each variant",
        available=", ".join(path.name for path in paths),
        fix="move all but one elsewhere",
      )
  if found and unknown:
    name, path = next(iter(unknown.items()))
    raise SgdxError(
      f"{path}: predictions, but {name!r} is no variant",
      expected="folders and files that are named after variants",
      available=nearest(name, schemas.names(split)),
      fix=f"rename or move it, or pass --schemas {name}=DIR for a variant of your own",
    )
  return {variant: paths if paths[1:] else paths[0] for variant, paths in found.items()}


def _is_predictions(path: pathlib.Path, split: str) -> bool:
  """Whether a folder, or a file by its start, holds predictions."""
  if path.is_dir():
    return any(files for _, files in _files_by_folder(path, split))
  with opened(path, "predictions") as file:
    start = file.read(100).lstrip()
  if not is_rows(path):
    return start.startswith(b"[")
  is_ours = b'"format": "sgdx-' in start  # scores per frame are JSON Lines, too
  return _holds_predictions(path.name) and start.startswith(b"{") and not is_ours


def is_rows(file: PredictionFile) -> bool:
  """Whether a file is JSONL; T5X names shards `x.jsonl-00000-of-00001`."""
  if isinstance(file, InMemory):
    return "turns" not in file.items[0]  # which only dialogues have
  return ".jsonl" in file.name


def size_of(file: PredictionFile) -> int:
  """Returns the bytes of a file, 0 for what is in memory already."""
  return 0 if isinstance(file, InMemory) else file.stat().st_size


def _holds_predictions(name: str) -> bool:
  if name.startswith("."):  # of an editor or of macOS
    return False
  if _ROWS.search(name):
    # SeqIO's metric logs, and what `sgdx checkdst perturb` says it changed.
    return not name.endswith("-metrics.jsonl") and name != "changes.jsonl"
  if name == "dialogues_and_metrics.json":
    return False  # the official scorer writes its scores next to the predictions
  return name.startswith("dialogues") and name.endswith((".json", ".json.gz", ".json.xz"))


def similar_names(name: str, names: Mapping[str, Any]) -> list[str]:
  """Returns names with the same prefix; searching tens of thousands would take minutes."""
  return [n for n in names if n[:6] == name[:6]] or list(names)[:3]


def check_missing(
  predictions: Predictions,
  path: PredictionSource,
  variant: str,
  selection: Selection,
  slot: str = "",
) -> Predictions:
  """Returns the predictions; raises SgdxError if frames are missing, unless that is allowed."""
  frames = predictions.frames
  missing = [frame.frame_id for frame in selection.gold if frame.frame_id not in frames]
  if missing and (not selection.allow_missing or not frames):
    raise SgdxError(
      f"{path}: {len(missing):,} of {len(selection.gold):,} frames of {variant} are missing; "
      f"the first is {missing[0]}" + (f" (slot {slot})" if slot else ""),
      expected=f"a prediction for every user frame of {selection.split}",
      available=f"{len(frames):,} frames",
      fix="complete the predictions, or use --allow-missing to score the rest, marked PARTIAL"
      if frames
      else SAME_CORPUS,
    )
  return predictions
