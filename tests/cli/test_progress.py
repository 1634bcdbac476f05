"""Progress: lines on a terminal while a command runs, nothing of them in a pipe or a file."""

import io
import sys
import time

from sgdx_t5x.cli.data import prepare
from sgdx_t5x.cli.progress import progress, track


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


def test_the_size_of_a_download_is_shown_until_dialogues_are_read(monkeypatch, tmp_path):
  """`data prepare --download` was silent for the minutes of the download."""
  monkeypatch.setattr(prepare, "_SECONDS_BETWEEN_LOOKS", 0.001)
  seen = []
  (tmp_path / "part").write_bytes(b"x" * 3_200_000)
  with prepare._watched(tmp_path, lambda *words: seen.append(words)) as stop:
    while not seen:
      time.sleep(0.001)
    stop()
  assert set(seen) == {("fetching", 3, 37, "MB")}


def test_splits_that_are_written_have_an_estimate(monkeypatch):
  terminal = open_terminal(monkeypatch)
  with prepare._split_progress({"dev": 2_482}, None) as on_dialogue:
    on_dialogue("dev", {"dialogues": 100, "frames": 300})
  assert "100 of 2,482 dialogues" in terminal.getvalue()
