"""Streams that are closed or cannot encode a name, and links that lead nowhere."""

import io
import os
import sys

import pytest
import tiny_corpus
from commands import assert_four_parts, sgdx


@pytest.mark.parametrize("closed", [("stdin",), ("stdout",), ("stderr",), ("stdout", "stderr")])
def test_closed_streams(closed, tmp_path, monkeypatch):
  """As after <&-, >&- and 2>&-: Python then has None for them."""
  corpus = tiny_corpus.write_corpus(tmp_path / "tiny")
  for name in closed:
    monkeypatch.setattr(sys, name, None)
  try:
    assert sgdx("data", "stats", "--corpus", corpus) == 0
    assert sgdx("data", "stats", "--corpus", tmp_path / "none") == 1
    assert "stdin" not in closed or sys.stdin.read() == ""
  finally:
    for name in closed:
      getattr(sys, name).close()


def test_a_name_that_stdout_cannot_encode(tmp_path, monkeypatch):
  corpus = tiny_corpus.write_corpus(tmp_path / "tiny")
  name = tmp_path / os.fsdecode(b"caf\xe9")
  out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict")
  monkeypatch.setattr(sys, "stdout", out)
  assert sgdx("data", "export", "--corpus", corpus, "--variant", "v3", "--out", name) == 0
  assert rb"caf\udce9" in out.buffer.getvalue()


def test_a_loop_of_links(tmp_path, capsys):
  """Regression: Path.resolve raises RuntimeError for it, until Python 3.13."""
  corpus, loop = tiny_corpus.write_corpus(tmp_path / "tiny"), tmp_path / "loop"
  loop.symlink_to(loop)
  assert sgdx("prompts", "--corpus", corpus, "--variant", "v3", "--out", loop / "x") == 1
  assert_four_parts(capsys.readouterr().err, str(loop))
