"""`sgdx checkdst check` from its command line: tables, files, CheckDST's own rows, refusals."""

import csv
import io
import json

import pytest
from commands import assert_four_parts, sgdx
from planted import write_planted
from sample_folder import write_sample

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.papers.checkdst import ned
from sgdx_t5x.papers.checkdst.split import Split
from sgdx_t5x.papers.checkdst.write import write_perturbed


@pytest.fixture(scope="module")
def command(tmp_path_factory):
  """The command that checks a frozen tracker on 15 dialogues."""
  folder = tmp_path_factory.mktemp("check")
  corpus = open_corpus(write_sample(folder / "sample", {"train": 20, "dev": 0, "test": 15}))
  split = Split(corpus, "test")
  write_perturbed(ned.perturber(split, 0), split, 0, folder / "ned")
  sets = {"original": corpus, "names": open_corpus(folder / "ned")}
  predictions = [
    f"{name}={write_planted(folder / name, 'frozen', corpus, found)}"
    for name, found in sets.items()
  ]
  corpora = ("--corpus", corpus.origin, "--perturbed", f"names={folder / 'ned'}")
  return ["checkdst", "check", *corpora, "--bootstrap-samples", 100, "--predictions", *predictions]


def test_text(command, capsys):
  assert sgdx(*command) == 0
  out = capsys.readouterr().out
  cells = [line.split() for line in out.splitlines()]
  row = next(x for x in cells if x[:1] == ["names"])
  # before, perturbed, cJGA, broken, fixed, retained, agree, drop
  assert row[2:-1] == ["100.0", "0.0", "0.0", "100.0", "0.0", "0.0", "0.0", "-100.0"]
  assert "by CheckDST's definitions (%)" in out
  # One vocabulary: the headings of the main table are the rows of the intervals.
  header = next(x for x in cells if "broken" in x)
  intervals = out[out.index("95% intervals") :].splitlines()
  assert set(header[1:-1]) <= {line.split()[0] for line in intervals if line.strip()}
  assert "names: ned entities=letters slots=kinds seed=0" in out
  assert ("fewer than 100" in out) == (int(row[-1]) < 100)
  assert "|sets:names:" in out


def test_files_and_formats(command, tmp_path, capsys):
  written = ("--json", tmp_path / "a.json", "--per-frame", tmp_path / "a.jsonl")
  assert sgdx(*command, "--format", "csv", *written) == 0
  lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
  found = {(x["row"], x["column"]): x["value"] for x in lines if x["table"].startswith("all")}
  assert (found["names", "before"], found["names", "perturbed"]) == ("1.0", "0.0")
  report = json.loads((tmp_path / "a.json").read_text())
  assert report["format"] == "sgdx-check/1"
  assert report["per_frame"]["file"] == "a.jsonl"
  assert report["sets"]["names"]["steps"][0]["kind"] == "ned"
  assert report["sets"]["names"]["rows"]["all"]["ci95"]["cjga"] == [0, 0]
  assert sgdx(*command, "--format", "json") == 0
  printed = json.loads(capsys.readouterr().out)
  assert printed["sets"]["names"]["rows"]["all"] == report["sets"]["names"]["rows"]["all"]


def test_compressed_files_are_compared_and_others_named(command, tmp_path, capsys):
  names = ("a.json", "a.jsonl", "b.json.gz", "b.jsonl.gz")
  a, frames, b, _ = paths = [tmp_path / name for name in names]
  assert sgdx(*command, "--json", a, "--per-frame", frames) == 0
  assert sgdx(*command, "--json", b, "--per-frame", paths[3]) == 0
  assert b.read_bytes()[:2] == b"\x1f\x8b"
  capsys.readouterr()
  assert sgdx("checkdst", "diff", a, b, "--bootstrap-samples", "100") == 0
  assert "names" in capsys.readouterr().out
  assert sgdx("checkdst", "diff", frames, b) == 1
  assert_four_parts(capsys.readouterr().err, "a.jsonl", "--json")
  scores = tmp_path / "scores.json"
  scores.write_text('{"format": "sgdx-score/1"}')
  assert sgdx("checkdst", "diff", a, scores) == 1
  assert_four_parts(capsys.readouterr().err, f"{scores}: not a report of `sgdx checkdst check`")


# --- CheckDST's rows -----------------------------------------------------------------------

ORIGINAL = [
  ("a-0", "hotel name inn", "hotel name inn", "the inn"),
  ("a-1", "hotel name inn", "hotel name inn, taxi destination bay", "the inn , to the bay"),
  ("b-0", None, "", "hi"),
]
PERTURBED = [
  ("a-0", "hotel name nni", "hotel name nni", "the nni"),
  ("a-1", "hotel name nni", "hotel name nni, taxi destination aby", "the nni , to the bay"),
]


def write_rows(path, rows):
  keys = ("dial_id", "pred", "gold", "context")
  path.write_text("".join(json.dumps(dict(zip(keys, x, strict=True))) + "\n" for x in rows))
  return path


def test_checkdst_rows(tmp_path, capsys):
  orig = write_rows(tmp_path / "orig.jsonl", ORIGINAL)
  perturbed = write_rows(tmp_path / "ned.jsonl", [*PERTURBED, PERTURBED[0]])
  gold = tmp_path / "gold.json"
  needs = {"a-0": False, "a-1": True, "b-0": False}
  gold.write_text(json.dumps({key: {"need_coref": x} for key, x in needs.items()}))
  assert sgdx("checkdst", "rows", f"orig={orig}", f"NED={perturbed}", "--gold", gold) == 0
  rows = [line.split() for line in capsys.readouterr().out.splitlines()]
  # JGA, cJGA, conditional, CorefJGA, factuality; names, made up, rows with coreference
  assert ["orig", "50.0", "-", "-", "0.0", "100.0", "2", "0", "1"] in rows
  assert ["NED", "66.7", "66.7", "100.0", "0.0", "100.0", "3", "0", "1"] in rows


@pytest.mark.parametrize(
  ("text", "words"),
  [
    ("{", "line 1"),
    ('{"dial_id": "a"}\n', "not a row of CheckDST predictions"),
    ('{"dial_id": "a", "context": "", "pred": "hotel name a--b", "gold": ""}\n', "--"),
    ("\n", "no rows"),
    ('{"dial_id": "a", "context": "", "pred": ""}\n', "no gold state"),
  ],
)
def test_rows_that_are_none(text, words, tmp_path, capsys):
  path = tmp_path / "rows.jsonl"
  path.write_text(text)
  assert sgdx("checkdst", "rows", f"orig={path}") == 1
  assert_four_parts(capsys.readouterr().err, words)


def test_a_gold_file_of_other_rows_is_refused(tmp_path, capsys):
  """Regression: all rows were left out, and every number was a dash."""
  orig, gold = write_rows(tmp_path / "orig.jsonl", ORIGINAL), tmp_path / "gold.json"
  gold.write_text(json.dumps({"c-0": {"need_coref": True}}))
  assert sgdx("checkdst", "rows", f"orig={orig}", "--gold", gold) == 1
  assert_four_parts(capsys.readouterr().err, "gold.json: no id of the predictions", "a-0")


def test_rows_without_a_kind(capsys):
  assert sgdx("checkdst", "rows", "o1.jsonl") == 2
  assert_four_parts(capsys.readouterr().err, "sgdx: KIND=FILE o1.jsonl\n")


def test_options_that_are_required(capsys):
  assert sgdx("checkdst", "check", "--corpus", "sample") == 2
  assert "--perturbed, --predictions" in capsys.readouterr().err
