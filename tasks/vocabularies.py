"""The vocabularies, one function each; tasks and gin files must both use these functions.

SeqIO compares vocabularies by path and extra ids, so another spelling of the same path would fail
with "Model and Task vocabularies do not match".
"""

import importlib.resources
import os

import seqio

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.spandst.vocabulary import WordPieceVocabulary

ENCODER = "SGDX_ENCODER"  # environment variable
T5_VOCABULARY = "gs://t5-data/vocabs/cc_all.32000.100extra/sentencepiece.model"


def vocabulary() -> seqio.SentencePieceVocabulary:
  """T5's public vocabulary: the file named by SGDX_VOCAB, or the one in Google's storage.

  Raises:
    SgdxError: the file named by SGDX_VOCAB does not exist, or is a BERT's.
  """
  path = _path()
  if _is_wordpiece(path):
    raise SgdxError(
      f"SGDX_VOCAB={path}: the vocabulary of a BERT, and a T5",
      expected="T5's sentencepiece.model",
      fix="unset SGDX_VOCAB; or train on the BERT: --gin_file=gin/models/minilm_t5.gin",
    )
  return seqio.SentencePieceVocabulary(path)


def wordpiece_vocabulary() -> WordPieceVocabulary:
  """The vocabulary of a T5 decoder on a BERT: the vocab.txt named by SGDX_VOCAB.

  Raises:
    SgdxError: SGDX_VOCAB names no vocab.txt.
  """
  path = _path()
  if not _is_wordpiece(path):
    raise SgdxError(
      f"SGDX_VOCAB={path}",
      expected="the vocab.txt of the pretrained encoder",
      fix="launch/minilm.sh minilm; SGDX_VOCAB=minilm/vocab.txt python -m t5x.train ...",
    )
  return WordPieceVocabulary(path)


def prompt_vocabulary() -> seqio.Vocabulary:
  """The vocabulary of the tasks of prompts: whichever of the two SGDX_VOCAB names."""
  return wordpiece_vocabulary() if _is_wordpiece(_path()) else vocabulary()


def prompts_are_uncased() -> bool:
  """Whether SGDX_VOCAB names an uncased vocabulary: a BERT's."""
  return _is_wordpiece(os.environ.get("SGDX_VOCAB", ""))


def _path() -> str:
  """Returns the path of SGDX_VOCAB. Raises SgdxError if there is no such file."""
  path = os.environ.get("SGDX_VOCAB") or T5_VOCABULARY  # empty is unset, as for SGDX_ENCODER
  if "://" in path:
    return path
  path = os.path.abspath(path)  # one spelling, which SeqIO compares
  if not os.path.isfile(path):
    raise SgdxError(
      f"SGDX_VOCAB={path}: no such file",
      expected="T5's sentencepiece.model",
      fix=f"copy {T5_VOCABULARY} there, or unset SGDX_VOCAB to read it from Google Cloud Storage",
    )
  return path


def _is_wordpiece(path: str) -> bool:
  return os.path.basename(path) == "vocab.txt"


def sample_vocabulary() -> seqio.SentencePieceVocabulary:
  """The sample's own small vocabulary (sgdx_t5x/t5/sample_vocabulary.py)."""
  path = importlib.resources.files("sgdx_t5x.corpus.sample") / "vocabulary.model"
  return seqio.SentencePieceVocabulary(str(path), extra_ids=0)


def encoder_vocabulary() -> WordPieceVocabulary:
  """The WordPiece vocabulary of a pretrained encoder: vocab.txt in the folder SGDX_ENCODER.

  Raises:
    SgdxError: SGDX_ENCODER is not set, or has no vocab.txt.
  """
  folder = os.environ.get(ENCODER, "")
  if not os.path.isfile(os.path.join(folder, "vocab.txt")):
    raise SgdxError(
      f"{ENCODER}={folder}: no vocab.txt" if folder else f"{ENCODER} is not set",
      expected="the folder of a pretrained encoder, with config.json and vocab.txt",
      fix=f"launch/minilm.sh minilm; {ENCODER}=minilm python -m t5x.train ...",
    )
  return WordPieceVocabulary(folder)


def encoder_vocabulary_later() -> WordPieceVocabulary:
  """`encoder_vocabulary` for registering tasks: the file may be missing until it is used."""
  try:
    return encoder_vocabulary()
  except SgdxError:
    # The path is in the error of a task that is used nevertheless, and says what to set.
    folder = os.environ.get(ENCODER) or f"${ENCODER}"
    return WordPieceVocabulary(os.path.join(folder, "vocab.txt"), lower_case=True)


def sample_encoder_vocabulary() -> WordPieceVocabulary:
  """The sample's own small WordPiece vocabulary."""
  path = importlib.resources.files("sgdx_t5x.corpus.sample") / "vocab.txt"
  return WordPieceVocabulary(str(path), lower_case=True)
