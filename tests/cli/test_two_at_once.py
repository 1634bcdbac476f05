"""Two commands that write into one folder: the second is refused, and the owner is named."""

import pytest
import tiny_corpus
from commands import assert_four_parts, sgdx
from locked import locked
from places import FIXTURES

HF = FIXTURES / "hf_t5/t5_1_0"
COMMANDS = {  # command -> its options, and the folder that it locks
  "data prepare": ("--corpus sample --data-dir {out}", "sgd/sample"),
  "data export": ("--corpus {tiny} --variant v3 --out {out}", ""),
  "weights import": (f"--hf {HF} --out {{out}}", "checkpoint_0"),
  "weights export": ("--checkpoint nothing --out {out}", ""),
  "report": ("nothing.json --out {out}", ""),
}


@pytest.fixture(scope="module")
def writing(tmp_path_factory):
  """(folder of all outputs, PID of the process that holds their locks)."""
  folder = tmp_path_factory.mktemp("writing")
  tiny_corpus.write_corpus(folder / "tiny")
  with locked(*(folder / name / below for name, (_, below) in COMMANDS.items())) as process:
    yield folder, process.pid


@pytest.mark.parametrize("name", COMMANDS)
def test_the_second_is_refused(name, writing, capsys):
  folder, pid = writing
  before = sorted(folder.rglob("*"))
  options = COMMANDS[name][0].split()
  places = {"out": folder / name, "tiny": folder / "tiny"}
  assert sgdx(*name.split(), *(option.format(**places) for option in options)) == 1
  assert_four_parts(capsys.readouterr().err, f"is being written by process {pid} on ")
  assert sorted(folder.rglob("*")) == before
