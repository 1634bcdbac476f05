"""No output of any command overwrites an input, whichever way it is spelled."""

import argparse
import gzip
import itertools
import json
import os

import pytest
import tiny_corpus
from commands import assert_four_parts, sgdx

from sgdx_t5x.cli.commands import make_parser
from sgdx_t5x.cli.paths import add_output, check_paths, named_path, path_of_name
from sgdx_t5x.errors import UsageError

NO_PATHS = """allow_module delivery dialogue dialogues endpoint key_env lengths metric model module
name command openai_batch param patterns pivots review service source split target words"""
CONTENT = b'{"precious": true}\n'
# What a command needs besides the two options that a test is about.
NEEDED = {
  "score": ("--corpus", "sample", "--predictions", "v1=nothing"),
  "diff": ("nothing", "nothing"),
  "prompts": ("--corpus", "sample", "--variant", "v3", "--out", "-"),
  "report": ("nothing", "--out", "new"),
  "compose": ("--corpus", "sample", "--paraphrases", "nothing", "--out", "new"),
  "track": ("nothing", "--corpus", "sample", "--out", "new"),
  "data prepare": (),
  "data export": ("--corpus", "sample", "--variant", "v3", "--out", "new"),
  "data vocabulary": ("--corpus", "sample", "--out", "new"),
  "data demos import": ("--from", "nothing", "--out", "new"),
  "data demos make": ("--corpus", "sample", "--out", "new"),
  "weights import": ("--hf", "nothing", "--out", "new"),
  "weights export": ("--checkpoint", "nothing", "--out", "new"),
  "weights pack": ("nothing", "--out", "new"),
  # Of annexes, which need not be there:
  "backtranslate": ("--corpus", "sample", "--provider", "table", "--out", "new"),
  "checkdst perturb": ("ned", "--corpus", "sample", "--out", "new"),
  "checkdst check": (
    *("--corpus", "sample", "--perturbed", "x=nothing"),
    *("--predictions", "original=nothing"),
  ),
  "checkdst diff": ("nothing", "nothing"),
  "coco perturb": ("--corpus", "sample", "--slots", "freq", "--out", "new"),
  "schema-embeddings": ("--encoder", "nothing", "--corpus", "sample", "--out", "new.npz"),
  "simulate": ("--out", "new"),
  "tools check": ("nothing", "--model", "m"),
  "tools export": ("--corpus", "sample", "--variant", "v3", "--out", "new"),
  "tools frozen": ("--corpus", "sample", "--out", "new"),
  "tools import": ("nothing", "--out", "new"),
  "tools requests": ("--corpus", "sample", "--variant", "v3", "--out", "-"),
  "tools reword": ("nothing", "--init", "new"),
  "tools run": ("nothing", "--endpoint", "http://127.0.0.1:1/v1", "--model", "m", "--out", "new"),
  "tools score": ("--corpus", "sample", "--predictions", "v1=nothing"),
}


def commands(parser: argparse.ArgumentParser, name: str = ""):
  """Yields (name, parser) for every command without subcommands."""
  below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
  for action in below:
    for verb, verbs_parser in action.choices.items():
      yield from commands(verbs_parser, f"{name} {verb}".strip())
  if not below:
    yield name, parser


COMMANDS = dict(commands(make_parser()))


def pairs():
  """Yields (command, input, output) for every pair of options that a command can combine."""
  for name, parser in COMMANDS.items():
    inputs = [a for a in parser._actions if hasattr(a, "input_path") and a.dest != "prompt_style"]
    outputs = [a for a in parser._actions if hasattr(a, "output")]
    for one, other in itertools.product(inputs, outputs):
      if any({one, other} <= {*g._group_actions} for g in parser._mutually_exclusive_groups):
        continue
      label = one.option_strings[0] if one.option_strings else one.dest
      yield pytest.param(name, one, other, id=f"{name} {label} {other.option_strings[0]}")


def test_every_option_says_whether_it_takes_a_path():
  """A new option is added with `add_input` or `add_output`, or is one of `NO_PATHS`."""
  for name, parser in COMMANDS.items():
    for action in parser._actions:
      is_text = action.nargs != 0 and action.type is None and action.choices is None
      if is_text and action.dest not in NO_PATHS.split():
        assert hasattr(action, "input_path") or hasattr(action, "output"), f"{name} {action.dest}"
  assert set(NEEDED) & set(COMMANDS) == {param.values[0] for param in pairs()}


def arguments(name, given, output, path):
  """A command line that reads `path`; it ends with the output option, still without its value."""
  value = f"v1={path}" if given.input_path in (path_of_name, named_path) else path
  line, needed = [*name.split()], list(NEEDED[name])
  for group in COMMANDS[name]._mutually_exclusive_groups:
    others = {o for a in group._group_actions for o in a.option_strings}
    if output in group._group_actions and (other := others & {*needed}):
      at = needed.index(other.pop())  # compose writes --init instead of reading --paraphrases
      del needed[at : at + 2]
  if not given.option_strings:  # a positional argument; diff has two
    position = ["a", "b"].index(given.dest) if name.endswith("diff") else 0
    needed[position] = path
  elif given.dest == "corpus" and "--corpus" in needed:
    needed[needed.index("--corpus") + 1] = value
  else:
    needed += [given.option_strings[0], value]
  return [*line, *needed, output.option_strings[0]]


@pytest.mark.parametrize(("name", "given", "output"), list(pairs()))
def test_no_output_overwrites_an_input(name, given, output, tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "precious").write_bytes(CONTENT)
  (tmp_path / "symbolic").symlink_to("precious")
  os.link(tmp_path / "precious", tmp_path / "hard")
  (tmp_path / "folder").mkdir()
  (tmp_path / "folder/up").symlink_to("..")
  for path in ("precious", "symbolic", "hard", "folder/up/precious"):
    assert sgdx(*arguments(name, given, output, "precious"), path) == 2, path
    error = capsys.readouterr().err
    assert_four_parts(error, f"{output.option_strings[0]} '", "is also an input")
    assert (tmp_path / "precious").read_bytes() == CONTENT
  assert sgdx(*arguments(name, given, output, "hard"), "precious") == 2
  found = sorted(path.name for path in tmp_path.iterdir())
  assert found == ["folder", "hard", "precious", "symbolic"]


# --- files that no option names ------------------------------------------------------------


@pytest.fixture
def corpus(tmp_path):
  return tiny_corpus.write_corpus(tmp_path / "tiny")


@pytest.fixture
def predictions(tmp_path):
  rows = tiny_corpus.example_rows(tiny_corpus.GOLD, "original")
  return tiny_corpus.write_rows(tmp_path / "eval/predictions.jsonl", rows)


@pytest.mark.parametrize("option", ["--json", "--per-frame"])
def test_predictions_found_in_a_folder(option, corpus, predictions, tmp_path, capsys):
  before = predictions.read_bytes()
  (tmp_path / "link.jsonl").symlink_to(predictions)
  for out in (predictions, tmp_path / "link.jsonl"):
    command = ("score", "--corpus", corpus, "--predictions", f"original={predictions.parent}")
    assert sgdx(*command, option, out) == 2
    assert_four_parts(capsys.readouterr().err, option, "is also an input")
  assert predictions.read_bytes() == before
  assert [file.name for file in predictions.parent.iterdir()] == [predictions.name]


def test_every_file_below_a_folder_that_is_an_input(corpus, predictions, tmp_path, capsys):
  variants = tmp_path / "variants"
  (variants / "v1").mkdir(parents=True)
  corpus_as_predictions = ("score", "--corpus", corpus, "--predictions", f"original={corpus}/test")
  of_variants = ("score", "--corpus", corpus, "--predictions", variants)
  for command, out in (
    (of_variants, variants / "v1.json"),
    (of_variants, variants / "v1/answers.jsonl"),
    (corpus_as_predictions, corpus / "test/simulation.json"),
  ):
    out.write_bytes(CONTENT)
    assert sgdx(*command, "--json", out) == 2
    assert_four_parts(capsys.readouterr().err, "--json", "is also an input")
    assert out.read_bytes() == CONTENT


def test_scores_beside_inputs_are_written_again(corpus, predictions):
  folder = predictions.parent
  for name in ("scores.json", "scores.json.gz"):
    command = ("score", "--corpus", corpus, "--predictions", f"original={folder}")
    assert [sgdx(*command, "--json", folder / name) for _ in range(2)] == [0, 0]
  assert json.loads((folder / "scores.json").read_text())["sgdx"]


def test_the_scores_per_frame_of_a_report(corpus, predictions, tmp_path, capsys):
  """`sgdx diff` reads them although no option names them."""
  scores, frames = tmp_path / "a.json", tmp_path / "a.frames.jsonl"
  command = ("score", "--corpus", corpus, "--predictions", f"original={predictions}")
  assert sgdx(*command, "--json", scores, "--per-frame", frames) == 0
  packed = tmp_path / "a.scores"  # whatever its name, it is read
  packed.write_bytes(gzip.compress(scores.read_bytes()))
  before = frames.read_bytes()
  for option, name in itertools.product(("--flips", "--json"), (scores, packed)):
    assert sgdx("diff", name, name, option, frames) == 2
    assert_four_parts(capsys.readouterr().err, option, "is also an input")
  assert frames.read_bytes() == before


def test_files_of_a_corpus_and_of_a_variants_folder(corpus, tmp_path, capsys):
  files = sorted(corpus.rglob("*.json"))
  before = [file.read_bytes() for file in files]
  mine = corpus / "sgd_x/data/v3"
  (tmp_path / "linked").mkdir()
  (tmp_path / "linked/test").symlink_to(corpus / "test")  # followed when it is read, too
  command = ("prompts", "--corpus", tmp_path / "linked", "--variant", f"mine={mine}", "--out")
  for out in (corpus / "test/dialogues_001.json", mine / "test/schema.json"):
    assert sgdx(*command, out) == 2
    assert_four_parts(capsys.readouterr().err, "--out", "is also an input")
  (tmp_path / "out/v3").mkdir(parents=True)
  (tmp_path / "out/v3/test").symlink_to(corpus / "test")
  command = ("data", "export", "--corpus", corpus, "--variant", "v3")
  assert sgdx(*command, "--out", tmp_path / "out") == 2
  assert_four_parts(capsys.readouterr().err, "--out", "is also an input")
  assert [file.read_bytes() for file in files] == before


def test_words_that_are_no_paths_protect_nothing(tmp_path, monkeypatch):
  """The corpus is the word sample, v3 a variant; the second export replaces the first."""
  monkeypatch.chdir(tmp_path)
  for out in ("sample", "v3"):
    for _ in range(2):
      assert sgdx("data", "export", "--corpus", "sample", "--variant", "v3", "--out", out) == 0


def test_two_folders_that_are_one(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  parser = argparse.ArgumentParser()
  for option in ("--out", "--more"):
    add_output(parser, option, folder=True)
  parser.set_defaults(parser=parser)
  check_paths(parser.parse_args(["--out", "a", "--more", "a/b"]))
  with pytest.raises(UsageError, match=r"'\./a' is also the folder of --out"):
    check_paths(parser.parse_args(["--out", "a", "--more", "./a"]))
