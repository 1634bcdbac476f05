"""`sgdx tools requests`: files, dry runs, samples of dialogues, options that do not fit."""

import json

import pytest
from commands import assert_four_parts, next_command, sgdx
from hostile import write_hostile_corpus

from sgdx_t5x.errors import UsageError
from sgdx_t5x.tools.delivery import ToolStyle


def requests(out, *args):
  return sgdx("tools", "requests", "--corpus", "sample", "--out", out, *args)


def read(path):
  return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_dry_run_writes_nothing_and_counts_what_would_be_written(tmp_path, capsys):
  args = ("--variant", "original", "v1", "--limit", "4", "--seed", "3")
  assert requests(tmp_path / "r.jsonl", *args, "--dry-run", "--price", "2.5", "10") == 0
  printed = capsys.readouterr()
  assert not list(tmp_path.iterdir())
  assert requests(tmp_path / "r.jsonl", *args, "--targets") == 0
  rows = read(tmp_path / "r.jsonl")
  assert f"would be written: {len(rows)} requests (original, v1)" in printed.err
  # Characters of messages and tools are counted without the brackets, of targets with them.
  read_, written = (
    sum(sum(len(json.dumps(row[key])) - 2 * (key != "target") for key in keys) for row in rows)
    for keys in (("messages", "tools"), ("target",))
  )
  assert f"about {read_ // 4:,} input, {written // 4:,} output" in printed.err
  cost = (read_ // 4 * 2.5 + written // 4 * 10) / 1e6
  assert f"cost:    about {cost:,.2f}" in printed.err


def test_a_seed_draws_examples_without_a_limit(tmp_path):
  args = ("--variant", "original", "--shots", "1", "--seed", "4")
  assert requests(tmp_path / "r.jsonl", *args, "--openai-batch", "m") == 0
  ids = [row["custom_id"] for row in read(tmp_path / "r.jsonl")]
  assert all("shots=1,seed=4" in name for name in ids)


def test_the_help_lists_every_delivery(capsys):
  with pytest.raises(UsageError, match="delivery is of type int"):
    ToolStyle(1)
  with pytest.raises(UsageError) as e:
    ToolStyle("none of them")
  assert sgdx("tools", "requests", "--help") == 0
  shown = capsys.readouterr().out
  assert [x for x in e.value.available.partition(";")[0].split(", ") if x not in shown] == []


def test_a_sample_is_that_of_prompts_for_whole_frames(tmp_path, capsys):
  assert requests(tmp_path / "r.jsonl", "--variant", "v1", "--limit", "6") == 0
  command = next_command(capsys.readouterr().err)
  assert command[:5] == ["sgdx", "tools", "score", "--corpus", "sample"]
  assert command[-1] == "--allow-missing"
  out, style = tmp_path / "d3st.jsonl", ("--prompt-style", "format=d3st")
  args = ("--corpus", "sample", "--variant", "v1", "--limit", "6", "--out", out)
  assert sgdx("prompts", *args, *style) == 0
  assert [row["id"] for row in read(out)] == [row["id"] for row in read(tmp_path / "r.jsonl")]


@pytest.mark.parametrize(
  ("args", "words"),
  [
    (("--shots", "2", "--split", "train"), "--shots 2 for split train"),
    (("--targets", "--openai-batch", "m"), "--targets with --openai-batch"),
    (("--delivery", "some"), "delivery 'some'"),
    (("--dry-run", "--price", "-1", "2"), "--price -1.0"),
    (("--dry-run", "--price", "1", "inf"), "--price 1.0 inf"),
  ],
)
def test_options_that_do_not_fit(args, words, tmp_path, capsys):
  out = tmp_path / "r.jsonl"
  assert requests(out, "--variant", "v1", *args) == 2
  assert_four_parts(capsys.readouterr().err, words)
  assert not list(tmp_path.iterdir())


def test_a_file_to_write_is_needed_unless_nothing_is_written(capsys):
  assert sgdx("tools", "requests", "--corpus", "sample", "--variant", "v1") == 2
  assert_four_parts(capsys.readouterr().err, "no --out")


def test_what_programs_read_is_exact(tmp_path, capsys):
  """Names that command a terminal are escaped in what a person reads only."""
  corpus = write_hostile_corpus(tmp_path / "tiny")
  command = ("tools", "requests", "--corpus", corpus, "--variant", "original", "--out")
  assert sgdx(*command, "-") == 0
  out = capsys.readouterr().out
  assert sgdx(*command, tmp_path / "requests.jsonl") == 0
  assert out == (tmp_path / "requests.jsonl").read_text()
