"""`sgdx simulate` from end to end: the page of the documentation, files, seeds, what is refused."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest
from boats import files, write_files
from commands import assert_four_parts, sgdx, sgdx_process
from places import DOCS

from sgdx_t5x.cli import main
from sgdx_t5x.corpus.dialogue import read_dialogues
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.papers.simulator import write

PAGE = DOCS / "papers/simulator.md"


@pytest.fixture
def here(tmp_path, monkeypatch):
  """A working folder with the files of `boats`."""
  write_files(tmp_path, files())
  monkeypatch.chdir(tmp_path)
  return tmp_path


def arguments(number=30, **options):
  given = {"schema": "schema.json", "tables": "tables", "scenarios": "scenarios.json",
           "num_dialogues": number, "out": "mine", **options}  # fmt: skip
  pairs = [(f"--{name.replace('_', '-')}", str(value)) for name, value in given.items()]
  return ["simulate", *(part for pair in pairs for part in pair)]


def contents(folder):
  return {p.name: p.read_bytes() for p in sorted(pathlib.Path(folder).iterdir())}


# --- the page of the documentation -------------------------------------------------------------


@pytest.fixture(scope="module")
def blocks():
  """Maps each language to its code blocks in docs/papers/simulator.md."""
  found = {}
  for language, text in re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(), re.DOTALL):
    found.setdefault(language, []).append(text)
  return found


@pytest.fixture(scope="module")
def followed(blocks, tmp_path_factory):
  """A folder where all commands of the page were run, and their output."""
  folder = tmp_path_factory.mktemp("page")
  (folder / "schema.json").write_text(blocks["json"][0])
  command = folder / "bin/sgdx"
  command.parent.mkdir()
  command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sgdx_t5x.cli "$@"\n')
  command.chmod(0o755)
  environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"}
  environment.pop("COLUMNS", None)
  printed = []
  for block in blocks["sh"]:
    found = subprocess.run(
      ["bash", "-e", "-c", block], cwd=folder, env=environment, capture_output=True, text=True,
      check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert found.stderr == ""
    printed.append(found.stdout)
  return folder, printed


def test_the_page_leads_from_a_schema_to_a_corpus(followed):
  folder, printed = followed
  corpus = open_corpus(str(folder / "mine"))
  assert corpus.splits == ("train", "dev", "test")
  assert [len(list(corpus.dialogues(s))) for s in corpus.splits] == [300, 50, 50]
  assert len(printed) == 3  # tables, dialogues, checks
  assert "2 tables, scenarios.json, templates.json" in printed[0]
  assert "mine/test: 50 dialogues" in printed[1]
  verified = printed[2]
  assert re.search(r"annotation errors: none \(\d+ rules", verified)
  remarks = re.search(r"annotation warnings: none|result-free: .*", verified)
  assert remarks
  assert verified.count(": a result has the call's values") <= 1
  assert "SGD paper" in verified  # data stats
  assert all(len(line) <= 80 for text in printed[:2] for line in text.splitlines())


def test_commands_say_what_comes_next(followed):
  folder, (made, simulated, _) = followed
  command = made.partition("next: review them, then run\n")[2].partition("written: start-test:")[0]
  words = command.replace("\\\n", " ").split()
  assert words[0] == "sgdx"
  found = sgdx_process(*words[1:-1], "again", cwd=folder)
  assert found.returncode == 0, found.stderr
  following = simulated.splitlines()[-1].removeprefix("next: ").split()
  assert following[0] == "sgdx"
  found = sgdx_process(*following[1:], cwd=folder)
  assert found.returncode == 0, found.stderr


def test_the_pages_scenarios_and_templates(followed, blocks, monkeypatch, capsys):
  folder, _ = followed
  monkeypatch.chdir(folder)
  for name, text in zip(("scenarios", "templates"), blocks["json"][1:], strict=True):
    (folder / f"my_{name}.json").write_text(text)
  given = arguments(
    200, tables="start/tables", scenarios="my_scenarios.json", templates="my_templates.json",
    out="own",
  )  # fmt: skip
  assert main(given) == 0
  assert main(["data", "verify", "--corpus", "own"]) == 0
  assert "annotation errors: none" in capsys.readouterr().out
  text = (folder / "own/train/dialogues_001.json").read_text()
  for phrase in ("I need a boat", "to that town", "near ", "without a cabin"):
    assert phrase in text
  dialogues = list(read_dialogues(text, "own"))
  assert {d.services for d in dialogues} == {("Boats_1",), ("Boats_1", "Trams_1")}


# --- files and seeds ---------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bytes(here, monkeypatch):
  monkeypatch.setattr(write, "DIALOGUES_PER_FILE", 40)
  assert main(arguments(100, seed=7)) == 0
  one = contents("mine/train")
  assert list(one) == [
    "dialogues_001.json", "dialogues_002.json", "dialogues_003.json", "schema.json",
    "simulation.json",
  ]  # fmt: skip
  parts = [list(read_dialogues(one[name], name)) for name in list(one)[:3]]
  assert [len(part) for part in parts] == [40, 40, 20]
  ids = [dialogue.dialogue_id for part in parts for dialogue in part]
  assert ids == [f"1_{n:05d}" for n in range(100)]
  assert main(arguments(100, seed=7, out="again")) == 0
  assert contents("again/train") == one
  assert main(arguments(100, seed=8, out="other")) == 0
  other = contents("other/train")
  assert all(other[name] != one[name] for name in list(one)[:3])
  assert other["schema.json"] == one["schema.json"]
  assert main(arguments(60, seed=7, out="fewer")) == 0
  fewer = contents("fewer/train")
  assert fewer["dialogues_001.json"] == one["dialogues_001.json"]
  found = list(read_dialogues(fewer["dialogues_002.json"], "fewer"))
  assert found == parts[1][:20]


def test_splits_lie_side_by_side_and_are_not_overwritten(here, capsys):
  assert main(arguments(5)) == 0
  assert main(arguments(5, split="dev", seed=2)) == 0
  before = contents("mine/train")
  assert main(arguments(6)) == 1
  error = capsys.readouterr().err
  assert "--out mine/train already exists and is not empty" in error
  assert "fix:" in error
  assert contents("mine/train") == before
  assert sorted(p.name for p in pathlib.Path("mine").iterdir()) == ["dev", "train"]


def test_a_split_has_its_schema_and_how_it_was_made(here):
  assert main(arguments(1, seed=5)) == 0
  schema, origin = (
    json.loads(pathlib.Path(f"mine/train/{name}.json").read_text())
    for name in ("schema", "simulation")
  )
  assert schema == files()["schema.json"]
  assert (origin["seed"], origin["num_dialogues"]) == ("5", 1)


# --- what is refused ---------------------------------------------------------------------------


def test_what_is_wrong_is_printed_and_nothing_written(here, capsys):
  write_files(here, {"scenarios.json": {"scenarios": [{"intents": ["Boats_1.FindBaot"]}]}})
  assert main(arguments()) == 1
  assert_four_parts(capsys.readouterr().err, "unknown intent", "nearest: FindBoat")
  assert not pathlib.Path("mine").exists()


@pytest.mark.parametrize(
  ("given", "words"),
  [
    (["--out", "mine"], "no --schema, --tables, --scenarios, --num-dialogues"),
    (["--init", "schema.json", "--tables", "tables", "--out", "mine"], "--init together with"),
    (["--init", "schema.json", "--templates", "t.json", "--out", "mine"], "--templates"),
    (arguments(0)[1:], "--num-dialogues 0"),
    (arguments(split="validation")[1:], "invalid choice"),
    (arguments(seed="one")[1:], "invalid int"),
    (["--init", "schema.json"], "--out"),
  ],
)
def test_wrong_usage_is_exit_code_2(here, capsys, given, words):
  assert sgdx("simulate", *given) == 2
  assert words in capsys.readouterr().err
  assert not pathlib.Path("mine").exists()


@pytest.mark.parametrize(
  ("options", "words", "code"),
  [
    ({"tables": "nowhere"}, "no file at nowhere/Boats_1.csv", 1),
    ({"templates": "nowhere.json"}, "no file at nowhere.json", 1),
    ({"out": "tables/Boats_1.csv"}, "tables/Boats_1.csv", 2),
    ({"out": "schema.json/below"}, "schema.json", 1),
  ],
)
def test_files_that_are_not_there(here, capsys, options, words, code):
  assert main(arguments(**options)) == code
  error = capsys.readouterr().err
  assert words in error
  assert "fix:" in error
  assert sorted(p.name for p in here.iterdir()) == [
    "scenarios.json", "schema.json", "tables", "templates.json",
  ]  # fmt: skip


def test_init_of_a_misspelt_schema(here, capsys):
  """Regression: the error described it as a file that can be read or written."""
  pathlib.Path("schema.json").write_text("[]")
  assert main(["simulate", "--init", "schema.jsn", "--out", "start"]) == 1
  error = capsys.readouterr().err
  assert error.startswith("sgdx: no file at schema.jsn\n  expected:  a schema in SGD's format\n")
  assert "nearest: schema.json" in error


def test_init_of_a_schema_without_intents_writes_nothing(here, capsys):
  write_files(here, {"idle.json": [{**files()["schema.json"][0], "intents": []}]})
  assert main(["simulate", "--init", "idle.json", "--out", "start"]) == 1
  assert "service Boats_1: no intents" in capsys.readouterr().err
  assert not pathlib.Path("start").exists()


def test_an_interrupted_run_leaves_nothing(here):
  given = arguments(100_000, out="deep/mine")
  command = [sys.executable, "-m", "sgdx_t5x.cli", *given]
  with subprocess.Popen(command, cwd=here, stderr=subprocess.PIPE, text=True) as process:
    while not list(here.glob("deep/mine/.train*/train/dialogues_002*")):
      assert process.poll() is None
      time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
  assert process.returncode == 130
  assert error == "sgdx: interrupted; no partial output is left\n"
  assert not (here / "deep").exists()


def test_help_has_examples_and_fits_the_page(here):
  found = sgdx_process("simulate", "--help", env={**os.environ, "COLUMNS": "80"})
  assert found.returncode == 0
  examples = re.findall(r"--[a-z-]+", found.stdout.partition("examples:")[2])
  usage = found.stdout.partition("examples:")[0]
  assert set(examples) - {"--corpus"} <= set(re.findall(r"--[a-z-]+", usage))


# --- real SGD ----------------------------------------------------------------------------------


@pytest.mark.real
def test_dialogues_for_sgds_own_schema(real_archive, tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  schema = open_corpus(str(real_archive)).schema("train")
  write_files(tmp_path, {"schema.json": schema.to_json()})
  assert main(["simulate", "--init", "schema.json", "--out", "start"]) == 0
  given = arguments(300, tables="start/tables", scenarios="start/scenarios.json",
                    templates="start/templates.json", seed=1)  # fmt: skip
  assert main(given) == 0
  assert main(["data", "verify", "--corpus", "mine"]) == 0
  assert "annotation errors: none" in capsys.readouterr().out
  assert main(["data", "stats", "--corpus", "mine", "--format", "json"]) == 0
  found = json.loads(capsys.readouterr().out)["splits"]["train"]
  services = {s for d in open_corpus("mine").dialogues("train") for s in d.services}
  assert services == set(schema.names)
  # SGD's dialogues of one service have 15.3 turns and 3.4 active slots per frame.
  assert 10 < found["turns_per_dialogue"] < 30
  assert 2 < found["active_slots_per_frame"] < 5
  # Shares of acts in SGD's train split, in percent; ours are within a factor of 2.
  for speaker, shares in (
    ("user", {"AFFIRM": 7.4, "INFORM": 33.7, "INFORM_INTENT": 14.2, "NEGATE": 4.6,
              "REQUEST": 11.5, "REQUEST_ALTS": 4.2, "SELECT": 9.0, "THANK_YOU": 8.5}),
    ("system", {"CONFIRM": 24.9, "GOODBYE": 4.8, "INFORM": 9.8, "INFORM_COUNT": 4.3,
                "NOTIFY_SUCCESS": 5.0, "OFFER": 30.2, "OFFER_INTENT": 2.9, "REQUEST": 13.8}),
  ):  # fmt: skip
    actions = found["acts"][speaker]["actions"]
    for act, share in shares.items():
      assert 0.5 < 100 * actions[act] / sum(actions.values()) / share < 2, act
