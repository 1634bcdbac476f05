"""Names that command a terminal: shown as escapes, exact in files and pipes."""

import io
import os
import pty
import sys

import pytest
import tiny_corpus
from commands import sgdx
from hostile import HOSTILE, write_hostile_corpus

from sgdx_t5x.cli import output
from sgdx_t5x.cli.progress import progress
from sgdx_t5x.cli.terminal import escaped_streams
from sgdx_t5x.errors import escaped
from sgdx_t5x.tables import Table

SHOWN = r"B\x1b]0;owned\x07\x1b[31m\x9b31m\rx\u202ey\u2066z"
RAW = "\x1b\x07\x9b\r\u202e\u2066"


@pytest.fixture
def corpus(tmp_path):
  return write_hostile_corpus(tmp_path / "tiny")


class Terminal(io.StringIO):
  def isatty(self):
    return True


TABLES = [Table(HOSTILE, ("", HOSTILE), ((HOSTILE, HOSTILE),))]
AROUND = {"marks": [f"ORACLE: {HOSTILE}"], "warnings": [HOSTILE], "notes": [HOSTILE]}
AROUND |= {"heading": [HOSTILE], "signatures": {HOSTILE: HOSTILE}}


@pytest.mark.parametrize("form", output.FORMATS)
def test_no_table_commands_a_terminal(form, monkeypatch):
  monkeypatch.setenv("NO_COLOR", "1")
  monkeypatch.setattr(sys, "stdout", terminal := Terminal())
  with escaped_streams():
    output.show(form, TABLES, {"name": HOSTILE}, **AROUND)
  assert "owned" in terminal.getvalue()
  assert not set(RAW) & set(terminal.getvalue())


def test_a_name_is_one_cell_of_one_line(capsys):
  output.show("text", TABLES, {})
  assert not any(line.startswith("sgdx:") for line in capsys.readouterr().out.splitlines())


def test_names_in_the_errors_of_commands(corpus, tmp_path, capsys):
  tiny_corpus.write_dialogues(tmp_path / "predictions", tiny_corpus.GOLD)  # of other services
  for name in (f"original={tmp_path / 'predictions'}", f"{HOSTILE}={tmp_path / 'predictions'}"):
    sgdx("score", "--corpus", corpus, "--predictions", name)
    error = capsys.readouterr().err
    assert "owned" in error
    assert not set(RAW) & set(error)


def test_what_programs_read_is_exact(corpus, tmp_path, capsys):
  command = ("prompts", "--corpus", corpus, "--variant", "original")
  assert sgdx(*command, "--out", "-") == 0
  out = capsys.readouterr().out
  assert sgdx(*command, "--out", tmp_path / "prompts.jsonl") == 0
  assert out == (tmp_path / "prompts.jsonl").read_text()
  output.show("csv", TABLES, {})
  assert HOSTILE in capsys.readouterr().out


def test_streams_are_escaped_also_while_progress_is_shown(monkeypatch):
  """On a real terminal, where rich writes control sequences of its own."""
  ours, theirs = pty.openpty()
  with open(theirs, "w", encoding="utf-8") as terminal:
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with escaped_streams():
      print(HOSTILE, file=sys.stderr)
      with progress("rows") as update:
        update(HOSTILE, 1, 2)
        print(HOSTILE, file=sys.stderr)
    terminal.write("END")
    terminal.flush()
    # A pseudo-terminal hands on in pieces, later than they were written.
    received = b""
    while not received.endswith(b"END"):
      received += os.read(ours, 100_000)
  os.close(ours)
  shown = received.decode()
  assert "\x1b[2K" in shown  # the lines of rich
  assert shown.count(SHOWN) >= 1
  for sequence in ("\x1b]0;", "\x07", "\x9b", "\u202e", "\u2066"):
    assert sequence not in shown


def test_the_streams_are_given_back():
  before = sys.stdout, sys.stderr
  assert sgdx("data", "stats", "--corpus", "none") == 1
  assert (sys.stdout, sys.stderr) == before


def test_other_scripts_stay():
  text = "日本語 العربية עברית é \u200d 👩\u200d🚀"
  assert escaped(text) == text
  assert escaped("a\nb\tc", kept="\n") == "a\nb\\tc"
