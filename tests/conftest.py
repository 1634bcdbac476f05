"""Shared fixtures. Tests that need what is not here are skipped with a reason, but never in CI."""

import gc
import importlib
import os
import pathlib
import signal

import hypothesis
import pytest
from compiling import compiled_as_for_users  # noqa: F401
from needs import skip_what_is_lacking
from places import ROOT
from shared import shared_file

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# A shell's background jobs, as in some CIs, ignore SIGINT, and child processes would inherit this.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
  signal.signal(signal.SIGINT, signal.default_int_handler)

# The machine may be busy: no test fails for taking long.
hypothesis.settings.register_profile(
  "busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("busy")

# Tasks are registered when first imported, with the vocabulary named here: the sample's, which each
# clone has. Tests that depend on T5's request `t5_vocabulary_file`.
os.environ.setdefault("SGDX_VOCAB", str(ROOT / "sgdx_t5x/corpus/sample/vocabulary.model"))

# Fixtures that read ../shared; one of them reads a set in the repository where there is none.
_READS_SHARED = {"real_archive", "t5_vocabulary_file", "golden_folder"}


def pytest_itemcollected(item) -> None:
  """Marks the tests that read ../shared."""
  if not _READS_SHARED.isdisjoint(getattr(item, "fixturenames", ())):
    item.add_marker(pytest.mark.shared)


@pytest.hookimpl(trylast=True)  # when -m and -k have chosen
def pytest_collection_modifyitems(config, items) -> None:
  """Skips the tests that need what is not here; files with long tests come first.

  Otherwise one of pytest's workers would still run them when the others have ended.
  """
  skip_what_is_lacking(config, items)
  long_files = {item.path for item in items if item.get_closest_marker("long")}
  items.sort(key=lambda item: item.path not in long_files)


def pytest_collection_finish() -> None:
  """Makes garbage collection rare: a large corpus creates millions of long-lived objects."""
  gc.collect()
  gc.freeze()  # TensorFlow's and JAX's modules
  gc.set_threshold(100_000, 10, 10)


@pytest.fixture(scope="session")
def real_archive() -> pathlib.Path:
  """The real SGD archive: complete train and dev, 24 of 34 test files, all SGD-X schemas."""
  return shared_file("sgd/dstc8-schema-guided-dialogue-master.zip")


@pytest.fixture(scope="session")
def t5_vocabulary_file() -> pathlib.Path:
  """T5's public SentencePiece model."""
  return shared_file("t5/sentencepiece.model")


@pytest.fixture(scope="session")
def transformers():
  """The package, which only tests need."""
  return importlib.import_module("transformers")


@pytest.fixture(scope="session")
def golden_folder() -> pathlib.Path:
  """The numbers and checkpoints recorded from Google's T5X."""
  from goldens import find_golden

  return find_golden()


@pytest.fixture(scope="session")
def prepared_sample(tmp_path_factory) -> pathlib.Path:
  """A folder with `data`, of `sgdx data prepare --corpus sample`, its stdout `out`, stderr `err`.

  The train split has few dialogues, see `sample_folder`.
  """
  from commands import python_code
  from once import made_once
  from sample_folder import SGDX_WITH_FEW

  def make(folder: pathlib.Path) -> None:
    command = ("data", "prepare", "--corpus", "sample", "--data-dir", folder / "data")
    found = python_code(SGDX_WITH_FEW, *command)
    assert found.returncode == 0, found.stderr
    (folder / "out").write_text(found.stdout)
    (folder / "err").write_text(found.stderr)

  return made_once(tmp_path_factory, "prepared_sample", make)


@pytest.fixture(scope="session")
def sample_records(prepared_sample) -> pathlib.Path:
  """A data directory with the sample's records; train has few dialogues."""
  return prepared_sample / "data"


@pytest.fixture(scope="session")
def fork_server():
  """Starts `t5x` scripts without seconds spent on imports; see fork_server.py."""
  from fork_server import fork_server

  return fork_server()


@pytest.fixture(scope="session")
def real_pass(tmp_path_factory, real_archive):
  """The results of one pass over the whole real archive, a `real_pass.RealPass`."""
  from once import computed_once
  from real_pass import read_real

  return computed_once(tmp_path_factory, "real_pass", lambda: read_real(real_archive))


@pytest.fixture(scope="session")
def small_sample(tmp_path_factory) -> pathlib.Path:
  """A folder with a few of the sample's dialogues as `sample`, and their records as `data`."""
  from once import made_once

  def make(folder: pathlib.Path) -> None:
    from sample_folder import write_sample

    from sgdx_t5x.corpus.opening import open_corpus
    from sgdx_t5x.records.prepare import prepare

    corpus = write_sample(folder / "sample", {"train": 60, "dev": 6, "test": 6})
    prepare(open_corpus(corpus), folder / "data")

  return made_once(tmp_path_factory, "small_sample", make)
