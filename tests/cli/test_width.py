"""Nothing that `sgdx` prints is wider than the terminal: help, tables, lines around them."""

import argparse
import io
import itertools
import pathlib
import re
import shlex
import sys

import pytest

from sgdx_t5x import annexes
from sgdx_t5x.cli import output
from sgdx_t5x.cli.commands import make_parser
from sgdx_t5x.tables import Table, count, percent


def _parsers(parser):
  """Yields a parser and those of its subcommands."""
  yield parser
  for action in parser._actions:
    if isinstance(action, argparse._SubParsersAction):
      for child in action.choices.values():
        yield from _parsers(child)


@pytest.mark.parametrize("columns", [80, 100])
def test_help_is_not_wider_than_the_terminal(columns, monkeypatch):
  monkeypatch.chdir(pathlib.Path(__file__).parents[2])  # elsewhere the paths of documents are long
  monkeypatch.setenv("COLUMNS", str(columns))
  helps = {parser.prog: parser.format_help() for parser in _parsers(make_parser())}
  assert len(helps) > 15
  lines = [(prog, line) for prog, text in helps.items() for line in text.splitlines()]
  wide = [(prog, line) for prog, line in lines if len(line) > columns]
  assert not wide


class _Terminal(io.StringIO):
  def isatty(self):
    return True


def _show(monkeypatch, columns, *tables, **about):
  """Returns what a terminal of `columns` columns shows."""
  monkeypatch.setenv("TERM", "xterm")
  monkeypatch.setenv("NO_COLOR", "1")
  monkeypatch.setenv("COLUMNS", str(columns))
  monkeypatch.setattr(sys, "stdout", _Terminal())
  output.show("text", tables, {}, **about)
  return sys.stdout.getvalue()


_NUMBERS = ("JGA_orig", "v1", "v2", "v3", "v4", "v5", "JGA_v1-5", "Diff_rel", "SS_JGA", "frames")
_WIDE = Table(
  "JGA by schema variant (%)",
  ("", *_NUMBERS),
  tuple(
    (f"back-translations, {group}", *[percent(0.726)] * 9, count(26_802))
    for group in ("all", "seen", "unseen")
  ),
)


@pytest.mark.parametrize("columns", [100, 80, 60, 40])
def test_tables_are_not_wider_than_the_terminal(columns, monkeypatch):
  """Regression: a terminal of 80 columns folded a table of 85 inside its last number."""
  text = _show(monkeypatch, columns, _WIDE)
  lines = text.splitlines()
  assert max(map(len, lines)) <= columns
  words = text.split()
  assert words.count("26,802") == 3
  assert [words.count(name) for name in _NUMBERS] == [1] * len(_NUMBERS)
  assert words.count("72.6") == 27


def test_a_pipe_gets_the_whole_table_in_one(capsys):
  output.show("text", [_WIDE], {})
  lines = capsys.readouterr().out.splitlines()
  assert lines[1].split() == list(_NUMBERS)
  assert len(lines[1]) > 80


def test_lines_are_folded_between_words_but_what_is_to_be_copied_is_not(monkeypatch):
  long = {"next": "next: sgdx stats " + "word " * 20, "report": "report: /" + "x" * 90}
  signature = "sgdx|" + "a:b|" * 30
  text = _show(
    monkeypatch,
    80,
    marks=["NOT COMPARABLE: " + "other settings " * 10],
    warnings=["frames are missing " * 6],
    notes=("a note " * 20, *long.values()),
    signatures={"": signature},
  )
  lines = [line.rstrip() for line in text.splitlines()]
  for line in (*long.values(), f"PARTIAL signature: {signature}"):
    assert line.rstrip() in lines
    lines.remove(line.rstrip())
  assert max(map(len, lines)) <= 80
  assert " ".join(" ".join(lines).split()).count("a note") == 20


@pytest.mark.parametrize("length", [5, 30, 90])
def test_commands_to_copy_are_folded_with_backslashes(length):
  """Regression: that of `sgdx prompts` had 146 columns, that of `sgdx data prepare` 116."""
  path = "x" * length
  words = ["sgdx", "score", "--corpus", path, "--split", "test", "--predictions", f"all={path}"]
  text = output.folded_command(words, "next:    ")
  assert shlex.split(text.replace("\\\n", " ")) == ["next:", *words]
  lines = text.split("\n")
  assert len(lines) == {5: 1, 30: 2, 90: 4}[length]
  assert max(map(len, lines)) <= max(80, length + 22)
  assert all(line.startswith("    --") for line in lines[1:])


def test_help_with_long_paths_of_documents_has_full_lines(monkeypatch, tmp_path):
  """Regression: outside a clone, a line that a path made too long was followed by one word."""
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv("COLUMNS", "80")
  texts = [parser.format_help() for parser in _parsers(make_parser())]
  blocks = [block for text in texts for block in text.split("\n\n") if "/docs/" in block]
  assert len(blocks) > 4
  for block in blocks:
    lines = block.splitlines()
    for line, following in itertools.pairwise(lines):
      assert len(f"{line} {following.split()[0]}") > 76, block


def test_a_table_into_a_pipe_that_was_closed(monkeypatch):
  """Regression: `sgdx ls | head -1` exited with 1, as rich's console does on a closed pipe."""

  class Closed(io.StringIO):
    def write(self, text):
      raise BrokenPipeError

  monkeypatch.setattr(sys, "stdout", Closed())
  with pytest.raises(BrokenPipeError):
    output.show("text", [_WIDE], {})


def test_help_has_an_example_of_each_command_and_says_what_sgd_zip_is():
  """Regression: several had none; the archive was also called ARCHIVE, FILE and by its own name."""
  text = make_parser().format_help()
  commands = _subparsers(make_parser())
  for name in (*commands, "data prepare", "data verify", "data stats"):
    # An annex's command has its examples in its own help.
    shown = commands[name].format_help() if name in annexes.table("COMMANDS") else text
    assert re.search(rf"\n {{2,4}}sgdx {name} ", shown), name
  assert "sgd.zip is the official archive" in text
  root = pathlib.Path(__file__).parents[2]
  texts = [parser.format_help() for parser in _parsers(make_parser())]
  texts += [file.read_text() for file in (root / "README.md", *(root / "docs").glob("*.md"))]
  assert not [text for text in texts if "ARCHIVE " in text or "dialogue-master.zip " in text]


def _subparsers(parser):
  return next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction)).choices
