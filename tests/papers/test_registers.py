"""The tables of annexes, see `sgdx_t5x/annexes.py`: what they name exists."""

import ast
import importlib
import re
import shlex

import pytest
from gin_cases import parse
from places import ROOT

from sgdx_t5x import annexes
from sgdx_t5x.cli.data.prepare import _next

REFERENCES = [
  pytest.param(reference, id=f"{table} {name}")
  for table in ("COMMANDS", "FORMATS", "TRACKERS", "SCORE_TABLES", "REPORT_SECTIONS")
  for name, reference in annexes.table(table).items()
]
NAMES = [f"{prefix}{name}" for name in annexes.table("RECORDS") for prefix in ("", "sample_")]


@pytest.mark.parametrize("reference", REFERENCES)
def test_what_a_table_refers_to_can_be_imported(reference):
  assert annexes.load(reference)


@pytest.mark.parametrize("name", NAMES)
def test_a_next_command_names_a_gin_file_and_a_task_that_there_are(name):
  seqio = pytest.importorskip("seqio")
  command = _next(name, "d")
  file = re.search(r"--gin_file=(\S+)", command)[1]
  assert command.startswith(("next: python ", "next: SGDX_CORPUS=FILE python ")), command
  assert ("SGDX_CORPUS" in command) == (name == "sim")  # its tasks read the corpus, too
  assert ("/sample/" in file) == name.startswith("sample_")
  assert (ROOT / file).is_file()
  if task := re.search(r"TASK_NAME=\W+(\w+)", command):
    importlib.import_module(re.search(r"TASK_MODULE=\W+([\w.]+)", command)[1])
    assert task[1] in {*seqio.TaskRegistry.names(), *seqio.MixtureRegistry.names()}


@pytest.fixture(scope="module")
def parsed():
  """What `t5x` makes of the gin file and the flags of each next command."""
  cases = {}
  for name in NAMES:
    words = shlex.split(_next(name, "d").replace("\\\n", " "))
    [file] = [word.removeprefix("--gin_file=") for word in words if word.startswith("--gin_file=")]
    cases[name] = ([file], [word for word in words if word.startswith("--gin.")])
  return parse(cases)


@pytest.mark.parametrize("name", NAMES)
def test_a_next_command_parses(parsed, name):
  assert isinstance(parsed[name], dict), parsed[name]


def test_no_string_of_the_core_names_an_annex_module_or_command():
  commands = "|".join(annexes.table("COMMANDS"))
  named = re.compile(rf"sgdx_t5x\.(papers|tools)\.|sgdx ({commands})\b")
  naming = []
  for room in ("sgdx_t5x", "tasks", "metrics"):
    for file in (ROOT / room).rglob("*.py"):
      if file.relative_to(ROOT).parts[:2] not in (("sgdx_t5x", "papers"), ("sgdx_t5x", "tools")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
          if isinstance(node, ast.Constant) and named.search(str(node.value)):
            naming.append(f"{file}: {node.value!r}")
  assert naming == []
