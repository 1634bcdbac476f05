"""`sgdx weights`: what is printed, what is refused, and that nothing half-written is left."""

import json
import shutil

import pytest
from commands import python_code
from places import FIXTURES

from sgdx_t5x.cli import main

DATA = FIXTURES / "hf_t5"


def tree(folder):
  return {str(p.relative_to(folder)): p.stat().st_size for p in folder.rglob("*") if p.is_file()}


def test_import_says_what_the_checkpoint_needs(tmp_path, capsys):
  arguments = ["weights", "import", "--hf", str(DATA / "t5_1_0"), "--out", str(tmp_path)]
  assert main(arguments) == 0
  out, err = capsys.readouterr()
  assert not err
  for words in (
    "T5 1.0: 1 + 2 layers of width 16, 3 heads of 8",
    "11,360 in 39 arrays",
    f"{tmp_path}/checkpoint_0",
    "\n  logits_via_embedding = True",
    "--gin.TRAIN_STEPS=50_000",
    f"--gin.INITIAL_CHECKPOINT_PATH=\"'{tmp_path}/checkpoint_0'\"",
  ):
    assert words in out


def test_published_sizes_name_their_gin_file(tmp_path, capsys):
  """A T5 1.0 of Small's sizes would be 240 MB: testing the function that prints is enough."""
  import dataclasses

  from sgdx_t5x.cli.weights import _print_next
  from sgdx_t5x.weights import gin_files

  small = gin_files.MODELS["gin/models/t5_1_1_small.gin"]
  _print_next(small, "/c/checkpoint_0", str(tmp_path))
  plain = capsys.readouterr().out
  assert "--gin_file=gin/models/t5_1_1_small.gin" in plain
  assert "vocab_size" not in plain
  (tmp_path / "my t5").mkdir()
  (tmp_path / "my t5/spiece.model").write_bytes(b"")
  _print_next(
    dataclasses.replace(small, vocab_size=250_112), "/c/checkpoint_0", str(tmp_path / "my t5")
  )
  other = capsys.readouterr().out
  assert "--gin.network.T5Config.vocab_size=250112" in other
  assert f"SGDX_VOCAB='{tmp_path}/my t5/spiece.model'" in other
  _print_next(gin_files.MODELS[""], "/c/checkpoint_0", str(tmp_path))
  assert "gin/t5dst.gin alone" in capsys.readouterr().out


def test_export_and_overwriting(tmp_path, capsys):
  checkpoints, folder = tmp_path / "t5x", tmp_path / "hf"
  importing = ["weights", "import", "--hf", str(DATA / "t5_1_1"), "--out", str(checkpoints)]
  assert main(importing) == 0
  before = tree(checkpoints)
  assert main(importing) == 1
  assert "--overwrite" in capsys.readouterr().err
  vocabulary = tmp_path / "v.model"
  vocabulary.write_bytes(b"pieces")
  exporting = ["weights", "export", "--checkpoint", str(checkpoints / "checkpoint_0")]
  exporting += ["--out", str(folder)]
  assert main([*exporting, "--vocab", str(vocabulary)]) == 0
  out, err = capsys.readouterr()
  assert not err
  assert "13,536 in 43 arrays" in out
  assert (folder / "spiece.model").read_bytes() == b"pieces"
  assert json.loads((folder / "generation_config.json").read_text())["eos_token_id"] == 1
  # Neither is replaced without --overwrite; with it, old outputs are, but no other files.
  assert main(exporting) == 1
  assert main([*exporting, "--overwrite"]) == 0
  assert not (folder / "spiece.model").exists()
  (folder / "thesis.tex").write_text("years of work")
  assert main([*exporting, "--overwrite"]) == 1
  assert "thesis.tex" in capsys.readouterr().err
  assert main([*importing, "--overwrite"]) == 0
  assert tree(checkpoints).keys() >= {k for k in before if "/d/" not in k}
  assert sorted(p.name for p in tmp_path.iterdir()) == ["hf", "t5x", "v.model"]
  assert [p.name for p in checkpoints.iterdir()] == ["checkpoint_0"]


def test_a_fault_leaves_nothing_and_loses_nothing(tmp_path, capsys):
  broken, out = tmp_path / "hf", tmp_path / "new" / "out"
  shutil.copytree(DATA / "t5_1_1", broken)
  arguments = ["weights", "import", "--hf", str(broken), "--out", str(out)]
  assert main(arguments) == 0
  before = tree(out)
  (broken / "model.safetensors").write_bytes(b"")
  capsys.readouterr()
  assert main([*arguments, "--overwrite"]) == 1
  error = capsys.readouterr().err
  assert error.startswith("sgdx: ")
  assert "Traceback" not in error
  assert tree(out) == before
  assert main([*arguments[:-1], str(tmp_path / "a" / "b")]) == 1
  assert not (tmp_path / "a").exists()


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch, capsys):
  from sgdx_t5x.weights import t5x_checkpoint

  def full(folder, tree):
    folder.mkdir()
    raise OSError(28, "No space left on device")

  monkeypatch.setattr(t5x_checkpoint, "_save_orbax", full)
  arguments = ["weights", "import", "--hf", str(DATA / "t5_1_1"), "--out", str(tmp_path / "a/b")]
  assert main(arguments) == 1
  assert "No space left on device" in capsys.readouterr().err
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
  ("arguments", "words"),
  [
    (["import", "--hf", "{data}/t5_1_0", "--out", "gs://bucket/x"], ("gs://bucket/x", "copy")),
    (
      ["import", "--hf", "{data}/t5_1_0", "--out", "{data}/make.py"],
      ("make.py is a file", "name another folder"),
    ),
    (
      ["export", "--checkpoint", "{data}", "--out", "{tmp}/x"],
      ("no complete T5X checkpoint", "_N"),
    ),
    (["export", "--checkpoint", "{tmp}", "--out", "{tmp}/x", "--vocab", "{tmp}/v"], ("vocab.txt",)),
    (["export", "--checkpoint", "{tmp}", "--out", "{tmp}/x", "--vocab", "{data}"], ("a folder",)),
    (["export", "--checkpoint", "{tmp}/checkpoint_1", "--out", "{tmp}/x"], ("no such folder",)),
  ],
)
def test_wrong_paths(tmp_path, capsys, arguments, words):
  filled = [a.replace("{data}", str(DATA)).replace("{tmp}", str(tmp_path)) for a in arguments]
  assert main(["weights", *filled]) == 1
  error = capsys.readouterr().err
  for word in (*words, "expected:", "fix:"):
    assert word in error


def test_help_needs_neither_jax_nor_safetensors():
  code = "import sys; from sgdx_t5x.cli import main; main(['weights']); "
  code += "sys.exit(bool({'jax', 'tensorflow', 'safetensors', 'numpy'} & set(sys.modules)))"
  found = python_code(code)
  assert found.returncode == 0, found.stderr
  assert "examples:" in found.stdout
