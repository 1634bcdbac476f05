"""Schema embeddings of the SGD paper's baseline: a vector for each element of a schema.

The vector of an element is a pretrained encoder's last hidden state of [CLS] for two texts,
[CLS] first [SEP] second [SEP]. It is frozen, and computed once for all texts that a task can use,
so that a model reads 80 tokens per frame and no schema. Examples refer to rows of the table,
numbered from 1.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files.writing import atomic_write

if TYPE_CHECKING:
  from sgdx_t5x.spandst.encoder import BertConfig
  from sgdx_t5x.spandst.vocabulary import WordPieceVocabulary

Pair = tuple[str, str]
_BROKEN = (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile)
_MAKE = "sgdx schema-embeddings --encoder FOLDER --corpus CORPUS --out FILE.npz"


@dataclasses.dataclass(frozen=True, eq=False)
class SchemaTable:
  """Texts of schema elements, and their vectors.

  Attributes:
    texts: two per element, pairs are unique.
    vectors: float32 `[len(texts), width]`; None stands for those of a random encoder.
    origin: name of the table in errors.
    fix: what to do about elements that it lacks.
  """

  texts: tuple[Pair, ...]
  vectors: np.ndarray | None = None
  origin: str = "the table of schema embeddings"
  fix: str = f"make the table for this corpus and these variants: {_MAKE} --variant NAME=DIR ..."

  @functools.cached_property
  def _rows(self) -> dict[Pair, int]:
    return {pair: row for row, pair in enumerate(self.texts, start=1)}

  def row(self, pair: Pair) -> int:
    """Returns the row of an element, from 1. Raises SgdxError if the table lacks it."""
    row = self._rows.get(pair)
    if row is None:
      close = nearest(" | ".join(pair), [" | ".join(p) for p in self.texts if p[0] == pair[0]])
      raise SgdxError(
        f"{self.origin}: no schema embedding of {' | '.join(pair)!r}",
        expected="one for each intent, slot and value in every variant requested; the table has "
        f"{len(self.texts):,}",
        available=close,
        fix=self.fix,
      )
    return row


def write_table(table: SchemaTable, path: pathlib.Path) -> None:
  """Writes a table with vectors as NumPy's npz."""
  firsts, seconds = (np.array(part, np.str_) for part in zip(*table.texts, strict=True))
  with atomic_write(path, "--out") as file:
    vectors = np.asarray(table.vectors, np.float32)
    np.savez(file.buffer, first=firsts, second=seconds, vectors=vectors)


def read_table(path: str | os.PathLike) -> SchemaTable:
  """Reads a table. Raises SgdxError if the file is not one."""
  try:
    with np.load(path, allow_pickle=False) as arrays:
      texts = tuple(zip(arrays["first"].tolist(), arrays["second"].tolist(), strict=True))
      vectors = arrays["vectors"]
    if vectors.ndim != 2 or vectors.dtype != np.float32 or len(vectors) != len(texts):
      raise ValueError(f"{len(texts)} texts, vectors of {vectors.dtype} {list(vectors.shape)}")
  # A TypeError: the file is a single array, NumPy's npy. A MemoryError: its shape is a lie.
  except (*_BROKEN, MemoryError) as e:
    raise SgdxError(
      f"{path}: {e}", expected="a table of schema embeddings", fix=f"make it: {_MAKE}"
    ) from None
  return SchemaTable(texts, vectors, str(path))


def embed(
  texts: Sequence[Pair],
  vocabulary: WordPieceVocabulary,
  config: BertConfig,
  params: Mapping[str, Any],
  on_batch: Callable[[int], None] = lambda texts_done: None,
) -> np.ndarray:
  """Computes the vectors of schema elements.

  Args:
    texts: two per element.
    vocabulary: of the encoder.
    config: of the encoder.
    params: its parameters.
    on_batch: called with the number done.

  Returns:
    Float32 `[len(texts), width]`.

  Raises:
    SgdxError: a pair of texts has more tokens than the encoder has positions.
  """
  from sgdx_t5x.spandst import states

  rows = [vocabulary.encode_texts(*pair) for pair in texts]
  for pair, row in zip(texts, rows, strict=True):
    if len(row) > config.max_positions:
      raise SgdxError(
        f"texts of {len(row):,} tokens: {' | '.join(pair)[:60]!r}...",
        expected=f"at most {config.max_positions} tokens, the encoder's number of positions",
        fix="shorten the description",
      )
  # Token type 1 after the first [SEP], as in BERT's sentence pairs.
  ends = [int(np.argmax(row == vocabulary.eos_id)) + 1 for row in rows]
  types = [
    (np.arange(len(row)) >= end).astype(np.int32) for row, end in zip(rows, ends, strict=True)
  ]
  vectors = states.encode(config, params, rows, types, tokens=1, on_batch=on_batch)
  return np.concatenate(vectors) if vectors else np.zeros((0, config.emb_dim), np.float32)


def embedded(
  table: SchemaTable, vocabulary: WordPieceVocabulary, config: BertConfig
) -> SchemaTable:
  """Returns a table with its vectors, for `baseline_model.BaselineTracker`.

  Args:
    table: of all elements in use.
    vocabulary: of the encoder.
    config: of the encoder.

  Raises:
    SgdxError: the vectors' width differs from the encoder's.
  """
  if table.vectors is None:
    return dataclasses.replace(table, vectors=random_vectors(table.texts, vocabulary, config))
  if table.vectors.shape[1] != config.emb_dim:
    raise SgdxError(
      f"{table.origin}: vectors of width {table.vectors.shape[1]}",
      expected=f"width {config.emb_dim} (encoder.BertConfig.emb_dim): schema embeddings come from "
      "the pretrained encoder that training starts from",
      fix=f"make them with that encoder: {_MAKE}",
    )
  return table


def random_vectors(texts: Sequence[Pair], vocabulary: Any, config: BertConfig) -> np.ndarray:
  """Returns vectors from an encoder with random weights, deterministic for given sizes.

  Its [CLS] hardly depends on the text, so each dimension is scaled to mean 0 and variance 1.

  Args:
    texts: two per element.
    vocabulary: of the encoder.
    config: of the encoder.

  Returns:
    Float32 `[len(texts), width]`.
  """
  config = dataclasses.replace(config, dtype="float32", dropout_rate=0.0)
  vectors = embed(texts, vocabulary, config, _random_params(config)).astype(np.float64)
  vectors = (vectors - vectors.mean(axis=0)) / np.maximum(vectors.std(axis=0), 1e-9)
  return vectors.astype(np.float32)


def _random_params(config: BertConfig) -> Any:
  """Returns random encoder parameters, from a generator that no JAX setting affects."""
  import jax

  from sgdx_t5x.spandst.encoder import Bert

  tokens = np.zeros((1, 2), np.int32)
  shapes = jax.eval_shape(Bert(config).init, jax.random.key(0), tokens)["params"]
  numbers = np.random.RandomState(0)

  def array(path: Any, shape: Any) -> np.ndarray:
    name = path[-1].key
    if name in ("scale", "bias"):
      return np.full(shape.shape, float(name == "scale"), np.float32)
    return (0.02 * numbers.standard_normal(shape.shape)).astype(np.float32)

  return jax.tree_util.tree_map_with_path(array, shapes)
