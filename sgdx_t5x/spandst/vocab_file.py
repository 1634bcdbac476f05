"""BERT's vocab.txt, one WordPiece per line, and the rule of its case; NumPy alone."""

from __future__ import annotations

import collections
import functools
import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import not_found
from sgdx_t5x.spandst.wordpiece import UNKNOWN, Pieces, WordPiece

PADDING, FIRST, SEPARATOR = "[PAD]", "[CLS]", "[SEP]"
_MPNET = ("<s>", "<pad>", "</s>", "<unk>")  # before the pieces of BERT's vocabulary
FILE, _CONFIG, _TOKENIZER = "vocab.txt", "tokenizer_config.json", "tokenizer.json"
_NEEDED = (PADDING, UNKNOWN, FIRST, SEPARATOR)
# The first pieces of the sample's vocabulary: these, then [unused1] to [unused16].
SPECIAL, MARKERS = (*_NEEDED, "[MASK]"), 16


class WordPieceFile:
  """A vocab.txt; two are equal if they have the same path and case.

  In MPNet's, <s> and <pad> change places, as their rows do in `weights.bert_huggingface`.

  Args:
    path: vocab.txt, or its folder, such as a Hugging Face checkpoint.
    lower_case: whether the vocabulary is uncased; None reads it from the tokenizer's config.

  Raises:
    SgdxError: the casing is unknown; on first use, vocab.txt is missing or not BERT's.
  """

  def __init__(self, path: str | os.PathLike, lower_case: bool | None = None):
    file = pathlib.Path(path)
    file = file / FILE if file.is_dir() else file
    self.path = os.path.abspath(file)
    self.lower_case = _is_uncased(file) if lower_case is None else bool(lower_case)

  # Read lazily: SeqIO tasks are registered with vocabularies whose files may not exist.
  @functools.cached_property
  def _pieces(self) -> tuple[str, ...]:
    return read_pieces(self.path)

  @functools.cached_property
  def _ids(self) -> Mapping[str, int]:
    return {piece: i for i, piece in enumerate(self._pieces)}

  @functools.cached_property
  def _word_piece(self) -> WordPiece:
    return WordPiece(self._ids, self.lower_case)

  @functools.cached_property
  def _is_mpnet(self) -> bool:
    return self._pieces[0] == _MPNET[1]

  @property
  def bos_id(self) -> int:
    """Id of [CLS]; of <s> in MPNet's."""
    return self._ids[_MPNET[0] if self._is_mpnet else FIRST]

  @property
  def eos_id(self) -> int:
    """Id of [SEP]; of </s> in MPNet's."""
    return self._ids[_MPNET[2] if self._is_mpnet else SEPARATOR]

  @property
  def unk_id(self) -> int:
    """Id of [UNK]."""
    return self._ids[UNKNOWN]

  def marker(self, number: int) -> int:
    """Returns the id of the piece [unusedN], which no text produces and an encoder may learn.

    Args:
      number: from 1.

    Raises:
      SgdxError: the vocabulary has no such piece.
    """
    piece_id = self._ids.get(f"[unused{number}]")
    if piece_id is None:
      raise SgdxError(
        f"{self.path}: no piece [unused{number}]",
        expected="pieces [unused1], [unused2], ... for markers, as in BERT's vocabularies",
        fix="rename pieces that you do not need, or append some if the embedding has rows for them",
      )
    return piece_id

  def cut(self, text: str) -> Pieces:
    """Returns the ids of a text's pieces, with their character offsets."""
    return self._word_piece.cut(text)

  def encode_texts(self, *texts: str) -> np.ndarray:
    """Returns int32 ids of [CLS] text [SEP], or [CLS] text [SEP] text [SEP] and so on."""
    ids = [self.bos_id]
    for text in texts:
      ids += [*self.cut(text).ids, self.eos_id]
    return np.array(ids, np.int32)

  def __eq__(self, other: object) -> bool:
    if not isinstance(other, WordPieceFile):
      return False
    return (self.path, self.lower_case) == (other.path, other.lower_case)

  def __hash__(self) -> int:
    return hash((self.path, self.lower_case))

  def __repr__(self) -> str:
    return f"{type(self).__name__}({self.path!r}, lower_case={self.lower_case})"


def read_pieces(path: str | os.PathLike) -> tuple[str, ...]:
  """Reads a vocab.txt; MPNet's with <pad> first.

  Raises:
    SgdxError: it cannot be read, lacks a special piece, has [PAD] elsewhere than at 0, or has
      duplicate pieces.
  """
  fix = "pass the vocab.txt of a BERT, next to its config.json"
  try:
    pieces = pathlib.Path(path).read_text(encoding="utf-8").split("\n")
  except (OSError, UnicodeDecodeError) as e:
    raise SgdxError(f"{path}: {e}", expected="a WordPiece vocabulary", fix=fix) from None
  pieces = [piece.rstrip("\r") for piece in pieces]
  while pieces and not pieces[-1]:
    pieces.pop()
  problems = [f"no piece {piece}" for piece in _NEEDED if piece not in pieces]
  if tuple(pieces[: len(_MPNET)]) == _MPNET:
    pieces[:2] = pieces[1::-1]  # SeqIO pads with piece 0
  elif not problems and pieces[0] != PADDING:
    problems.append(f"{PADDING} is piece {pieces.index(PADDING)}, not 0, which SeqIO pads with")
  if len(set(pieces)) < len(pieces):
    # A set of pieces taken away from all of them leaves those that occur again.
    duplicates = sorted(collections.Counter(pieces) - collections.Counter(set(pieces)))
    problems.append(f"duplicate pieces: {', '.join(duplicates[:3])}")
  if problems:
    raise SgdxError(
      f"{path}: " + "; ".join(problems),
      expected=f"one piece per line, {PADDING} first, with {', '.join(_NEEDED[1:])}",
      available=f"{len(pieces):,} lines",
      fix=fix,
    )
  return tuple(pieces)


def _is_uncased(file: pathlib.Path) -> bool:
  """Whether a vocab.txt is uncased, by the tokenizer's config beside it."""
  if not file.exists():
    raise not_found(file, "an encoder's folder, or its vocab.txt", "file or folder")
  for name in (_CONFIG, _TOKENIZER):
    try:
      config = json.loads((file.parent / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
      continue
    if name == _TOKENIZER and isinstance(config, dict):
      config = config.get("normalizer")
    if not isinstance(config, dict):
      continue
    is_uncased = config.get("do_lower_case", config.get("lowercase"))
    if isinstance(is_uncased, bool):
      _check_rules(file.parent / name, config, is_uncased)
      return is_uncased
  raise SgdxError(
    f"{file.parent}: no setting says whether {file.name} is cased",
    expected=f"do_lower_case in {_CONFIG}",
    fix='write {"do_lower_case": true} or false into it; in Python, pass lower_case',
  )


def _check_rules(path: pathlib.Path, config: Mapping[str, Any], lower_case: bool) -> None:
  """Refuses settings that `WordPiece` does not have: it would cut some texts differently.

  Args:
    path: file of the settings.
    config: the settings, null meaning BERT's own.
    lower_case: whether the vocabulary is uncased.
  """
  rules = {
    "strip_accents": lower_case,
    "tokenize_chinese_chars": True,
    "handle_chinese_chars": True,
    "unk_token": UNKNOWN,
  }
  for name, value in rules.items():
    setting = config.get(name)  # each of the two files has some of them
    if isinstance(setting, dict):  # a piece with its options
      setting = setting.get("content")
    if setting not in (None, value):
      raise SgdxError(
        f"{path}: {name} is {json.dumps(setting)} for "
        f"{'an uncased' if lower_case else 'a cased'} vocabulary",
        expected=f"{json.dumps(value)} or null, as in BERT's vocabularies",
        fix="use an encoder with BERT's own rules, or pass lower_case to ignore the setting",
      )
