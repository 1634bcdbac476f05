"""`sgdx tools`: files, twice the same, and nothing left after an error."""

import json

import tiny_corpus as tiny
from commands import assert_four_parts, python_code, sgdx

from sgdx_t5x.corpus import variants


def files_of(folder):
  return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.json*")}


def test_files_of_every_variant_and_split(tmp_path, capsys):
  corpus = tiny.write_corpus(tmp_path / "tiny")
  for out in ("a", "b"):
    variants = ("original", "v3", f"mine={corpus / 'sgd_x/data/v1'}")
    assert not sgdx(
      *("tools", "export", "--corpus", corpus, "--variant", *variants, "--split", "all"),
      *("--format", "mcp", "--out", tmp_path / out),
    )
  found = files_of(tmp_path / "a")
  assert found == files_of(tmp_path / "b")
  assert len(found) == 3 * 2 * 2
  tools = json.loads(found["v3/test/tools.json"])["tools"]
  assert [tool["name"] for tool in tools] == ["Banks_13__Do", "Homes_23__Do"]
  names = json.loads(found["v3/test/names.json"])
  # v3 calls `kind` by the original name of another slot.
  assert names["Banks_13__Do"]["arguments"] == {
    "amount": "kind",
    "to_v3": "to",
    "amount_v3": "amount",
  }
  printed = capsys.readouterr()
  assert "v3       test         2     2         5" in printed.out
  assert f"written: {tmp_path / 'b'}" in printed.err


def test_bfcl_is_a_function_per_line(tmp_path):
  given = ("--corpus", "sample", "--variant", "v1", "--format", "bfcl", "--out", tmp_path / "o")
  assert not sgdx("tools", "export", *given)
  lines = (tmp_path / "o/v1/test/tools.jsonl").read_text().splitlines()
  names = json.loads((tmp_path / "o/v1/test/names.json").read_text())
  assert [json.loads(line)["name"] for line in lines] == list(names)


def test_an_error_leaves_nothing(tmp_path, capsys):
  corpus = tiny.write_corpus(tmp_path / "tiny")
  schema = corpus / "test/schema.json"
  data = json.loads(schema.read_text())
  for service, name in zip(data, ("A b", "A_b"), strict=True):
    service["service_name"] = name
  schema.write_text(json.dumps(data))
  out = tmp_path / "out"
  assert sgdx("tools", "export", "--corpus", corpus, "--variant", "original", "--out", out) == 1
  assert_four_parts(capsys.readouterr().err, "both names become 'A_b__Do'", "rename one of the two")
  assert not out.exists()
  out.mkdir()
  (out / "mine.txt").write_text("mine")
  assert sgdx("tools", "export", "--corpus", "sample", "--variant", "v1", "--out", out) == 1
  assert_four_parts(capsys.readouterr().err, "already exists and is not empty")
  assert [p.name for p in out.iterdir()] == ["mine.txt"]
  args = ("--variant", "v1", "--split", "all", "dev", "--out", tmp_path / "x")
  assert sgdx("tools", "export", "--corpus", "sample", *args) == 2


def test_a_variant_named_like_a_path_is_refused(tmp_path, capsys):
  """Regression: files were written outside --out."""
  corpus = tiny.write_corpus(tmp_path / "tiny")
  given = ("--corpus", corpus, "--out", tmp_path / "out/deep", "--variant", f"../escaped={corpus}")
  assert sgdx("tools", "export", *given) == 2
  assert "--variant ../escaped=" in capsys.readouterr().err
  assert not (tmp_path / "out").exists()


def test_variants_of_dialogues_that_are_not_perturbed_so(tmp_path, capsys, monkeypatch):
  """Regression: the name was taken for the variant alone."""
  monkeypatch.setattr(variants, "PERTURBATIONS", ("ned",))
  out = tmp_path / "out"
  given = ("--corpus", "sample", "--variant", "ned+v1", "--out", out)
  assert sgdx("tools", "export", *given) == 1
  assert_four_parts(capsys.readouterr().err, "whose test is not perturbed so")
  assert not out.exists()


def test_the_help_of_sgdx_costs_no_library():
  """Neither do the options that this annex adds to `sgdx report`."""
  code = "import sys; from sgdx_t5x.cli.commands import make_parser; make_parser(); "
  code += "print({'jinja2', 'msgspec', 'numpy', 'rapidfuzz'} & set(sys.modules))"
  assert python_code(code).stdout == "set()\n"
