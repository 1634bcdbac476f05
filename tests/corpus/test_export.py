"""`sgdx data export`: the official converter's bytes; complete files or none.

`fixtures/export_checksums.tsv` has checksums of the official converter's own output. Elsewhere the
reference is its last step, `json.dump(indent=2, separators=(",", ": "), sort_keys=True)`, on
dialogues renamed by `conversion.convert_dialogue`.
"""

import csv
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile

import pytest
import tiny_corpus
from places import FIXTURES

from sgdx_t5x.cli import main
from sgdx_t5x.corpus.conversion import convert_dialogue, convert_json, renamings
from sgdx_t5x.corpus.export import choose, export, json_text
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import parse_schema
from sgdx_t5x.errors import SgdxError

CHECKSUMS = FIXTURES / "export_checksums.tsv"


def reference(corpus, split, variant):
  """Returns a split's dialogues with a variant's names, as the official converter dumps them."""
  names = renamings(corpus.schema(split), corpus.schema(split, variant))
  data = [convert_dialogue(d, names).to_json() for d in corpus.dialogues(split)]
  return json.dumps(data, indent=2, separators=(",", ": "), sort_keys=True)


def files(folder):
  """Returns relative path -> bytes of every file, including hidden ones."""
  return {
    p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
  }


@pytest.fixture
def tiny(tmp_path):
  return tiny_corpus.write_corpus(tmp_path / "tiny")


@pytest.fixture(scope="module")
def many(tmp_path_factory):
  """A folder with 30 files, each half of the sample's test split."""
  root = tmp_path_factory.mktemp("many")
  source = open_corpus("sample").source
  for name in source.names():
    if "test/schema.json" in name:
      (root / name).parent.mkdir(parents=True, exist_ok=True)
      (root / name).write_bytes(source.read(name))
  half = json.dumps(json.loads(source.read("test/dialogues_001.json"))[::2])
  for i in range(30):
    (root / f"test/dialogues_{i:03d}.json").write_text(half)
  return root


def test_bytes_of_every_variant_of_the_sample(tmp_path, capsys):
  arguments = ["--corpus", "sample", "--variant", "all", "--split", "dev", "test"]
  assert main(["data", "export", *arguments, "--out", str(tmp_path)]) == 0
  corpus = open_corpus("sample")
  written = files(tmp_path)
  assert len(written) == 8 * 2 * 2  # five variants, three back-translations
  for name, content in written.items():
    variant, split, file = name.split("/")
    if file == "schema.json":
      folder = variant.replace("bt_", "back_translations/").replace("v", "sgd_x/data/v")
      assert content == corpus.source.read(f"{folder}/{split}/schema.json")
    else:
      assert content.decode() == reference(corpus, split, variant), name
  out = capsys.readouterr().out
  assert re.search(r"test: 160 dialogues as v1, v2, v3, v4, v5, bt_zh, bt_ja, bt_ko\n", out)


def test_zip_and_folder_give_the_same_bytes(tiny, tmp_path):
  with zipfile.ZipFile(tmp_path / "tiny.zip", "w") as archive:
    for name, content in files(tiny).items():
      archive.writestr(f"some-folder/{name}", content)
  expected = None
  for corpus in (tiny, tmp_path / "tiny.zip"):
    out = tmp_path / f"{corpus.name}_out"
    corpus = open_corpus(corpus)
    rows = list(export(corpus, choose(corpus, ["v3", "v5"], ["test"], corpus.schema), out))
    assert [(row.split, row.variants, row.dialogues) for row in rows] == [
      ("test", ("v3", "v5"), 2),
      ("test", ("v3", "v5"), 1),
    ]
    expected = expected or files(out)
    assert files(out) == expected
  assert set(expected) == {
    f"{v}/test/{f}.json" for v in ("v3", "v5") for f in ("schema", "dialogues_001", "dialogues_002")
  }


# One turn that has everything. "to" becomes "Konto", which then sorts before the others; "kind"
# takes the name of "amount", which is itself renamed; the key "note" is not part of the format.
EVERYTHING = {
  "dialogue_id": "1",
  "services": ["Banks_1", "Elsewhere_1"],
  "turns": [
    {
      "speaker": "USER",
      "utterance": 'caf\u00e9 "\ud83d\ude00"\n',
      "note": {"to": [1.5, None]},
      "frames": [
        {
          "service": "Banks_1",
          "slots": [{"slot": "to", "start": 0, "exclusive_end": 4}],
          "actions": [
            {"act": "INFORM_INTENT", "slot": "intent", "values": ["Do"]},
            {"act": "INFORM", "slot": "kind", "values": ["Do"], "canonical_values": ["kind"]},
            {"act": "THANK_YOU"},
          ],
          "state": {
            "active_intent": "Do",
            "requested_slots": ["amount"],
            "slot_values": {"kind": ["\u20ac"], "to": ["A", "B"], "amount": ["5"]},
          },
          "service_call": {"method": "Do", "parameters": {"amount": "5", "to": "A"}},
          "service_results": [{"amount": "5", "kind": "K", "to": "A"}, {}],
        }
      ],
    }
  ],
}
CONVERTED = r"""[
  {
    "dialogue_id": "1",
    "services": [
      "Banks_13",
      "Elsewhere_1"
    ],
    "turns": [
      {
        "frames": [
          {
            "actions": [
              {
                "act": "INFORM_INTENT",
                "slot": "intent",
                "values": [
                  "Make"
                ]
              },
              {
                "act": "INFORM",
                "canonical_values": [
                  "kind"
                ],
                "slot": "amount",
                "values": [
                  "Do"
                ]
              },
              {
                "act": "THANK_YOU"
              }
            ],
            "service": "Banks_13",
            "service_call": {
              "method": "Make",
              "parameters": {
                "Konto": "A",
                "sum": "5"
              }
            },
            "service_results": [
              {
                "Konto": "A",
                "amount": "K",
                "sum": "5"
              },
              {}
            ],
            "slots": [
              {
                "exclusive_end": 4,
                "slot": "Konto",
                "start": 0
              }
            ],
            "state": {
              "active_intent": "Make",
              "requested_slots": [
                "sum"
              ],
              "slot_values": {
                "Konto": [
                  "A",
                  "B"
                ],
                "amount": [
                  "\u20ac"
                ],
                "sum": [
                  "5"
                ]
              }
            }
          }
        ],
        "note": {
          "to": [
            1.5,
            null
          ]
        },
        "speaker": "USER",
        "utterance": "caf\u00e9 \"\ud83d\ude00\"\n"
      }
    ]
  }
]"""


def schemas():
  """Returns schemas of Banks_1, and of Banks_13 with the names in CONVERTED."""
  data = tiny_corpus.schema(["Banks_1"], "original")
  original = parse_schema(data, "original")
  text = json.dumps(data).replace('"amount"', '"sum"').replace('"kind"', '"amount"')
  text = text.replace('"to"', '"Konto"').replace("Banks_1", "Banks_13").replace('"Do"', '"Make"')
  return original, parse_schema(json.loads(text), "other")


def test_text_is_as_written_by_hand():
  original, other = schemas()
  converted = convert_json(EVERYTHING, renamings(original, other))
  assert json_text([converted]) == CONVERTED
  same = convert_json(EVERYTHING, renamings(original, original))
  assert json_text([same]) == json.dumps([EVERYTHING], indent=2, sort_keys=True)


def test_text_is_that_of_the_standard_library():
  data = {"b": [], "a": {}, "\u00e9": '\U0001f600\x7f\x00\n"\\/', "c": [1, None, True, -5]}
  assert json_text(data) == json.dumps(data, indent=2, sort_keys=True)
  half = {"half": "\ud83d", "large": 2**70}
  assert json_text(half) == json.dumps(half, indent=2, sort_keys=True)
  assert "NaN" in json_text([float("nan")])  # which Python reads and writes, too


@pytest.mark.real
@pytest.mark.long
def test_real_files_have_the_sums_of_the_official_converter(real_archive, tmp_path):
  lines = [line for line in CHECKSUMS.read_text().splitlines() if not line.startswith("#")]
  rows = list(csv.DictReader(lines, delimiter="\t"))
  corpus = open_corpus(real_archive)
  whole = {v: len(corpus.dialogue_files("test")) for v in ("v3", "v5")}
  list(export(corpus, choose(corpus, whole, ["test"], corpus.schema), tmp_path))
  sums = {name: hashlib.sha256(content).hexdigest() for name, content in files(tmp_path).items()}
  for row in rows:
    name = f"{row['variant']}/{row['file']}"
    if name not in sums:
      split = row["file"].split("/")[0]
      schema, variant = corpus.schema(split), corpus.schema(split, row["variant"])
      content = corpus.source.read(row["file"])
      to_variant = renamings(schema, variant)
      text = json_text([convert_json(dialogue, to_variant) for dialogue in json.loads(content)])
      sums[name] = hashlib.sha256(text.encode()).hexdigest()
    assert sums[name] == row["sha256"], name
  for variant, number in whole.items():
    assert sum(row["variant"] == variant and "test/" in row["file"] for row in rows) == number
    theirs = corpus.source.read(f"sgd_x/data/{variant}/test/schema.json")
    assert (tmp_path / variant / "test/schema.json").read_bytes() == theirs


@pytest.mark.real
def test_partial_data_are_called_so(real_archive, tmp_path, capsys):
  arguments = ["--corpus", str(real_archive), "--variant", "v1", "--split", "test"]
  assert main(["data", "export", *arguments, "--out", str(tmp_path)]) == 0
  assert re.search(
    r"test: 2,921 dialogues as v1; PARTIAL: .* of the 4,201", capsys.readouterr().out
  )


# --- bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize(
  ("arguments", "code", "words"),
  [
    (["--variant", "v6"], 1, ("no schema of variant 'v6' for split 'test'", "v5")),
    (["--variant", "v1", "--split", "tests"], 1, ("no split 'tests'", "test")),
    (["--variant", "v1", "--split", "train"], 1, ("no dialogues", "train: 0 files, test: 2")),
    (["--variant", "all", "nonsense"], 1, ("no schema of variant 'nonsense'",)),
    (["--variant", "v1", "--split", "all", "bogus"], 1, ("no split 'bogus'",)),
    (["--variant", "v1", "--out", "{tiny}/test/schema.json"], 2, ("is also an input",)),
    (["--variant", "v1", "--out", "{file}"], 1, ("Not a directory",)),
  ],
)
def test_what_is_not_there_is_refused(tiny, tmp_path, capsys, arguments, code, words):
  out = tmp_path / "out"
  file = tmp_path / "file"
  file.touch()
  arguments = [a.format(tiny=tiny, file=file) for a in ["--out", str(out), *arguments]]
  assert main(["data", "export", "--corpus", str(tiny), *arguments]) == code
  error = capsys.readouterr().err
  for word in (*words, "expected:", "fix:"):
    assert word in error
  assert not out.exists()


def first_frame(dialogue):
  return dialogue["turns"][0]["frames"][0]


@pytest.mark.parametrize(
  ("change", "words"),
  [
    (lambda d: first_frame(d).update(service="Homes_9"), "unknown service 'Homes_9'"),
    (lambda d: first_frame(d)["state"]["slot_values"].update(x=["1"]), "unknown slot 'x'"),
    (
      lambda d: first_frame(d).update(service_call={"method": "Do"}),
      "missing required field `parameters`",
    ),
    (lambda d: first_frame(d).update(service_results=[["area"]]), "Expected `object`, got `array`"),
    (lambda d: d.clear(), "dialogue ?: Object missing required field"),
  ],
)
def test_dialogues_that_do_not_fit_are_refused(tiny, tmp_path, change, words):
  file = tiny / "test/dialogues_002.json"
  data = json.loads(file.read_text())
  change(data[0])
  file.write_text(json.dumps(data))
  corpus, out = open_corpus(tiny), tmp_path / "out"
  with pytest.raises(SgdxError) as caught:
    list(export(corpus, choose(corpus, ["v1"], ["test"], corpus.schema), out))
  assert words in caught.value.found
  assert "test/dialogues_002.json, dialogue" in caught.value.found
  assert caught.value.fix
  assert set(files(out)) == {"v1/test/schema.json", "v1/test/dialogues_001.json"}


@pytest.mark.parametrize("text", ['{"a": 1}', "[{", "[1]"])
def test_a_file_that_holds_no_dialogues_is_refused(text, tiny, tmp_path):
  (tiny / "test/dialogues_002.json").write_text(text)
  corpus = open_corpus(tiny)
  with pytest.raises(SgdxError, match="dialogues_002"):
    list(export(corpus, choose(corpus, ["v1"], ["test"], corpus.schema), tmp_path / "out"))


# Set in the child itself: forking a process that has run JAX, to set it there, may hang.
START = """
import resource, sys
from sgdx_t5x.cli import main
if __name__ == "__main__":
  if limit := int(sys.argv.pop(1)):
    sys.dont_write_bytecode = True  # which Python 3.11 would cut off at the limit
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
  sys.exit(main(sys.argv[1:]))
"""


def start(corpus, out, limit=0):
  """Starts the command as a shell does, with a file size limit in bytes; 0 for none."""
  script = out.parent / "start.py"
  script.write_text(START)
  command = [sys.executable, str(script), str(limit), "data", "export", "--corpus", str(corpus)]
  command += ["--variant", "all", "--out", str(out)]
  return subprocess.Popen(
    command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
  )


def wait_for_a_file(process, out):
  while not list(out.glob("v1/test/dialogues_*.json")):
    assert process.poll() is None, process.communicate()
    time.sleep(0.01)


def test_a_full_disk_leaves_no_half_file(many, tmp_path):
  """A file size limit stands in for the disk: room for schemas, not for dialogues."""
  process = start(many, tmp_path, limit=200_000)
  out, error = process.communicate()
  assert process.returncode == 1, error
  assert re.search(r"--out .*dialogues_000.json: File too large\n +expected: .*\n +fix: ", error)
  assert out == ""
  assert "Traceback" not in error
  assert {pathlib.Path(name).name for name in files(tmp_path)} == {"schema.json"}


def test_an_interrupt_leaves_whole_files_only(many, tmp_path):
  process = start(many, tmp_path)
  wait_for_a_file(process, tmp_path)
  os.killpg(process.pid, signal.SIGINT)  # as a terminal does
  out, error = process.communicate()
  assert process.returncode == 130
  assert error == "sgdx: interrupted; no partial output is left\n"
  assert out == ""
  written = files(tmp_path)
  assert not [name for name in written if not name.endswith(".json")]
  assert len(written) < 8 * 31
  for name, content in written.items():
    if "v1/test/dialogues" in name:
      assert content == written["v1/test/dialogues_000.json"]
    assert content.rstrip().endswith(b"]")


def test_a_variant_named_like_a_path_is_refused(tiny, tmp_path, capsys):
  """Regression: files were written outside --out."""
  options = ["--corpus", str(tiny), "--out", str(tmp_path / "out/deep")]
  code = main(["data", "export", *options, "--variant", f"../escaped={tiny}"])
  err = capsys.readouterr().err
  assert code == 2
  assert "--variant ../escaped=" in err
  assert not (tmp_path / "out").exists()


def test_the_bar_is_for_terminals_only(tiny, tmp_path, capsys, monkeypatch):
  arguments = ["--corpus", str(tiny), "--variant", "v1", "--out", str(tmp_path / "out")]
  assert main(["data", "export", *arguments]) == 0
  assert capsys.readouterr().err == ""
  monkeypatch.setenv("FORCE_COLOR", "1")  # for rich, a pipe is a terminal then
  assert main(["data", "export", *arguments]) == 0
  assert capsys.readouterr().err == ""
  monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
  assert main(["data", "export", *arguments]) == 0  # existing files are replaced
  assert "100%" in capsys.readouterr().err


def test_a_perturbed_corpus_stays_one(tiny, tmp_path, monkeypatch):
  """Else a counterfactual set would be scored in all of its turns."""
  corpus = tiny_corpus.mark_perturbed(tiny, monkeypatch, "ned")
  arguments = ["--corpus", str(corpus), "--variant", "v1", "--split", "test"]
  assert main(["data", "export", *arguments, "--out", str(tmp_path / "out")]) == 0
  name = "test/perturbation.json"
  assert (tmp_path / "out/v1" / name).read_text() == (corpus / name).read_text()


def test_a_perturbed_corpus_does_not_replace_its_original(tiny, tmp_path, capsys, monkeypatch):
  arguments = ["--variant", "v1", "--split", "test", "--out", str(tmp_path)]
  original = ["data", "export", "--corpus", str(tiny), *arguments]
  assert main(original) == 0
  before = {path: path.read_bytes() for path in (tmp_path / "v1/test").iterdir()}
  perturbed = shutil.copytree(tiny, tmp_path / "copy")
  corpus = tiny_corpus.mark_perturbed(perturbed, monkeypatch, "ned")
  assert main(["data", "export", "--corpus", str(corpus), *arguments]) == 1
  assert "has dialogues, but no test/perturbation.json" in capsys.readouterr().err
  assert {path: path.read_bytes() for path in (tmp_path / "v1/test").iterdir()} == before


def test_a_simulated_corpus_stays_one(tiny, tmp_path):
  """Regression: with services like SGD's, its copy passed for a part of SGD."""
  (tiny / "test/simulation.json").write_text("{}")
  arguments = ["--corpus", str(tiny), "--variant", "v1", "--split", "test"]
  for _ in range(2):
    assert main(["data", "export", *arguments, "--out", str(tmp_path / "out")]) == 0
  assert (tmp_path / "out/v1/test/simulation.json").read_text() == "{}"


def test_all_stands_beside_others(tiny, tmp_path):
  out = tmp_path / "out"
  arguments = ["--corpus", str(tiny), "--variant", "all", "corrupt_1", "--out", str(out)]
  assert main(["data", "export", *arguments]) == 0
  assert {path.name for path in out.iterdir()} == {"v1", "v2", "v3", "v4", "v5", "corrupt_1"}


@pytest.mark.parametrize("name", ["dialogues_009.json", "perturbation.json"])
def test_files_of_another_corpus_are_not_mixed_in(tiny, tmp_path, capsys, name):
  folder = tmp_path / "out/v1/test"
  folder.mkdir(parents=True)
  (folder / name).write_text("[]")
  arguments = ["--corpus", str(tiny), "--variant", "v1", "--out", str(tmp_path / "out")]
  assert main(["data", "export", *arguments]) == 1
  err = capsys.readouterr().err
  assert f"out/v1 contains test/{name}, which" in err
  assert f"fix:       delete {folder}" in err
  assert [path.name for path in folder.iterdir()] == [name]


def test_a_schema_in_another_encoding_is_refused(tiny, tmp_path, capsys):
  """Regression: a traceback. Reading takes UTF-16, but files are copied as UTF-8."""
  schema = tiny / "sgd_x/data/v1/test/schema.json"
  schema.write_text(schema.read_text(), encoding="utf-16")
  arguments = ["--corpus", str(tiny), "--variant", "v1", "--out", str(tmp_path / "out")]
  assert main(["data", "export", *arguments]) == 1
  assert "v1/test/schema.json: not UTF-8" in capsys.readouterr().err


def test_null_stands_for_no_spans_and_no_acts(tiny):
  schema = open_corpus(tiny).schema("test")
  data = json.loads((tiny / "test/dialogues_002.json").read_text())
  first_frame(data[0]).update(slots=None, actions=None)
  same = renamings(schema, schema)
  assert [convert_json(dialogue, same) for dialogue in data] == data
