"""A full disk: four parts, and nothing partial is left. A limit on the size of files stands in."""

import contextlib
import resource

import pytest
import tiny_corpus
from commands import assert_four_parts, sgdx
from places import FIXTURES

HF = FIXTURES / "hf_t5/t5_1_0"


@contextlib.contextmanager
def largest_file(size: int):
  """Lets this process write no file of more bytes."""
  before = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
  try:
    yield
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [30, 20_000])
def test_records(size, small_sample, tmp_path, capsys):
  command = ("data", "prepare", "--corpus", small_sample / "sample")
  with largest_file(size):
    assert sgdx(*command, "--data-dir", tmp_path / "data") == 1
  assert_four_parts(capsys.readouterr().err, f"--data-dir {tmp_path}/data: ", "File too large")
  assert list(tmp_path.iterdir()) == []


def test_records_that_were_there_are_there_again(small_sample, tmp_path, capsys):
  command = ("data", "prepare", "--corpus", small_sample / "sample", "--data-dir", tmp_path)
  assert sgdx(*command) == 0
  before = sorted(tmp_path.rglob("*"))
  some = ("--dialogues", "train=50", "--overwrite")
  with largest_file(20_000):
    assert sgdx(*command, *some) == 1
  assert "File too large" in capsys.readouterr().err
  assert sorted(tmp_path.rglob("*")) == before
  assert sgdx(*command) == 0


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_weights(tmp_path, capsys):
  given = tmp_path / "given"
  assert sgdx("weights", "import", "--hf", HF, "--out", given) == 0
  capsys.readouterr()
  for size in (10, 12_000):
    for command in (("import", "--hf", HF), ("export", "--checkpoint", given / "checkpoint_0")):
      with largest_file(size):
        assert sgdx("weights", *command, "--out", tmp_path / "new") == 1
      out, err = capsys.readouterr()
      assert_four_parts(err, f"sgdx: --out {tmp_path}/new", "File too large")
      assert "written" not in out
      assert list(tmp_path.iterdir()) == [given]


@pytest.mark.parametrize(
  "command", [("prompts", "--variant", "v3"), ("data", "export", "--variant", "v3")]
)
def test_files_and_folders(command, tmp_path, capsys):
  corpus = tiny_corpus.write_corpus(tmp_path / "tiny")
  with largest_file(100):
    assert sgdx(*command, "--corpus", corpus, "--out", tmp_path / "new") == 1
  assert_four_parts(capsys.readouterr().err, "--out ", "File too large")
  assert not [path for path in (tmp_path / "new").rglob("*") if path.is_file()]
  assert not (tmp_path / "new").is_file()
