"""Four-part errors, and missing packages of extras."""

import math
import re
import sys

import pytest
from places import FIXTURES

from sgdx_t5x.errors import SgdxError, first_line, require


def test_a_module_that_is_installed_is_returned():
  assert require("math", extra="train", why="sums") is math


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
  monkeypatch.setitem(sys.modules, "spacy", None)
  with pytest.raises(SgdxError) as e:
    require("spacy", extra="compose", why="lemmatizing descriptions")
  assert e.value.text == (
    "the package spacy is not installed\n"
    "  expected:  spacy, for lemmatizing descriptions\n"
    '  fix:       pip install "sgdx_t5x[compose]"'
  )


def test_the_package_that_a_module_lacks_is_named(monkeypatch, tmp_path):
  (tmp_path / "needs_more.py").write_text("import a_package_that_nobody_has\n")
  monkeypatch.syspath_prepend(tmp_path)
  with pytest.raises(SgdxError) as e:
    require("needs_more", extra="train", why="sums", packages="./t5x_lite")
  assert e.value.found == "the package a_package_that_nobody_has is not installed"
  assert e.value.expected == "needs_more, for sums"
  assert e.value.fix == 'pip install "sgdx_t5x[train]" ./t5x_lite'


def test_a_package_that_breaks_says_why(monkeypatch, tmp_path):
  (tmp_path / "broken.py").write_text("raise ImportError('libmissing.so: no such file\\nmore')\n")
  monkeypatch.syspath_prepend(tmp_path)
  with pytest.raises(SgdxError) as e:
    require("broken", extra="train", why="sums")
  assert e.value.found == "broken cannot be imported: libmissing.so: no such file"


@pytest.mark.parametrize(
  ("module", "args"),
  [
    ("seqio", ("ls", "tasks")),
    ("tensorflow", ("data", "prepare", "--corpus", "sample")),
    ("sentencepiece", ("data", "vocabulary", "--corpus", "sample", "--out", "new.model")),
    ("safetensors", ("weights", "import", "--hf", FIXTURES / "hf_t5/t5_1_0", "--out", "new")),
    ("flax", ("weights", "import", "--hf", FIXTURES / "hf_t5/t5_1_0", "--out", "new")),
  ],
)
def test_commands_name_the_extra_that_they_lack(module, args, monkeypatch, tmp_path, capsys):
  from sgdx_t5x import cli

  monkeypatch.chdir(tmp_path)
  monkeypatch.setitem(sys.modules, module, None)
  assert cli.main([str(arg) for arg in args]) == 1
  error = capsys.readouterr().err
  # Python names a package that is there and None by the module of it that was asked for.
  assert re.search(rf"the package {module}(\.\w+)* is not installed", error)
  assert 'pip install "sgdx_t5x[train]"' in error
  assert "Traceback" not in error
  assert list(tmp_path.iterdir()) == []


def test_the_first_line_of_an_error():
  assert first_line(ValueError("\n one\ntwo")) == "one"
  assert first_line(AssertionError()) == "AssertionError"
