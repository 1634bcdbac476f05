"""Packs a checkpoint of SpanDST for `tracking/packed.py`; JAX and T5X are needed for this."""

import dataclasses
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.writing import atomic_folder, check_folder
from sgdx_t5x.spandst import minilm, packed
from sgdx_t5x.spandst.span_model import SpanModel
from sgdx_t5x.tracking.act_training import train_acts
from sgdx_t5x.tracking.checkpoints import find_checkpoints, one_of
from sgdx_t5x.tracking.model import LoadedModel

Arrays = dict[str, np.ndarray]


def pack(
  folders: Sequence[str | os.PathLike],
  out: str | os.PathLike,
  bits: int,
  corpus: Corpus | None = None,
  update: Callable[..., None] = lambda *_: None,
  allow_modules: Sequence[str] = (),
) -> float | None:
  """Packs a checkpoint, or the mean of several, into a new folder.

  The mean of a tracker and of one that was trained on from it can be more robust than both
  (Wortsman et al., CVPR 2022, https://arxiv.org/abs/2109.01903).

  Args:
    folders: of each checkpoint, checkpoint_N or its MODEL_DIR; at least one. The settings are
      those of the last.
    out: the new folder.
    bits: 8 or 16, see `packed.pack`.
    corpus: trains an `ActReader`, too; None packs the tracker alone.
    update: of `cli.progress`.
    allow_modules: that a config.gin may name.

  Returns:
    What `act_training.train_acts` returns; None without `corpus`.

  Raises:
    SgdxError: one is not a SpanDST's, its embeddings are not MiniLM's, it is not like the last, or
      `out` is in use.
  """
  out = pathlib.Path(out)
  check_folder(out, replace=False)
  trackers = [LoadedModel(one_of(find_checkpoints(folder, allow_modules))) for folder in folders]
  arrays = [_arrays(tracker) for tracker in trackers]
  _check_embeddings(trackers, arrays)
  _check_alike(trackers, arrays)
  mean = {name: np.mean([own[name] for own in arrays], axis=0) for name in arrays[-1]}
  with atomic_folder(out) as temporary:
    packed.write(temporary, _config(trackers[-1], bits), mean)
    return train_acts(temporary, corpus, update) if corpus else None


def _arrays(tracker: LoadedModel) -> Arrays:
  """Returns name -> array. Raises SgdxError unless it is a SpanDST."""
  if not isinstance(tracker.model, SpanModel):
    raise SgdxError(
      f"{tracker.checkpoint.path}: a checkpoint of {type(tracker.model).__name__}",
      expected="a SpanDST, trained with gin/spandst.gin",
      fix="pass its checkpoint",
    )
  arrays = {}
  for path, leaf in jax.tree_util.tree_leaves_with_path(tracker.params):
    arrays[jax.tree_util.keystr(path, simple=True, separator="/")] = np.asarray(leaf)
  return arrays


def _check_embeddings(trackers: Sequence[LoadedModel], arrays: Sequence[Arrays]) -> None:
  """Raises SgdxError unless all trackers have MiniLM's embeddings."""
  # The packed files leave the embeddings out: whoever opens them takes MiniLM's own.
  tables = minilm.tables(minilm.folder())
  for tracker, own in zip(trackers, arrays, strict=True):
    for name, table in tables.items():
      if name not in own or not np.array_equal(own[name], table):
        raise SgdxError(
          f"{tracker.checkpoint.path}: {name} differs from {minilm.NAME}'s",
          expected=f"a tracker that was trained on {minilm.NAME}, with its embeddings frozen",
          fix="train with gin/spandst.gin from its weights, as docs/trackers.md describes",
        )


def _check_alike(trackers: Sequence[LoadedModel], arrays: Sequence[Arrays]) -> None:
  """Raises SgdxError if a tracker is not like the last, so that a mean would mean nothing."""
  last = trackers[-1].checkpoint.path
  shapes = list(map(_shape, trackers, arrays))
  for tracker, shape in zip(trackers, shapes, strict=True):
    if shape != shapes[-1]:
      raise SgdxError(
        f"{tracker.checkpoint.path}: not the tracker of {last}",
        expected="checkpoints with the same network, prompt style and lengths",
        fix="pass checkpoints of one run, or of runs that went on from it",
      )


def _shape(tracker: LoadedModel, arrays: Arrays) -> tuple[packed.PackedConfig, dict[str, Any]]:
  """Returns what trackers have in common whose arrays may be averaged."""
  config = dataclasses.replace(_config(tracker, bits=16), trained_on="", step=0)
  return config, {name: array.shape for name, array in arrays.items()}


def _config(tracker: LoadedModel, bits: int) -> packed.PackedConfig:
  module = tracker.model.module
  return packed.PackedConfig(
    num_heads=module.config.num_heads,
    epsilon=module.config.epsilon,
    lexical=module.lexical,
    pooled=module.pooled,
    longest_span=tracker.model.longest_span,
    style=dataclasses.asdict(tracker.task.style_or_format),
    lengths=dict(tracker.lengths),
    trained_on=tracker.task.name,
    step=int(tracker.checkpoint.path.rpartition("_")[2]),  # of checkpoint_N
    bits=bits,
  )
