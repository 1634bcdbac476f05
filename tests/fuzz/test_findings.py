"""What the fuzzer found, each with its input."""

import json
import os
import struct
import zipfile

import pytest
import tiny_corpus as tiny

from sgdx_t5x.corpus.dialogue import read_dialogues
from sgdx_t5x.corpus.example_id import SLOT
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.metrics import JOINT_GOAL
from sgdx_t5x.report.runs import read_run
from sgdx_t5x.scoring.predictions.rows import read_rows
from sgdx_t5x.scoring.rows import Rows
from sgdx_t5x.scoring.score_files import read_frames, read_frames_of


def refused(reader, *args):
  """Returns the error's `found`; checks that it has `expected` and `fix`, too."""
  with pytest.raises(SgdxError) as caught:
    reader(*args)
  assert caught.value.expected
  assert caught.value.fix
  return caught.value.found


def test_errors_shorten_what_they_quote():
  error = SgdxError(f"slot {'x' * 5_000} of a service", expected="a\nb", fix="c")
  first, *others = str(error).split("\n")
  assert len(first) < 1_100
  assert first.startswith("slot xxx")
  assert first.endswith("xx of a service")
  assert others == ["  expected:  a", "b", "  fix:       c"]


def test_errors_hold_no_control_characters():
  """A terminal would obey them; a lone surrogate could not be printed."""
  error = SgdxError("a\x1b[2J\0\x85\ud800\tb", expected="é 日本", available="\u2028", fix="c")
  assert error.found == r"a\x1b[2J\x00\x85\ud800\tb"
  assert error.text.split("\n")[1:3] == ["  expected:  é 日本", r"  available: \u2028"]


def test_a_name_that_is_no_string_has_nearest_names():
  assert nearest(1.5, ["a"]) == "a"


def dialogue(change):
  data = tiny.dialogue("1_00000", [{"Shops_1": {"item": ["pen"]}}] * 2)
  change(data, data["turns"][2]["frames"][0])
  return json.dumps([data])


@pytest.mark.parametrize(
  ("change", "words"),
  [
    (lambda d, f: d.update(dialogue_id=5), "`$.dialogue_id`"),
    (lambda d, f: d.update(services="Shops_1"), "`$.services`"),
    (lambda d, f: d.update(turns={}), "`$.turns`"),
    (lambda d, f: d["turns"][2].update(utterance=None), "`$.turns[2].utterance`"),
    (lambda d, f: d["turns"][2].update(speaker=[]), "`$.turns[2].speaker`"),
    (lambda d, f: f.update(service=1.5), "`$.turns[2].frames[0].service`"),
    (lambda d, f: f.update(slots=5), "`$.turns[2].frames[0].slots`"),
    (lambda d, f: f.update(slots=[{"slot": "item", "start": "x", "exclusive_end": 2}]),
     "`$.turns[2].frames[0].slots[0].start`"),
    (lambda d, f: f.update(actions=[{"act": [], "slot": ""}]), ".actions[0].act`"),
    (lambda d, f: f.update(actions=[{"act": "INFORM_INTENT", "slot": "intent", "values": [[]]}]),
     ".actions[0].values[0]`"),
    (lambda d, f: f.update(service_call={"parameters": {}}), "missing required field `method`"),
    (lambda d, f: f.update(service_call={"method": "Do", "parameters": "x"}), ".parameters`"),
    (lambda d, f: f["state"].update(requested_slots=[[]]), ".requested_slots[0]`"),
    (lambda d, f: f["state"].update(active_intent=[]), ".active_intent`"),
    (lambda d, f: f["state"].update(slot_values={"item": [5]}), ".slot_values[...][0]`"),
  ],
)  # fmt: skip
def test_values_of_wrong_types_in_dialogues(change, words):
  found = refused(lambda: list(read_dialogues(dialogue(change), "file")))
  assert found.startswith("file, dialogue ")
  assert words in found


# --- archives and folders ------------------------------------------------------------------


def read_all(path):
  corpus = open_corpus(path)
  return corpus.checksum(), list(corpus.dialogues("test"))


@pytest.mark.parametrize(
  ("at", "value", "words"),
  [
    (8, 1, "encrypted"),
    (8, 32, "compressed patched data"),
    (10, 97, "compression method"),
    (6, 106, "zip file version 10.6"),
  ],
)
def test_archives_of_unknown_kinds(tmp_path, at, value, words):
  """Flags, method and version of each member, as APPNOTE.TXT places them (4.3.7, 4.3.12)."""
  path = tmp_path / "a.zip"
  root = tiny.write_corpus(tmp_path / "a")
  with zipfile.ZipFile(path, "w") as archive:
    for file in root.rglob("*.json"):
      archive.write(file, file.relative_to(root))
  data = bytearray(path.read_bytes())
  for mark, offset in ((b"PK\1\2", at), (b"PK\3\4", at - 2)):
    start = data.find(mark)
    while start >= 0:
      struct.pack_into("<H", data, start + offset, value)
      start = data.find(mark, start + 4)
  path.write_bytes(data)
  assert words in refused(read_all, path)


def test_what_is_no_file_is_not_read(tmp_path):
  """A pipe would never end."""
  root = tiny.write_corpus(tmp_path)
  expected = read_all(root)
  os.mkfifo(root / "test/dialogues_003.json")
  (root / "test/dialogues_004.json").mkdir()
  (root / "test/dialogues_005.json").symlink_to("nothing")
  assert read_all(root) == expected


# --- other files ---------------------------------------------------------------------------


def write(path, *lines):
  path.write_text("".join(f"{x if isinstance(x, str) else json.dumps(x)}\n" for x in lines))
  return path


def test_inputs_of_a_prediction_that_are_no_object(tmp_path):
  path = write(tmp_path / "p.jsonl", {"inputs": 5, "prediction": "x"})
  assert "line 1: no example id" in refused(lambda: list(read_rows(path, SLOT)))


@pytest.mark.parametrize(
  "change",
  [{"jga": True}, {"ci95": {"jga": False}},
   {"ci95": {"jga": 0}}, {"ci95": {"jga": ""}}, {"ci95": {"jga": [0.5]}},
   {"ci95": {"jga": ["a", "b"]}}],
)  # fmt: skip
def test_numbers_of_a_report_that_are_none(change):
  rows = {group: {"jga": 0.5, "num_frames": 2} for group in ("all", "seen", "unseen")}
  Rows.from_json(rows)
  with pytest.raises(ValueError, match="seen: "):
    Rows.from_json({**rows, "seen": rows["seen"] | change})


@pytest.mark.parametrize("named", [{"file": 5, "checksum": "0"}, {"file": "a", "checksum": []}])
def test_a_report_that_names_no_file(tmp_path, named):
  path = tmp_path / "a.json"
  report = {"per_frame": named, "warnings": []}
  assert "does not refer to per-frame scores" in refused(read_frames_of, report, path)


def scores_per_frame(path, score):
  head = {"format": "sgdx-frames/1", "signature": "sgdx", "checksum": "0", "variants": ["v1"],
          "metrics": [JOINT_GOAL]}  # fmt: skip
  row = {"id": "1-000-A_1", "dialogue_id": "1", "turn": 0, "service": "A_1", "seen": True}
  return write(path, head, {**row, "scores": {JOINT_GOAL: {"v1": score}}})


@pytest.mark.parametrize("score", [1e308, -1, 1.5])
def test_scores_are_from_0_to_1(tmp_path, score):
  """Sums of other scores could overflow."""
  path = scores_per_frame(tmp_path / "a.jsonl", 1)
  assert len(read_frames(path).frames) == 1
  path = scores_per_frame(tmp_path / "a.jsonl", score)
  assert "line 2: not a row of per-frame scores" in refused(read_frames, path)


def test_a_report_without_services(tmp_path):
  """Its scores per frame do name services."""
  scores_per_frame(tmp_path / "a.jsonl", 1)
  rows = {g: {"jga": 1, "num_frames": 1, "num_dialogues": 1} for g in ("all", "seen", "unseen")}
  report = {
    "format": "sgdx-score/1", "signature": "sgdx", "complete": True, "warnings": [], "notes": [],
    "per_frame": {"file": "a.jsonl", "checksum": "0"}, "metrics": {}, "sgdx": rows,
    "variants": {"v1": {"#ALL_SERVICES": {}}}, "predict_nothing": rows,
  }  # fmt: skip
  path = write(tmp_path / "a.json", report)
  assert "its per-frame scores have A_1" in refused(read_run, "a", path)
  report["provenance"] = {"values": {}}
  assert "KeyError: 'entering'" in refused(read_run, "a", write(path, report))
