"""Ctrl-C, SIGTERM and SIGKILL: exit codes, nothing partial, nothing left for ever."""

import concurrent.futures
import contextlib
import os
import pathlib
import signal
import subprocess
import sys

import pytest
import tiny_corpus
from commands import python_code, sgdx

import sgdx_t5x
from sgdx_t5x.cli import interrupts
from sgdx_t5x.cli.interrupts import Terminated, termination_raises
from sgdx_t5x.files.writing import atomic_write, check_folder, list_files

SIGNALS = [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]


@pytest.mark.parametrize(("number", "code", "word"), SIGNALS)
def test_a_signal_ends_a_command_that_is_writing(number, code, word, tmp_path, monkeypatch, capsys):
  """The signal comes when the first prompts are in the temporary file."""
  from sgdx_t5x.prompts import rows

  def send(*args, **kwargs):
    assert any(path.suffix == ".tmp" for path in tmp_path.iterdir())
    os.kill(os.getpid(), number)
    return real(*args, **kwargs)

  real = rows.dialogue_rows
  monkeypatch.setattr(rows, "dialogue_rows", send)
  corpus = tiny_corpus.write_corpus(tmp_path / "tiny")
  before = {number: signal.getsignal(number) for number, _, _ in SIGNALS}
  command = ("prompts", "--corpus", corpus, "--variant", "v3", "--out", tmp_path / "p.jsonl")
  assert sgdx(*command) == code
  assert capsys.readouterr().err == f"sgdx: {word}; no partial output is left\n"
  assert [path.name for path in tmp_path.iterdir()] == ["tiny"]
  assert {number: signal.getsignal(number) for number in before} == before


# Sends a signal when the module argv[1], which is imported late, is looked up.
SIGNAL_DURING_IMPORTS = """
import os, sys
class Finder:
  def find_spec(name, path=None, target=None):
    if name == sys.argv[1]:
      os.kill(os.getpid(), int(sys.argv[2]))
sys.meta_path.insert(0, Finder)
from sgdx_t5x.cli import main
sys.exit(main(["--help"]))
"""


@pytest.mark.parametrize(("number", "code", "word"), SIGNALS)
def test_a_signal_while_modules_are_imported(number, code, word):
  found = python_code(SIGNAL_DURING_IMPORTS, "sgdx_t5x.cli.score", int(number))
  assert found.returncode == code
  assert found.stderr == f"sgdx: {word}; no partial output is left\n"


def test_nothing_else_of_the_library_is_imported_before_an_interrupt_is_handled():
  """Else Ctrl-C gives a traceback."""
  root = pathlib.Path(sgdx_t5x.__file__).parents[1]
  code = "import sys; sys.path.insert(0, sys.argv[1]); "
  code += "import sgdx_t5x.cli; print(*sorted(m for m in sys.modules if m.startswith('sgdx')))"
  command = [sys.executable, "-I", "-S", "-c", code, root]
  found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
  assert found == ["sgdx_t5x", "sgdx_t5x.cli", "sgdx_t5x.cli.interrupts"]


def test_a_second_signal_does_not_stop_the_cleanup():
  cleaned = []

  def work():
    try:
      os.kill(os.getpid(), signal.SIGTERM)
    finally:
      os.kill(os.getpid(), signal.SIGTERM)
      cleaned.append("all")

  with pytest.raises(Terminated), termination_raises():
    work()
  assert cleaned == ["all"]


def test_a_signal_that_was_swallowed_can_be_sent_again(monkeypatch):
  """Seen once: SIGTERM during a compilation of JAX, after which nothing but SIGKILL helped."""
  monkeypatch.setattr(interrupts, "_CLEANUP_SECONDS", 0.0)

  def work():
    with contextlib.suppress(Terminated):
      os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)

  with pytest.raises(Terminated), termination_raises():
    work()


def test_another_thread_changes_no_handlers():
  before = {number: signal.getsignal(number) for number, _, _ in SIGNALS}

  def work():
    with termination_raises():
      assert {number: signal.getsignal(number) for number in before} == before

  with concurrent.futures.ThreadPoolExecutor() as pool:
    pool.submit(work).result()


def test_an_ignored_interrupt_stays_ignored():
  """A shell's background job must survive a Ctrl-C meant for the foreground."""
  before = signal.signal(signal.SIGINT, signal.SIG_IGN)
  try:
    with termination_raises():
      os.kill(os.getpid(), signal.SIGINT)
  finally:
    signal.signal(signal.SIGINT, before)


# --- what a killed process leaves ----------------------------------------------------------


def test_what_a_killed_process_leaves_is_hidden_and_in_nobodys_way(tmp_path):
  code = "import os, sys; from sgdx_t5x.files.writing import atomic_write\n"
  code += "with atomic_write(sys.argv[1], '--out') as file: os.kill(os.getpid(), 9)"
  assert python_code(code, tmp_path / "a").returncode == -signal.SIGKILL
  (left,) = tmp_path.iterdir()
  assert left.name.startswith(".a.")
  with atomic_write(tmp_path / "a", "--out") as file:
    file.write("whole")
  assert list_files(tmp_path) == ["a"]
  assert check_folder(tmp_path / "new") == tmp_path / "new"
