"""Odd or malicious inputs: refused with the right reason, or made harmless."""

import json
import zipfile

import pytest
import tiny_corpus
from boats import SCHEMA
from commands import assert_four_parts, sgdx

from sgdx_t5x.tables import Number, Table, csv_lines, csv_text


@pytest.mark.parametrize("name", ["A\0B_1", "../../EVIL_1", "A\nB_1"])
def test_names_that_no_file_can_have(name, tmp_path, capsys):
  schema = tmp_path / "schema.json"
  schema.write_text(json.dumps([{**SCHEMA[0], "service_name": name}, SCHEMA[1]]))
  assert sgdx("simulate", "--init", schema, "--out", tmp_path / "out") == 1
  error = capsys.readouterr().err
  assert_four_parts(error, f"service {name!r}: not a valid file name", "can be file names")
  assert list(tmp_path.iterdir()) == [schema]


def test_an_integer_of_too_many_digits(tmp_path, capsys):
  corpus = tiny_corpus.write_corpus(tmp_path / "tiny")
  file = corpus / "test/dialogues_001.json"
  text = file.read_text().replace('"frames": []', f'"frames": [], "n": {"9" * 5000}', 1)
  file.write_text(text)
  for command in (("data", "verify"), ("prompts", "--variant", "v3", "--out", "-")):
    assert sgdx(*command, "--corpus", corpus) == 1
    error = capsys.readouterr().err
    assert_four_parts(error, "test/dialogues_001.json", "integer with more than 4,300 digits")


@pytest.mark.parametrize("zipped", [False, True])
def test_two_corpora_in_one_place(zipped, tmp_path, capsys):
  both = tmp_path / "both"
  for name in ("a", "b/deeper"):
    tiny_corpus.write_corpus(both / name)
  place = both
  if zipped:
    place = tmp_path / "both.zip"
    with zipfile.ZipFile(place, "w") as archive:
      for file in both.rglob("*.json"):
        archive.write(file, file.relative_to(both))
  assert sgdx("data", "verify", "--corpus", place) == 1
  assert_four_parts(capsys.readouterr().err, "contains 2 corpora", "available: a/, b/deeper/")


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-x", "@SUM(A1)", "\t=1", "\r=1", "--", "-1-1"])
def test_no_cell_of_csv_is_a_formula(text):
  table = Table("t", ("", "a", text), ((text, text, Number(-0.5, "-50.0", (-1.0, 2.0))),))
  lines = csv_lines([table])
  assert csv_text(text) == f"'{text}"
  assert f",{text}" not in lines
  assert ",-0.5\n" in lines
  assert ",-1.0\n" in lines


@pytest.mark.parametrize("text", ["", "-", "-3.5", "+1.2", "1=1", "a@b", "42,297", "-1e-05"])
def test_other_cells_stay(text):
  assert csv_text(text) == text
