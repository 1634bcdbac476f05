"""Progress: lines on a terminal while a command runs, nothing of them in a pipe or a file."""

import contextlib
import io
import os
import pty
import sys

import pytest
import tiny_corpus
from commands import sgdx
from places import FIXTURES

from sgdx_t5x.cli.data import prepare
from sgdx_t5x.cli.progress import native_stderr_hidden, progress, track
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.subset import Subset


class Terminal(io.StringIO):
  def isatty(self):
    return True


def open_terminal(monkeypatch):
  """Makes stderr a terminal; called in the test, as pytest sets stderr before each phase."""
  monkeypatch.setenv("TERM", "xterm")
  monkeypatch.setenv("COLUMNS", "100")
  monkeypatch.setattr(sys, "stderr", Terminal())
  return sys.stderr


def test_a_pipe_gets_nothing_and_rich_is_not_needed(capsys, monkeypatch):
  monkeypatch.setitem(sys.modules, "rich.progress", None)
  assert list(track("abc", "writing", "files", 3)) == ["a", "b", "c"]
  with progress("texts") as update:
    update("en > zh", 1, 2)
  assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_line_per_task_that_vanishes(monkeypatch, capsys):
  terminal = open_terminal(monkeypatch)
  with progress("texts") as update:
    update("en > zh", 1_000, 1_500)
    update("zh > en", 3)
    print("a result")
    print("a message", file=sys.stderr)
  shown = terminal.getvalue()
  assert "en > zh" in shown
  assert "1,000 of 1,500 texts" in shown
  assert "3 texts" in shown
  assert "a message" in shown
  assert shown.rstrip("\x1b[?25h\r\n").endswith("\x1b[2K")  # the lines are erased
  assert capsys.readouterr().out == "a result\n"


def test_items_are_counted_as_they_are_used(monkeypatch):
  terminal = open_terminal(monkeypatch)
  assert sum(1 for _ in track(range(7), "writing", "files", 7)) == 7
  assert "7 of 7 files" in terminal.getvalue()


def test_a_terminal_that_gets_results_gets_no_progress(monkeypatch):
  terminal = open_terminal(monkeypatch)
  assert list(track("abc", "writing", "dialogues", enabled=False)) == ["a", "b", "c"]
  assert terminal.getvalue() == ""


def test_splits_that_are_written_have_an_estimate(monkeypatch):
  terminal = open_terminal(monkeypatch)
  with prepare._split_progress({"dev": 2_482}) as (on_dialogue, _):
    on_dialogue("dev", {"dialogues": 100, "frames": 300})
  assert "100 of 2,482 dialogues" in terminal.getvalue()


def shown(monkeypatch, capsys, *command):
  """What a command shows on a terminal; fails if its exit code is not 0."""
  terminal = open_terminal(monkeypatch)
  assert sgdx(*command) == 0, terminal.getvalue()
  return terminal.getvalue()


@pytest.fixture
def corpus(tmp_path):
  return tiny_corpus.write_corpus(tmp_path / "tiny")


def test_stats(corpus, monkeypatch, capsys):
  pytest.importorskip("sacrebleu")
  assert "comparisons" in shown(monkeypatch, capsys, "stats", "--corpus", corpus)


def test_data_stats(corpus, monkeypatch, capsys):
  """Dialogues of an unknown corpus are only counted; for those of SGD, the total is known."""
  command = ("data", "stats", "--corpus", corpus)
  found = shown(monkeypatch, capsys, *command)
  assert "counting test" in found
  assert "1 dialogues" in found


def test_compose(corpus, tmp_path, monkeypatch, capsys):
  out = tmp_path / "texts.jsonl"
  out.touch()
  command = ("compose", "--corpus", corpus, "--paraphrases", out, "--fill", "--out", tmp_path / "o")
  assert "ranking paraphrases" in shown(monkeypatch, capsys, *command)


def test_data_vocabulary(corpus, tmp_path, monkeypatch, capsys):
  vocabulary = pytest.importorskip("sgdx_t5x.t5.train_vocabulary")
  monkeypatch.setattr(vocabulary, "train_vocabulary", lambda lines, pieces: b"")
  dialogue = tiny_corpus.dialogue("1_00009", [{"Shops_1": {"item": ["pen"]}}])
  tiny_corpus.write_json(corpus / "train/dialogues_001.json", [dialogue])
  command = ("data", "vocabulary", "--corpus", corpus, "--out", tmp_path / "x", "--pieces", 400)
  found = shown(monkeypatch, capsys, *command)
  assert "reading train" in found
  assert "of 400 pieces" in found


def test_weights(tmp_path, monkeypatch, capsys):
  pytest.importorskip("orbax.checkpoint")
  model = FIXTURES / "hf_t5/t5_1_0"
  found = shown(monkeypatch, capsys, "weights", "import", "--hf", model, "--out", tmp_path)
  assert "reading" in found
  assert "writing" in found
  command = ("weights", "export", "--checkpoint", tmp_path / "checkpoint_0")
  found = shown(monkeypatch, capsys, *command, "--out", tmp_path / "hf")
  assert "reading" in found
  assert "writing" in found


def test_a_terminal_shows_progress_while_libraries_are_silenced(monkeypatch):
  """Both write to the same file descriptor."""
  ours, theirs = pty.openpty()
  saved = os.dup(2)
  os.dup2(theirs, 2)
  try:
    with open(theirs, "w") as terminal, monkeypatch.context() as patch:
      patch.setattr(sys, "stderr", terminal)
      patch.setenv("TERM", "xterm")
      with progress("MB") as update, native_stderr_hidden(debug=False):
        os.write(2, b"noise of a library")
        update("writing", 5, 9)
  finally:
    os.dup2(saved, 2)
    os.close(saved)
  found = ""
  with contextlib.suppress(OSError):  # at the end: the other side is closed
    while part := os.read(ours, 100_000):
      found += part.decode()
  os.close(ours)
  assert "noise" not in found
  assert "5 of 9 MB" in found


def test_a_bar_of_an_archive_that_lacks_files_has_no_end(monkeypatch):
  """Regression: it ended at 70%, as 24 of the test split's 34 files were there."""
  corpus = open_corpus("sample")
  assert corpus.expected_dialogues("test") is None
  monkeypatch.setitem(vars(corpus), "name", "sgd")
  for number, expected in ((34, 4_201), (24, None)):
    monkeypatch.setattr(corpus, "dialogue_files", lambda split, n=number: ["x"] * n)
    assert corpus.expected_dialogues("test") == expected
  monkeypatch.undo()
  assert Subset(open_corpus("sample"), {"test": 7}).expected_dialogues("test") == 7
