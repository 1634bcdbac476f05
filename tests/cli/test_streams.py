"""A stream that cannot encode a name."""

import io
import os
import sys

import tiny_corpus
from commands import sgdx


def test_a_name_that_stdout_cannot_encode(tmp_path, monkeypatch):
  corpus = tiny_corpus.write_corpus(tmp_path / "tiny")
  name = tmp_path / os.fsdecode(b"caf\xe9")
  out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="strict")
  monkeypatch.setattr(sys, "stdout", out)
  assert sgdx("data", "export", "--corpus", corpus, "--variant", "v3", "--out", name) == 0
  assert rb"caf\udce9" in out.buffer.getvalue()
