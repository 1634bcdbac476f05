"""The first pages: their commands are accepted by the command line, their terms defined."""

import argparse
import re
import shlex

import pytest
from places import ROOT

from sgdx_t5x import annexes
from sgdx_t5x.cli.commands import make_parser

PAGES = [
  (ROOT / page).read_text("utf-8")
  for page in ("README.md", "docs/first-hour.md", "docs/commands.md")
]


def _commands():
  text = "\n".join(PAGES)
  for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL):
    for line in block.replace("\\\n", " ").splitlines():
      words = shlex.split(line, comments=True)
      if words[:1] == ["sgdx"]:
        yield words[1:]
  for code in re.findall(r"`(sgdx [^`]*)`", text):
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


@pytest.mark.parametrize("words", list(dict.fromkeys(map(tuple, _commands()))), ids=" ".join)
def test_commands_are_accepted(words):
  if not _is_name(words[:1]) and not annexes.table("COMMANDS"):
    pytest.skip("a command of an annex, and there are no annexes")
  assert make_parser().parse_args(list(words)).run


def test_the_readme_fits_two_screens():
  assert len(PAGES[0].split()) < 700


def test_the_pages_of_the_documentation_stay_short():
  pages = (ROOT / "docs").rglob("*.md")
  assert sum(len(page.read_text("utf-8").split()) for page in pages) <= 30_000


def test_every_command_of_a_script_is_complete():
  assert "`launch/study.sh`" not in "".join(PAGES)  # ends with an error: it needs --archive


@pytest.mark.parametrize("term", ["JGA", "JGA_v1-5", "Diff_rel", "SS_JGA"])
def test_terms_are_defined_where_the_text_first_names_them(term):
  """For readers who know SGD but not this project."""
  text = re.sub(r"```.*?```", "", PAGES[1], flags=re.DOTALL)
  first = re.search(rf"(?<![\w./-]){re.escape(term)}(?![\w-])", text)
  assert re.search(r"\b(are|is|measures|the average|the share)\b", text[first.start() :][:120])
