"""The frozen set is made again from SGD's archive, and the published rows from their answers."""

import hashlib
import json
import re

import pytest
from commands import assert_four_parts, sgdx
from places import ROOT

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.tools.frozen import frozen_requests, frozen_set

FOLDER = ROOT / "docs" / "tools"
PAGE = (FOLDER / "language-models.md").read_text("utf-8")
# Cells of a row: model with a link, frames, right call, right tool, JGA, JGA of predicting nothing;
# two numbers are those of the original wording and of v1 to v5.
ROW = re.compile(
  r"^\| \[[^]]+\]\((answers/[^)]+)\)[^|]*\| (\d+) \| ([\d.]+), ([\d.]+) \| ([\d.]+), ([\d.]+) "
  r"\| ([\d.]+), ([\d.]+) \| ([\d.]+) \|",
  re.MULTILINE,
)
ROWS = ROW.findall(PAGE)


@pytest.fixture(scope="module")
def corpus(real_archive):
  return open_corpus(real_archive)


def test_the_requests_are_those_that_were_frozen(corpus):
  frozen = frozen_set()
  text = frozen_requests(corpus, frozen.frames)
  assert hashlib.sha256(text.encode()).hexdigest() == frozen.sha256
  assert frozen.sha256 in PAGE
  services = {frame.rpartition("-")[2] for frame in frozen.frames}
  schema = {service.name for service in corpus.schema("test")}
  for first in range(0, len(frozen.frames), len(services)):
    in_round = frozen.frames[first : first + len(services)]
    assert {frame.rpartition("-")[2] for frame in in_round} == services == schema
  assert len({frame.rsplit("-", 2)[0] for frame in frozen.frames}) == len(frozen.frames) == 315


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_published_row_is_that_of_its_answers(row, real_archive, tmp_path, capsys):
  answers, number, *cells = row
  out = tmp_path / "scores.json"
  args = ("--corpus", real_archive, "--predictions", f"all={FOLDER / answers}")
  args = (*args, "--allow-missing", "--calls-from-text", "--bootstrap-samples", "0", "--json", out)
  code = sgdx("tools", "score", *args)
  report = json.loads(out.read_text())
  has_calls = any(groups["all"]["no_call"]["value"] < 1 for groups in report["calls"].values())
  assert code == (0 if has_calls else 1)
  if not has_calls:
    assert_four_parts(capsys.readouterr().err, "answers has a call, not even in its text")
  jga, nothing = report["sgdx"]["all"], report["predict_nothing"]["all"]
  assert jga["num_frames"] == int(number)
  numbers = []
  for name in ("right_call", "right_tool"):
    scores = report["metrics"][name]["all"]
    numbers += [scores[f"{name}_orig"], scores[f"{name}_v1_5"]]
  numbers += [jga["jga_orig"], jga["jga_v1_5"], nothing["jga_orig"]]
  assert [f"{100 * value:.1f}" for value in numbers] == cells


def test_every_file_of_answers_has_a_row():
  assert {row[0] for row in ROWS} == {f"answers/{x.name}" for x in (FOLDER / "answers").iterdir()}


@pytest.mark.parametrize(
  ("args", "code", "words"), [((), 1, "sample: 0 requests"), (("--frames", "316"), 2, "--frames")]
)
def test_another_corpus_and_too_many_frames(tmp_path, capsys, args, code, words):
  out = tmp_path / "requests.jsonl"
  assert sgdx("tools", "frozen", "--corpus", "sample", "--out", out, *args) == code
  assert_four_parts(capsys.readouterr().err, words)
  assert not out.exists()
