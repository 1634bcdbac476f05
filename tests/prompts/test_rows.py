"""Prompts in Python are those that `sgdx prompts` writes."""

import json

import pytest

from sgdx_t5x.cli import main
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import UsageError
from sgdx_t5x.prompts import load_format
from sgdx_t5x.prompts.rows import make_prompts


@pytest.mark.parametrize(("name", "variant"), [("t5dst", "v2"), ("d3st", "corrupt_1")])
def test_rows_are_those_of_the_command(name, variant, tmp_path):
  out = tmp_path / "prompts.jsonl"
  options = ["--corpus", "sample", "--variant", variant, "--targets", "--prompt-style"]
  assert main(["prompts", *options, f"format={name}", "--out", str(out)]) == 0
  written = [json.loads(line) for line in out.read_text().splitlines()]
  corpus = open_corpus("sample")
  assert list(make_prompts(corpus, "test", variant=variant, format=name, targets=True)) == written
  prompts = make_prompts(corpus, "test", variant=variant, format=name)
  assert all("target" not in row for row in prompts)
  own = make_prompts(corpus, "test", variant=variant, format=load_format(name), targets=True)
  assert list(own) == written


def test_unknown_format():
  with pytest.raises(UsageError, match="prompt format 't5'"):
    list(make_prompts(open_corpus("sample"), "test", format="t5"))
