"""The tables of annexes, see `sgdx_t5x/annexes.py`: what they name exists."""

import importlib
import re

import pytest
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
  text = (ROOT / file).read_text("utf-8")
  if task := re.search(r"TASK_NAME=\W+(\w+)", command):
    for module in re.findall(r"^import (sgdx_t5x\S*)$", text, re.MULTILINE):
      importlib.import_module(module)
    assert task[1] in seqio.TaskRegistry.names()
