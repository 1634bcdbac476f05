"""Two commands that write into one folder: the second is refused, and the owner is named."""

import subprocess
import sys

import pytest
import tiny_corpus
from commands import assert_four_parts, sgdx
from places import FIXTURES

HF = FIXTURES / "hf_t5/t5_1_0"
HOLD = """
import contextlib, sys
from sgdx_t5x.files.locks import lock
with contextlib.ExitStack() as stack:
  for path in sys.argv[1:]:
    stack.enter_context(lock(path))
  print("held", flush=True)
  sys.stdin.read()
"""
COMMANDS = {  # command -> its options, and the folder that it locks
  "data prepare": ("--corpus sample --data-dir {out}", "sgd/sample"),
  "data export": ("--corpus {tiny} --variant v3 --out {out}", ""),
  "weights import": (f"--hf {HF} --out {{out}}", "checkpoint_0"),
  "weights export": ("--checkpoint nothing --out {out}", ""),
  "run": ("{tiny}.jsonl --endpoint http://127.0.0.1:9 --model m --out {out}/a.jsonl", "a.jsonl"),
  "report": ("nothing.json --out {out}", ""),
}


@pytest.fixture(scope="module")
def writing(tmp_path_factory):
  """(folder of all outputs, PID of the process that holds their locks)."""
  folder = tmp_path_factory.mktemp("writing")
  tiny_corpus.write_corpus(folder / "tiny")
  (folder / "tiny.jsonl").write_text('{"id": "v1/test/1-000-Banks_1/*", "messages": []}\n')
  paths = [folder / name / below for name, (_, below) in COMMANDS.items()]
  command = [sys.executable, "-c", HOLD, *paths]
  with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
    assert process.stdout.readline() == b"held\n"
    yield folder, process.pid
    process.kill()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_second_is_refused(name, writing, capsys):
  folder, pid = writing
  before = sorted(folder.rglob("*"))
  options = COMMANDS[name][0].split()
  places = {"out": folder / name, "tiny": folder / "tiny"}
  assert sgdx(*name.split(), *(option.format(**places) for option in options)) == 1
  assert_four_parts(capsys.readouterr().err, f"is being written by process {pid} on ")
  assert sorted(folder.rglob("*")) == before
