"""The vocabularies, one function each; tasks and gin files must both use these functions.

SeqIO compares vocabularies by path and extra ids, so another spelling of the same path would fail
with "Model and Task vocabularies do not match".
"""

import importlib.resources
import os

import seqio

from sgdx_t5x.errors import SgdxError

T5_VOCABULARY = "gs://t5-data/vocabs/cc_all.32000.100extra/sentencepiece.model"


def vocabulary() -> seqio.SentencePieceVocabulary:
  """T5's public vocabulary: the file named by SGDX_VOCAB, or the one in Google's storage.

  Raises:
    SgdxError: the file named by SGDX_VOCAB does not exist.
  """
  path = os.environ.get("SGDX_VOCAB", T5_VOCABULARY)
  if "://" not in path:
    path = os.path.abspath(path)
    if not os.path.isfile(path):
      raise SgdxError(
        f"SGDX_VOCAB={path}: no such file",
        expected="T5's sentencepiece.model",
        fix=f"copy {T5_VOCABULARY} there, or unset SGDX_VOCAB to read it from Google's storage",
      )
  return seqio.SentencePieceVocabulary(path)


def sample_vocabulary() -> seqio.SentencePieceVocabulary:
  """The sample's own small vocabulary (sgdx_t5x/sample/vocabulary.py)."""
  path = importlib.resources.files("sgdx_t5x.sample") / "vocabulary.model"
  return seqio.SentencePieceVocabulary(str(path), extra_ids=0)
