"""Shared fixtures. What needs real data skips with a reason, and never skips in CI."""

import os
import pathlib

import pytest
from places import SHARED, shared_file

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("JAX_PLATFORMS", "cpu")


# Tasks are registered when first imported, with the vocabulary that this names.
if (SHARED / "t5/sentencepiece.model").exists():
  os.environ.setdefault("SGDX_VOCAB", str(SHARED / "t5/sentencepiece.model"))


@pytest.fixture(scope="session")
def real_archive() -> pathlib.Path:
  """The real SGD archive: train and dev whole, 24 of 34 test files, all SGD-X schemas."""
  return shared_file("sgd/dstc8-schema-guided-dialogue-master.zip")


@pytest.fixture(scope="session")
def t5_vocabulary_file() -> pathlib.Path:
  """T5's public SentencePiece model."""
  return shared_file("t5/sentencepiece.model")


@pytest.fixture(scope="session")
def sample_records(tmp_path_factory) -> pathlib.Path:
  """A data directory with the sample's records."""
  from sgdx_t5x.corpora import open_corpus
  from sgdx_t5x.records.prepare import prepare

  folder = tmp_path_factory.mktemp("records")
  prepare(open_corpus("sample"), folder)
  return folder
