"""`sgdx data`: what is printed, what is refused, and that nothing half-built is left."""

import json
import re
import shutil
import zipfile

import pytest
import tiny_corpus
from commands import assert_four_parts, next_command, python_code, sgdx_process
from places import ROOT, SUPPORT
from sample_folder import FEW_IN_TRAIN, few_in_train, write_sample

from sgdx_t5x.cli import main
from sgdx_t5x.cli.data.prepare import _next
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError


def test_prepare_prints_counts_and_where_records_are(prepared_sample, capfd, monkeypatch):
  few_in_train(monkeypatch)
  out, err = ((prepared_sample / name).read_text() for name in ("out", "err"))
  assert "original, v1, v2, v3, v4, v5, bt_zh, bt_ja, bt_ko" in out
  assert f"{prepared_sample}/data/sgd/sample/1.1.0" in out
  assert "PARTIAL" not in out
  # Only our own lines, on either stream.
  assert not [line for line in err.splitlines() if "dialogues" not in line]
  folder = str(prepared_sample / "data")
  assert main(["data", "prepare", "--corpus", "sample", "--data-dir", folder]) == 0
  again = "nothing written: the folder already has the records of this corpus\n"
  assert capfd.readouterr() == (out, again)


def test_some_dialogues_of_a_split(tmp_path, capsys, monkeypatch):
  """The printed command for the next step can be pasted."""
  few_in_train(monkeypatch)
  folder = tmp_path / "data sets"
  arguments = ["data", "prepare", "--corpus", "sample", "--data-dir", str(folder), "--dialogues"]
  for earlier in (False, True):
    assert main([*arguments, "train=3", "test=5"]) == 0
    out, error = capsys.readouterr()
    assert ("nothing written" in error) == earlier
    rows = {line.split()[0]: line.split() for line in out.splitlines()[2:5]}
    assert (rows["train"][1], rows["train"][-1]) == ("3", "PARTIAL")
    assert (rows["test"][1], rows["test"][-1]) == ("5", "PARTIAL")
    assert rows["dev"][-1] == "complete"
    words = next_command(out)
    assert words[:4] == ["python", "-m", "t5x.train", "--gin_file=gin/sample/t5dst.gin"]
    assert words[4:] == ["--gin.MODEL_DIR='runs/t5dst'", f"--tfds_data_dir={folder}"]
  assert main([*arguments, "train=4", "test=5"]) == 1
  assert "contains records of another corpus" in capsys.readouterr().err


@pytest.mark.parametrize(
  ("words", "said"),
  [
    (["test=0"], "has 160"),
    (["test=161"], "request 1 to 160"),
    (["tests=5"], "splits train, dev, test"),
    (["test"], "SPLIT=N"),
    (["test=5", "test=6"], "at most once per split"),
  ],
)
def test_dialogues_that_cannot_be_drawn(tmp_path, capsys, words, said):
  arguments = ["data", "prepare", "--corpus", "sample", "--data-dir", str(tmp_path)]
  assert main([*arguments, "--dialogues", *words]) == 2
  assert said in capsys.readouterr().err
  assert not list(tmp_path.iterdir())


def test_a_vocabulary_of_train(tmp_path, capsys, monkeypatch):
  import sentencepiece

  few_in_train(monkeypatch)
  out = tmp_path / "small.model"
  assert (
    main(["data", "vocabulary", "--corpus", "sample", "--out", str(out), "--pieces", "600"]) == 0
  )
  model = sentencepiece.SentencePieceProcessor(model_file=str(out))
  assert model.get_piece_size() == 600 + 15  # tags of D3ST and SDT, and signs missing in the text
  assert (model.pad_id(), model.eos_id(), model.unk_id()) == (0, 1, 2)  # as in T5
  assert len(model.encode("[USER] [domain] none")) == 3
  assert main(["data", "vocabulary", "--corpus", "sample", "--out", str(out), "--pieces", "9"]) == 2
  assert "more pieces than distinct characters" in capsys.readouterr().err
  assert main(["data", "vocabulary", "--corpus", "sample", "--out", f"{out}.gz"]) == 2
  assert "a vocabulary is not compressed" in capsys.readouterr().err
  tiny_corpus.write_corpus(tmp_path / "tiny")
  (tmp_path / "tiny/train/dialogues_001.json").write_text("[]")
  assert main(["data", "vocabulary", "--corpus", str(tmp_path / "tiny"), "--out", str(out)]) == 1
  assert "no dialogues in train" in capsys.readouterr().err
  shutil.rmtree(tmp_path / "tiny")
  for number in ("0", "99999999999"):  # regression: a traceback, and hours of training
    command = ("data", "vocabulary", "--corpus", "sample", "--out", str(out), "--pieces", number)
    assert main(list(command)) == 2
    assert f"--pieces {number}: expected 1 to 1,000,000\n" in capsys.readouterr().err
  assert list(tmp_path.iterdir()) == [out]


def test_records_are_written_locally(tmp_path, capsys):
  """Regression: records of another corpus in a bucket were reported as this one's."""
  assert main(["data", "prepare", "--corpus", "sample", "--data-dir", "gs://bucket/data"]) == 2
  assert "gcloud storage cp -r" in capsys.readouterr().err


def test_splits_without_dialogues_are_left_out_and_a_corpus_without_any_is_refused(
  tmp_path, capsys
):
  corpus = write_sample(tmp_path / "mine", {"train": 0, "test": 5, "dev": 0})
  (corpus / "dev/dialogues_001.json").write_text("[]")
  command = ["data", "prepare", "--corpus", str(corpus), "--data-dir", str(tmp_path / "data")]
  assert main(command) == 0
  assert re.search(r"services *\ntest .*\n\n", capsys.readouterr().out)
  (corpus / "test/dialogues_001.json").rename(corpus / "test/dialogues-001.json")
  assert main([*command[:-1], str(tmp_path / "other")]) == 1
  error = capsys.readouterr().err
  assert "mine: no dialogues" in error
  assert "available: train: 0 files, dev: 1 files, test: 0 files" in error
  # They are no download's, whatever they are called.
  assert main(["data", "prepare", "--download", "--data-dir", str(tmp_path / "data")]) == 1
  assert "expected:  no records, or those of the official archive" in capsys.readouterr().err


def test_other_data_are_not_overwritten_silently(tmp_path, capsys):
  corpus = tmp_path / "sgd_mine"
  write_sample(corpus, {"train": 0})
  (corpus / "train/dialogues_001.json").write_text("[]")
  arguments = ["data", "prepare", "--corpus", str(corpus), "--data-dir", str(tmp_path / "data")]
  # An empty train split cannot be written by TFDS: take dev's dialogues for it.
  seen = [
    d.to_json() for d in open_corpus("sample").dialogues("dev") if "Gyms" not in d.services[0]
  ]
  seen = [d for d in seen if d["services"][0] != "Courses_1"]
  (corpus / "train/dialogues_001.json").write_text(json.dumps(seen))
  assert main(arguments) == 0
  (corpus / "train/dialogues_001.json").write_text(json.dumps(seen[1:]))
  assert main(arguments) == 1
  assert "or delete this folder" in capsys.readouterr().err
  (corpus / "train/dialogues_001.json").write_text(json.dumps(seen))
  assert main(arguments) == 0
  assert f"{len(seen):,}" in capsys.readouterr().out
  # Damaged records are told, whatever TFDS reads first.
  [info] = (tmp_path / "data").glob("sgd/*/1.*/dataset_info.json")
  info.write_text(info.read_text()[:20])
  assert main(arguments) == 1
  err = capsys.readouterr().err
  assert "are damaged" in err
  assert f"remove {info.parents[1]}" in err


@pytest.mark.parametrize(
  ("break_it", "words"),
  [
    (lambda p: p.rename(p.with_name("gone.zip")), ("no archive or folder", "--download")),
    (lambda p: p.write_bytes(p.read_bytes()[:-500]), ("not a complete zip file",)),
  ],
)
def test_a_broken_archive_gives_four_parts_and_leaves_nothing(tmp_path, break_it, words, capsys):
  import zipfile

  archive = tmp_path / "sgd.zip"
  source = open_corpus("sample").source
  with zipfile.ZipFile(archive, "w") as z:
    for name in source.names():
      if not name.startswith("train/dialogues"):
        z.writestr(name, source.read(name))
  break_it(archive)
  data_dir = tmp_path / "data"
  assert main(["data", "prepare", "--corpus", str(archive), "--data-dir", str(data_dir)]) == 1
  error = capsys.readouterr().err
  for word in (*words, "expected:", "fix:"):
    assert word in error
  assert "Traceback" not in error
  assert not data_dir.exists()


def unknown_slot_at_the_end(data):
  data[-1]["turns"][0]["frames"][0]["state"]["slot_values"]["sise"] = ["big"]


@pytest.mark.parametrize(
  ("file", "change", "words"),
  [
    ("test/dialogues_001.json", unknown_slot_at_the_end, ("unknown slot 'sise'", "turn 0")),
    (
      "test/dialogues_001.json",
      lambda data: data[-1]["turns"][0]["frames"][0].update(service="Ferry_9"),
      ("unknown service 'Ferry_9'", "turn 0"),
    ),
    (
      "test/schema.json",
      lambda data: data[-1]["slots"].append(data[-1]["slots"][0]),
      ("twice",),
    ),
    (
      "sgd_x/data/v4/test/schema.json",
      lambda data: data[-1]["slots"].append({**data[-1]["slots"][0], "name": "one_more"}),
      ("slots", "aligned by position"),
    ),
  ],
)
def test_a_fault_late_in_the_data_leaves_nothing(tmp_path, capsys, file, change, words):
  corpus = write_sample(tmp_path / "mine", {"train": 20, "dev": 6, "test": 20})
  data = json.loads((corpus / file).read_text())
  change(data)
  (corpus / file).write_text(json.dumps(data))
  data_dir = tmp_path / "data"
  assert main(["data", "prepare", "--corpus", str(corpus), "--data-dir", str(data_dir)]) == 1
  error = capsys.readouterr().err
  for word in (*words, file, "expected:", "fix:"):
    assert word in error
  assert not list(data_dir.rglob("*.tfrecord*"))
  assert not list(data_dir.rglob("incomplete*"))


def test_verify_needs_no_tensorflow(tmp_path):
  code = f"import sys; sys.path.append({str(SUPPORT)!r}); from sgdx_t5x.cli import main; "
  code += f"from sample_folder import shorten_train; shorten_train({FEW_IN_TRAIN}); "
  code += "main(['data', 'verify', '--corpus', 'sample']); "
  code += "sys.exit('tensorflow' in sys.modules or 'jax' in sys.modules)"
  found = python_code(code)
  assert found.returncode == 0, found.stderr
  assert re.search(r"dev +100 +494 +504 +14", found.stdout)
  assert "aligned by position: original, v1" in found.stdout


@pytest.mark.parametrize("arguments", [[], ["data"], ["--help"], ["data", "prepare", "--help"]])
def test_help_is_quick_and_has_examples(arguments):
  found = sgdx_process(*arguments)
  assert found.returncode == 0
  assert "examples:" in found.stdout
  assert "sgdx data prepare --corpus sample" in found.stdout


@pytest.mark.parametrize("verb", ["verify", "prepare"])
@pytest.mark.parametrize("corpus", ["nowhere.zip", "sample"])
def test_a_corpus_is_named_as_in_every_command(monkeypatch, capsys, verb, corpus):
  def opened(given):
    raise SgdxError(f"opened {given}", expected="a test", fix="none")

  monkeypatch.setattr("sgdx_t5x.corpus.opening.open_corpus", opened)
  assert main(["data", verb, "--corpus", corpus]) == 1
  assert f"opened {corpus}\n" in capsys.readouterr().err


def test_wrong_usage_is_exit_code_2(tmp_path):
  assert sgdx_process("data", "prepare").returncode == 2
  assert sgdx_process("dota").returncode == 2


@pytest.mark.real
def test_verify_reports_the_real_test_split_as_partial(real_pass):
  rows = [line for line in real_pass.printed.splitlines()[:5] if line.strip()]
  lines = {line.split()[0]: line for line in rows}
  assert lines["train"].split()[1:4] == ["16,142", "164,982", "175,780"]
  assert "PARTIAL: 4,201 published" in lines["test"]
  assert "PARTIAL" not in lines["dev"]


@pytest.mark.parametrize(
  ("name", "file"),
  [("full", "gin/t5dst.gin"), ("sample", "gin/sample/t5dst.gin")],
)
def test_a_next_command_names_a_gin_file_that_there_is(name, file):
  assert f"--gin_file={file} " in _next(name, "d")
  assert (ROOT / file).exists()
  assert "t5x.train" not in _next(name, "d", can_train=False)


@pytest.mark.parametrize("name", ["other", "sample_other", "sdi_ned", "pi_aug"])
def test_records_that_no_task_reads(name):
  assert f"no built-in task reads records of this name: tasks of yours have data='{name}'" == (
    _next(name, "d")
  )


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
  assert main(["data", "verify", "--corpus", str(place)]) == 1
  assert_four_parts(capsys.readouterr().err, "contains 2 corpora", "available: a/, b/deeper/")
