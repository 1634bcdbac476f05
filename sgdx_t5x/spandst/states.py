"""Hidden states of texts, from an encoder in Hugging Face's layout."""

from __future__ import annotations

import collections
import functools
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from flax import traverse_util

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.spandst.encoder import Bert, BertConfig
from sgdx_t5x.spandst.vocabulary import WordPieceVocabulary
from sgdx_t5x.weights import bert_layout, read_huggingface

_GRAIN = 32  # lengths are padded to multiples of it: each length is compiled once
_TOKENS = 8192  # per batch


def hidden_states(
  folder: str | os.PathLike, texts: Sequence[str], lower_case: bool | None = None
) -> list[np.ndarray]:
  """Returns the last hidden states of texts, as `transformers`' BertModel gives them.

  Args:
    folder: contains config.json, safetensors and vocab.txt of a BERT.
    texts: each is encoded as [CLS] text [SEP], which must fit the encoder's positions.
    lower_case: whether the vocabulary is uncased; None reads it from the tokenizer's config.

  Returns:
    Per text float32 `[tokens, width]`, [CLS] and [SEP] included.

  Raises:
    SgdxError: the folder has no such model, or a text is too long.
  """
  if isinstance(texts, str):
    raise SgdxError(
      "hidden_states of one string", expected="a list of strings", fix="pass [text], not text"
    )
  vocabulary = WordPieceVocabulary(folder, lower_case)
  config, params = load(folder)
  vocabulary.check_fits(config.vocab_size)
  rows = [vocabulary.encode_texts(text) for text in texts]
  for text, row in zip(texts, rows, strict=True):
    if len(row) > config.max_positions:
      raise SgdxError(
        f"a text of {len(row):,} tokens: {text[:60]!r}...",
        expected=f"at most {config.max_positions} tokens, the encoder's number of positions",
        fix="shorten it",
      )
  return encode(config, params, rows)


def encode(
  config: BertConfig,
  params: Mapping[str, Any],
  rows: Sequence[np.ndarray],
  types: Sequence[np.ndarray] | None = None,
  tokens: int | None = None,
  on_batch: Callable[[int], None] = lambda num_done: None,
) -> list[np.ndarray]:
  """Returns the last hidden states of rows of tokens.

  Args:
    config: of the encoder.
    params: its parameters.
    rows: token ids, int32 `[tokens]` each, none longer than `config.max_positions`.
    types: token types of the rows; None means 0.
    tokens: keep only the states of this many first tokens; None keeps all.
    on_batch: called with the number of rows done.

  Returns:
    Per row float32 `[tokens, width]`.
  """
  run = jax.jit(functools.partial(Bert(config).apply, {"params": params}))
  answers: list[np.ndarray] = [np.empty(0)] * len(rows)  # filled in the order of batches
  num_done = 0
  for numbers, length in _batches([len(row) for row in rows], config.max_positions):
    padded, kinds = np.zeros((2, len(numbers), length), np.int32)
    for i, number in enumerate(numbers):
      padded[i, : len(rows[number])] = rows[number]
      if types is not None:
        kinds[i, : len(rows[number])] = types[number]
    hidden = np.asarray(run(padded, kinds), np.float32)
    for states, number in zip(hidden, numbers, strict=True):
      answers[number] = states[: len(rows[number])][:tokens].copy()  # lets go of the whole batch
    num_done += len(numbers)
    on_batch(num_done)
  return answers


def load(folder: str | os.PathLike) -> tuple[BertConfig, dict]:
  """Reads an encoder: its sizes, with dtype float32 and no dropout, and its parameters.

  Raises:
    SgdxError: the folder has no BERT.
  """
  weights = read_huggingface(pathlib.Path(folder))
  if not isinstance(weights.sizes, bert_layout.BertSizes):
    raise SgdxError(
      f"{folder}: a T5", expected="a BERT", fix="pass the folder of a BERT, such as MiniLM"
    )
  config = BertConfig(**weights.sizes.gin(), dropout_rate=0.0)
  flat = {name.removeprefix(bert_layout.PREFIX): array for name, array in weights.arrays.items()}
  return config, traverse_util.unflatten_dict(flat, sep="/")


def _batches(lengths: Sequence[int], longest: int) -> Iterator[tuple[list[int], int]]:
  """Yields indices of rows of similar lengths, and the length to pad them to."""
  of_length = collections.defaultdict(list)
  for number, length in enumerate(lengths):
    of_length[min(-(-length // _GRAIN) * _GRAIN, longest)].append(number)
  for length, numbers in sorted(of_length.items()):
    size = max(_TOKENS // length, 1)
    for i in range(0, len(numbers), size):
      yield numbers[i : i + size], length
