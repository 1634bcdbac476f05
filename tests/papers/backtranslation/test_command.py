"""`sgdx backtranslate`: files, resuming after failures and kills, mistakes."""

import json
import os
import pathlib
import signal
import sys
import types
import zipfile

import pytest
import tiny_corpus as tiny
from commands import python_code
from fake_translator import Shouting
from places import ROOT

from sgdx_t5x.cli import main
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.variants import PIVOTS
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.backtranslation import checkpoint
from sgdx_t5x.variants.variant_schemas import VariantSchemas
from sgdx_t5x.variants.wording import wording


@pytest.fixture
def corpus(tmp_path):
  return tiny.write_corpus(tmp_path / "tiny")


@pytest.fixture
def shouting(monkeypatch):
  """Stands in for a checkpoint; `calls`, if set, is the number of batches before it fails."""
  translator = Shouting()
  monkeypatch.setattr(checkpoint, "CheckpointTranslator", lambda *args, **options: translator)
  return translator


def backtranslate(corpus, out, *args, provider="hf"):
  """Returns the exit code."""
  if provider == "hf":
    args = ("--model", str(corpus), *args)  # a folder; the translator is a stand-in
  return main(
    ["backtranslate", "--corpus", str(corpus), "--out", str(out), "--provider", provider, *args]
  )


def files(folder):
  return {
    str(path.relative_to(folder)): path.read_bytes()
    for path in sorted(folder.rglob("*"))
    if path.is_file() and ".cache" not in path.parts
  }


def write_table(path, original, wordings):
  rows = [
    {
      "element": e.key,
      "pivot": pivot,
      "pivot_text": "…",
      "text": text,
      "provider": "we",
      "date": "?",
    }
    for pivot, schema in wordings.items()
    for e, text in wording(schema, original).items()
  ]
  path.write_text("".join(json.dumps(row) + "\n" for row in rows))
  return str(path)


@pytest.mark.parametrize("pivot", PIVOTS)
def test_an_error_for_a_missing_back_translation_names_the_command(corpus, pivot):
  text = rf"(?s)'bt_{pivot}'.*sgdx backtranslate --split test.*FOLDER/{pivot}.*tasks/README\.md"
  with pytest.raises(SgdxError, match=text):
    VariantSchemas(open_corpus(corpus)).get("test", f"bt_{pivot}")


def test_the_table_of_the_sample_gives_the_schemas_of_the_sample(tmp_path, capsys):
  corpus = open_corpus("sample")
  wordings = {pivot: corpus.schema("train", f"bt_{pivot}") for pivot in PIVOTS}
  table = write_table(tmp_path / "t.jsonl", corpus.schema("train"), wordings)
  out = tmp_path / "out"
  assert backtranslate("sample", out, "--table", table, provider="table") == 0
  for pivot in PIVOTS:
    written = json.loads((out / pivot / "train" / "schema.json").read_text())
    assert written == wordings[pivot].to_json()
  shown = capsys.readouterr()
  assert "ko: 204 texts, 18 returned unchanged\n    repairs: none\n" in shown.err
  assert f'register_variant("out_ja", "{out}/ja", ...)' in shown.err
  assert shown.out == ""


def test_the_printed_names_can_be_registered(tmp_path, capsys):
  """A pivot of a region, letters that names cannot have, and the name of a built-in task."""
  corpus = open_corpus("sample")
  schema = corpus.schema("train", "bt_zh")
  wordings = {"zh-TW": schema, "zh": schema}
  table = write_table(tmp_path / "t.jsonl", corpus.schema("train"), wordings)
  for folder, pivot, name in (
    ("bt-tw", "zh-TW", "bt_tw_zh_TW"), ("schémas", "zh", "sch_mas_zh"), ("bt", "zh", "my_bt_zh"),
  ):  # fmt: skip
    options = ("--table", table, "--pivots", pivot)
    assert backtranslate("sample", tmp_path / folder, *options, provider="table") == 0
    assert f'register_variant("{name}", ' in capsys.readouterr().err


def test_the_shipped_table_says_whose_texts_it_has(real_archive, tmp_path, capsys):
  with zipfile.ZipFile(real_archive) as z:
    (name,) = [n for n in z.namelist() if n.endswith("master/train/schema.json")]
    services = json.loads(z.read(name))[:2]
  (tmp_path / "part/train").mkdir(parents=True)
  (tmp_path / "part/train/schema.json").write_text(json.dumps(services))
  out = tmp_path / "out"
  assert backtranslate(tmp_path / "part", out, "--pivots", "zh", provider="table") == 0
  err = capsys.readouterr().err
  assert "the texts are those of SGD's train schema" in err
  assert f'register_variant("out_zh", "{out}/zh"' in err


def test_a_corpus_takes_the_result_and_the_table_its_own(corpus, shouting, tmp_path, capsys):
  """18 elements, 16 distinct texts; both intents are `Do`, `do it`."""
  out = corpus / "back_translations"
  assert backtranslate(corpus, out) == 0
  assert shouting.count("en") == 3 * 16
  assert set(files(out)) == {
    f"{p}/train/{f}" for p in PIVOTS for f in ("schema.json", "texts.jsonl")
  }
  [banks, _] = open_corpus(corpus).schema("train", "bt_ja")
  assert banks.name == "BanksJaEn_1"
  assert [slot.name for slot in banks.slots][:2] == ["kind_ja_en", "to_ja_en"]
  assert banks.intents[0].required_slots == ("kind_ja_en",)
  shown = capsys.readouterr().err
  assert "zh: 18 texts, 0 returned unchanged" in shown
  assert f'register_variant("back_translations_zh", "{out}/zh", ...)' in shown
  tables = [str(out / pivot / "train" / "texts.jsonl") for pivot in PIVOTS]
  again = tmp_path / "again"
  assert backtranslate(corpus, again, "--table", *tables, provider="table") == 0
  assert files(again) == files(out)


def test_repairs_are_shown_and_written(corpus, tmp_path, capsys):
  original = open_corpus(corpus).schema("train")
  table = pathlib.Path(write_table(tmp_path / "t.jsonl", original, {"zh": original}))
  text = table.read_text().replace('"text": "amount"', '"text": "Kind!"')
  table.write_text(text.replace('"text": "to"', '"text": "到"'))
  args = ["--table", str(table), "--pivots", "zh"]
  assert backtranslate(corpus, tmp_path / "out", *args, provider="table") == 0
  shown = capsys.readouterr().err
  assert "zh: 18 texts, 16 returned unchanged\n    repairs: 1 collision, 1 untranslated" in shown
  lines = (tmp_path / "out/zh/train/repairs.jsonl").read_text().splitlines()
  assert [json.loads(line) for line in lines] == [
    {"element": "Banks_1/slot/to/name", "found": "到", "made": "to", "rule": "untranslated"},
    {
      "element": "Banks_1/slot/amount/name",
      "found": "Kind!",
      "made": "kind_2",
      "rule": "collision",
    },
  ]


def test_the_same_command_goes_on_after_a_failure(corpus, shouting, tmp_path, capsys):
  """16 texts are 6 batches of 3 each way; the third pivot fails in its second batch."""
  assert backtranslate(corpus, tmp_path / "whole") == 0
  shouting.sent.clear()
  shouting.calls = 6 * 2 * 2 + 1
  assert backtranslate(corpus, tmp_path / "out") == 1
  error = capsys.readouterr().err
  for part in ("ConnectionError: the line is dead", "expected:", "kept in", "same command again"):
    assert part in error
  assert set(files(tmp_path / "out")) < set(files(tmp_path / "whole"))
  shouting.calls = None
  shouting.sent.clear()
  for _ in range(2):  # the second run needs no translations
    assert backtranslate(corpus, tmp_path / "out") == 0
    assert (shouting.count("en"), shouting.count("ko")) == (16 - 3, 16)
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_an_interrupted_command_says_how_to_resume(corpus, shouting, tmp_path, capsys, monkeypatch):
  def translate(*batch):
    if len(shouting.sent) == 4:
      os.kill(os.getpid(), signal.SIGTERM)
    return Shouting.translate(shouting, *batch)

  monkeypatch.setattr(shouting, "translate", translate)
  assert backtranslate(corpus, tmp_path / "out", "--pivots", "zh") == 143
  stopped = "sgdx: terminated; run the same command again to resume\n"
  assert capsys.readouterr().err.endswith(stopped)
  monkeypatch.undo()
  assert shouting.count("en") == 12


_KILLED = """
import os, signal, sys
from fake_translator import Shouting
from sgdx_t5x.papers.backtranslation import checkpoint
from sgdx_t5x.cli import main

class Dying(Shouting):
  def translate(self, *args):
    if len(self.sent) == 4:
      os.kill(os.getpid(), signal.SIGKILL)
    return super().translate(*args)

checkpoint.CheckpointTranslator = lambda *args, **options: Dying()
main(sys.argv[1:])
"""


def test_a_kill_loses_one_batch(corpus, shouting, tmp_path):
  args = ["backtranslate", "--corpus", str(corpus), "--out", str(tmp_path / "out")]
  path = f"{ROOT}/tests/papers/support{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
  args += ["--provider", "hf", "--model", str(corpus), "--pivots", "zh"]
  done = python_code(_KILLED, *args, env={**os.environ, "PYTHONPATH": path})
  assert done.returncode == -signal.SIGKILL
  assert files(tmp_path / "out") == {}
  assert backtranslate(corpus, tmp_path / "out", "--pivots", "zh") == 0
  assert (shouting.count("en"), shouting.count("zh")) == (16 - 12, 16)


def test_schemas_of_other_texts_are_not_lost(corpus, shouting, tmp_path, capsys):
  out = tmp_path / "out"
  assert backtranslate(corpus, out, "--pivots", "zh") == 0
  path = out / "zh" / "train" / "schema.json"
  path.write_text(path.read_text().replace("kind_zh_en", "kind_by_hand"))
  assert backtranslate(corpus, out, "--pivots", "zh") == 1
  assert "already exists and is not empty" in capsys.readouterr().err
  assert "kind_by_hand" in path.read_text()


@pytest.mark.parametrize(
  ("args", "code", "part"),
  [
    (["--provider", "table"], 1, "no zh record for 1 services (Shops_1)"),
    (["--provider", "table", "--pivots", "fr"], 1, "no records for pivot 'fr'"),
    (["--provider", "table", "--table", "nowhere"], 1, "nowhere: No such file"),
    (["--provider", "table", "--model", "x"], 2, "another provider with --provider table"),
    (["--provider", "hf", "--pivots", "../x"], 2, "--pivots ../x"),
    (["--provider", "hf", "--pivots", "en"], 2, "--pivots en"),
    (
      [
        "--provider",
        "hf",
        "--model",
        ".",
        "--pivots",
        "zh",
        "zh",
        "--source",
        "en",
        "--target",
        "zh",
        "zh_TW",
      ],
      2,
      "--pivots zh zh",
    ),
    (["--provider", "hf", "--model", ".", "--split", "dev"], 1, "no split 'dev'"),
    (["--provider", "hf"], 2, "--provider hf without --model"),
    (["--provider", "hf", "--model", "."], 1, "the package transformers is not installed"),
    (["--provider", "hf", "--model", ".", "--source", "en"], 2, "--target missing"),
    (
      ["--provider", "hf", "--model", ".", "--source", "en", "--target", "zh"],
      2,
      "one target for each of zh ja ko",
    ),
  ],
)
def test_mistakes_get_an_exit_code_and_four_parts(
  corpus, tmp_path, capsys, monkeypatch, args, code, part
):
  monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
  monkeypatch.setitem(sys.modules, "transformers", None)  # as if it were not installed
  command = ["backtranslate", "--corpus", str(corpus), "--out", str(tmp_path / "out")]
  assert main([*command, *args]) == code
  error = capsys.readouterr().err
  for word in (part, "expected:", "fix:"):
    assert word in error
  assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_told(corpus, shouting, tmp_path, capsys):
  (tmp_path / "file").touch()
  assert backtranslate(corpus, tmp_path / "file") == 1
  assert "Not a directory" in capsys.readouterr().err


def test_help_has_examples(capsys):
  with pytest.raises(SystemExit):
    main(["backtranslate", "--help"])
  shown = capsys.readouterr().out
  assert "examples:" in shown
  assert "--source eng_Latn --target zho_Hans" in shown
  assert all(len(line) <= 100 for line in shown.splitlines())


def test_the_same_command_may_be_repeated_in_a_corpus(corpus, shouting):
  """There, the schemas it wrote are inputs of the corpus, which must not be replaced."""
  out = corpus / "back_translations"
  assert backtranslate(corpus, out, "--pivots", "zh") == 0
  assert backtranslate(corpus, out, "--pivots", "zh", "ja") == 0
  before = files(out)
  assert backtranslate(corpus, out, "--pivots", "zh", "ja") == 0
  assert files(out) == before
