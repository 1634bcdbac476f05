"""WordPiece vocabularies for SeqIO: BERT's vocab.txt, one piece per line.

tensorflow-text's tokenizers are not used: they fold "ß" to "ss" and keep private-use characters,
and `BertTokenizer` gives offsets into the text after its accents are stripped. On 4,021 texts of
random characters the pieces of `sgdx_t5x.spandst.wordpiece` equal those of Hugging Face's
tokenizers except where their Unicode versions differ, a text contains a special piece, or the
ideographs U+2B820 to U+2B91F, which the latter do not separate. The script released with BERT also
keeps private-use characters, and cuts words of up to 200 characters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import seqio
import tensorflow as tf

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.spandst.vocab_file import WordPieceFile

_TAG = re.compile(r"\[ \w+(?: _ \w+)* \]")
_INDEX = re.compile(r"\b([0-9]+) = ?")


class WordPieceVocabulary(WordPieceFile, seqio.Vocabulary):
  """A vocab.txt as SeqIO's vocabulary. Args, Raises: see `WordPieceFile`."""

  def __init__(self, path: str | os.PathLike, lower_case: bool | None = None):
    WordPieceFile.__init__(self, path, lower_case)
    seqio.Vocabulary.__init__(self, extra_ids=0)

  def check_fits(self, rows: int) -> None:
    """Raises SgdxError if it has more pieces than an encoder's embedding has rows."""
    if self.vocab_size > rows:
      raise SgdxError(
        f"{self.path}: {self.vocab_size:,} pieces",
        expected=f"at most {rows:,}, the rows of the embedding (encoder.BertConfig.vocab_size)",
        fix="use the vocabulary that the encoder was trained with, or its gin/models file",
      )

  @property
  def _base_vocab_size(self) -> int:
    return len(self._pieces)

  def _encode(self, s: str) -> Sequence[int]:
    return list(self.cut(s).ids)

  def _decode(self, ids: Iterable[int]) -> str:
    """Joins pieces; case, accents and whitespace are not restored: take them from the text.

    But for the marks of prompt formats, "[req_slots]", "0=" and "||", by which answers are read.
    What ends a text is no part of it: `seqio.Vocabulary.decode` passes it on.
    """
    pieces = []
    for i in ids:
      # A model can answer ids beyond the vocabulary: rows of its embedding without a piece.
      if 0 <= i < len(self._pieces) and i not in (self.pad_id, self.eos_id):
        pieces.append(self._pieces[i])
    text = " ".join(pieces).replace(" ##", "")
    text = _TAG.sub(lambda tag: tag[0].replace(" ", ""), text)
    return _INDEX.sub(r"\1=", text).replace("| |", "||")

  def _encode_tf(self, s: tf.Tensor) -> tf.Tensor:
    """Scalar -> `[pieces]`; `[texts]` -> ragged `[texts, pieces]`."""

    def encode(texts: Any) -> tuple[np.ndarray, np.ndarray]:  # bytes, or an array of them
      ids: list[int] = []
      lengths = []
      for text in np.ravel(texts).tolist():
        pieces = self.cut(text.decode("utf-8", "replace")).ids
        ids += pieces
        lengths.append(len(pieces))
      return np.array(ids, np.int32), np.array(lengths, np.int64)

    ids, lengths = tf.numpy_function(encode, [s], (tf.int32, tf.int64))
    ids.set_shape([None])
    if not s.shape.rank:
      return ids
    lengths.set_shape(s.shape[:1])
    return tf.RaggedTensor.from_row_lengths(ids, lengths)

  def _decode_tf(self, ids: tf.Tensor) -> tf.Tensor:
    return tf.numpy_function(lambda x: self._decode(x.tolist()).encode(), [ids], tf.string)
