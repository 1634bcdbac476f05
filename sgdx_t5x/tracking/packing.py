"""Packs a checkpoint of SpanDST for `tracking/packed.py`; JAX and T5X are needed for this."""

import dataclasses
import os
import pathlib
from collections.abc import Callable, Sequence

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


def pack(
  folder: str | os.PathLike,
  out: str | os.PathLike,
  bits: int,
  corpus: Corpus | None = None,
  update: Callable[..., None] = lambda *_: None,
  allow_modules: Sequence[str] = (),
) -> float | None:
  """Packs a checkpoint into a new folder.

  Args:
    folder: checkpoint_N or its MODEL_DIR.
    out: the new folder.
    bits: 8 or 16, see `packed.pack`.
    corpus: trains an `ActReader`, too; None packs the tracker alone.
    update: of `cli.progress`.
    allow_modules: that its config.gin may name.

  Returns:
    What `act_training.train_acts` returns; None without `corpus`.

  Raises:
    SgdxError: it is not a SpanDST's, its embeddings are not MiniLM's, or `out` is in use.
  """
  out = pathlib.Path(out)
  check_folder(out, replace=False)
  loaded = LoadedModel(one_of(find_checkpoints(folder, allow_modules)))
  model = loaded.model
  if not isinstance(model, SpanModel):
    raise SgdxError(
      f"{loaded.checkpoint.path}: a checkpoint of {type(model).__name__}",
      expected="a SpanDST, trained with gin/spandst.gin",
      fix="pass its checkpoint",
    )
  arrays = {}
  for path, leaf in jax.tree_util.tree_leaves_with_path(loaded.params):
    arrays[jax.tree_util.keystr(path, simple=True, separator="/")] = np.asarray(leaf)
  # The packed files leave the embeddings out: whoever opens them takes MiniLM's own.
  for name, table in minilm.tables(minilm.folder()).items():
    if name not in arrays or not np.array_equal(arrays[name], table):
      raise SgdxError(
        f"{loaded.checkpoint.path}: {name} differs from {minilm.NAME}'s",
        expected=f"a tracker that was trained on {minilm.NAME}, with its embeddings frozen",
        fix="train with gin/spandst.gin from its weights, as docs/trackers.md describes",
      )
  module = model.module
  config = packed.PackedConfig(
    num_heads=module.config.num_heads,
    epsilon=module.config.epsilon,
    lexical=module.lexical,
    pooled=module.pooled,
    longest_span=model.longest_span,
    style=dataclasses.asdict(loaded.task.style_or_format),
    lengths=dict(loaded.lengths),
    trained_on=loaded.task.name,
    step=int(loaded.checkpoint.path.rpartition("_")[2]),  # of checkpoint_N
    bits=bits,
  )
  with atomic_folder(out) as temporary:
    packed.write(temporary, config, arrays)
    return train_acts(temporary, corpus, update) if corpus else None
