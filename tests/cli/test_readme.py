"""The commands of the README are complete: each is one that the command line accepts."""

import argparse
import re
import shlex

import pytest
from places import ROOT

from sgdx_t5x.cli.commands import make_parser

README = (ROOT / "README.md").read_text("utf-8")


def _commands():
  for block in re.findall(r"```bash\n(.*?)```", README, re.DOTALL):
    for line in block.replace("\\\n", " ").splitlines():
      words = shlex.split(line, comments=True)
      if words[:1] == ["sgdx"]:
        yield words[1:]
  for code in re.findall(r"`(sgdx [^`]*)`", README):
    words = shlex.split(code)[1:]
    if not _is_name(words):
      yield words


def _is_name(words):
  """Whether words name a command or a group of commands, as in "`sgdx tools run` queries"."""
  parser = make_parser()
  for word in words:
    groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not groups or word not in groups[0].choices:
      return False
    parser = groups[0].choices[word]
  return True


@pytest.mark.parametrize("words", list(_commands()), ids=" ".join)
def test_commands_are_accepted(words):
  assert make_parser().parse_args(words).run


def test_every_command_of_a_script_is_complete():
  assert "`launch/study.sh`" not in README  # ends with an error: it needs --archive


@pytest.mark.parametrize("term", ["JGA", "JGA_v1-5", "Diff_rel", "SS_JGA"])
def test_terms_are_defined_where_the_text_first_names_them(term):
  """For readers who know SGD but not this project."""
  text = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
  first = re.search(rf"(?<![\w./-]){re.escape(term)}(?![\w-])", text)
  assert re.search(r"\b(are|is|measures|the average|the share)\b", text[first.start() :][:120])
