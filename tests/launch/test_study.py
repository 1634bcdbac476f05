"""launch/study.sh: dry runs, what it refuses, and small real studies on the sample."""

import hashlib
import json
import lzma
import pathlib
import re
import shlex
import shutil
import statistics
import subprocess
import sys

import pytest
from cloud import copy_parts, mark_installed
from places import ROOT
from sample_folder import write_sample

from sgdx_t5x.report.runs import read_run

RESULTS = ROOT / "benchmarks/results"
KEPT = {  # runs in the page's tables: what follows their names, the groups in their last columns
  "study/test/*-0": ("", ("seen", "unseen")),
  "study_spandst/whole_epoch/*-?": ("", ("seen", "unseen")),
  "study_spandst/test/*-?": (", 5,200 steps", ()),
  "study_spandst/whole/*-?": (", 5,200 steps, whole test", ()),
  "study_t5dst/test/*-?": (", T5DST on MiniLM", ("seen", "unseen")),
}


def study(*words, root=ROOT):
  command = [root / "launch/study.sh", *words]
  return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def function_of_script(name):
  """Returns the text of a function of launch/study.sh."""
  script = (ROOT / "launch/study.sh").read_text("utf-8")
  return re.search(rf"^{name}\(\) \{{.*?^\}}", script, re.MULTILINE | re.DOTALL)[0]


def test_dry_run_prints_every_command(tmp_path):
  out = tmp_path / "out"
  done = study("--archive", tmp_path, "--out", out, "--seeds", "3,4", "--arms=oracle", "--dry-run")
  assert done.returncode == 0, done.stderr
  assert not out.exists()
  commands = [shlex.split(line) for line in done.stdout.splitlines()]
  trained = [words for words in commands if "t5x.train" in words]
  assert [words[3] for words in trained] == ["--gin_file=gin/t5dst.gin"] * 2
  assert [words[4] for words in trained] == ["--gin.MIXTURE_OR_TASK_NAME='t5dst_oracle'"] * 2
  assert [words[5] for words in trained] == ["--gin_file=gin/study/model.gin"] * 2
  assert [words[-2] for words in trained] == ["--gin.RANDOM_SEED=3", "--gin.RANDOM_SEED=4"]
  paraphrased = study("--archive", tmp_path, "--arms", "paraphrase", "--dry-run").stdout
  arm = ["--gin_file=gin/t5dst.gin", "--gin.MIXTURE_OR_TASK_NAME='t5dst_paraphrase'"]
  assert arm in [shlex.split(line)[3:5] for line in paraphrased.splitlines()]
  splits = [
    word for words in commands for word in words if word.startswith("--gin.utils.DatasetConfig.spl")
  ]
  assert [word.split("=")[1] for word in splits] == ["'dev'", "'test'"] * 2
  report = next(words for words in commands if words[:2] == ["sgdx", "report"])
  assert report[2:4] == [f"oracle#{n}={out}/results/test/oracle-{n}.json" for n in (3, 4)]


def test_dry_run_of_a_span_tracker(tmp_path):
  encoder, out = tmp_path / "encoder", tmp_path / "out"
  encoder.mkdir()
  (encoder / "vocab.txt").touch()
  words = ("--archive", tmp_path, "--out", out, "--tracker", "spandst", "--encoder", encoder)
  done = study(*words, "--arms", "none,reworded,scratch", "--dialogues", "test=7", "--dry-run")
  assert done.returncode == 0, done.stderr
  commands = [shlex.split(line) for line in done.stdout.splitlines()]
  start = f"--gin.INITIAL_CHECKPOINT_PATH='{out}/encoder/checkpoint_0'"
  assert [words[3:-5] for words in commands if "t5x.train" in words] == [
    ["--gin_file=gin/spandst.gin", start],
    ["--gin_file=gin/spandst.gin", "--gin.MIXTURE_OR_TASK_NAME='spandst_reworded'", start],
    [
      "--gin_file=gin/spandst.gin",
      "--gin.INITIAL_CHECKPOINT_PATH=[]",
      "--gin.optimizer.bert_adam.times={'': 10.0}",
    ],
  ]
  tracked = [words for words in commands if words[:2] == ["sgdx", "track"]]
  assert [words[words.index("--split") + 1] for words in tracked] == ["dev", "test"] * 3
  assert ["--limit" in words for words in tracked] == [False, True] * 3
  assert "v5=" + str(out / "none-0/eval_test/v5") in done.stdout
  for more, imports in ((), False), (("--overfit",), True):  # it overfits the arm `none`
    scratch = study(*words, "--arms", "scratch", *more, "--dry-run")
    assert ("sgdx weights import" in scratch.stdout) == imports


def test_dry_run_of_t5dst_on_an_encoder(tmp_path):
  (tmp_path / "vocab.txt").touch()
  words = ("--archive", tmp_path, "--encoder", tmp_path, "--arms", "backtrans", "--dry-run")
  done = study(*words, "--dialogues", "dev=3,test=7")
  assert done.returncode == 0, done.stderr
  assert f"export SGDX_VOCAB={tmp_path}/vocab.txt\n" in done.stdout
  commands = [shlex.split(line) for line in done.stdout.splitlines()]
  assert [words[3:-3] for words in commands if "t5x.train" in words] == [
    [
      "--gin_file=gin/t5dst.gin",
      "--gin.MIXTURE_OR_TASK_NAME='t5dst_backtrans'",
      "--gin.INITIAL_CHECKPOINT_PATH='runs/study/encoder/checkpoint_0'",
      "--gin_file=gin/models/minilm_t5.gin",
      "--gin_file=gin/study/t5dst_minilm.gin",
    ]
  ]
  tracked = [words for words in commands if words[:2] == ["sgdx", "track"]]
  assert [words[words.index("--limit") + 1] for words in tracked] == ["3", "7"]


# The scores of the tracker that ships have no sums: tests of its card compare them.
@pytest.mark.parametrize("name", sorted({x.name for x in RESULTS.iterdir()} - {"shipped"}))
def test_the_kept_scores_are_intact(name):
  results = RESULTS / name
  sums = (results / "SHA256SUMS").read_text().splitlines()
  assert len(sums) == sum(path.is_file() for path in results.rglob("*")) - 1
  for digest, file in map(str.split, sums):
    assert hashlib.sha256((results / file).read_bytes()).hexdigest() == digest, file


def test_kept_scores_find_their_frames():
  """`sgdx diff` and `sgdx report` follow the name in a file of scores."""
  for frames in RESULTS.rglob("*.frames.jsonl.xz"):
    name = frames.name.removesuffix(".xz")
    scores = frames.with_name(name.replace(".frames.jsonl", ".json.xz"))
    assert json.loads(lzma.decompress(scores.read_bytes()))["per_frame"]["file"] == name, scores


def percents(scores):
  return f"{100 * scores['jga_orig']:.1f}", f"{100 * scores['jga_v1_5']:.1f}"


@pytest.mark.parametrize("runs", KEPT)
def test_the_kept_scores_are_those_of_the_page(runs):
  """Scores in docs/study.md come from files that `sgdx` reads."""
  page = (ROOT / "docs/study.md").read_text("utf-8")
  lines = [line.removesuffix(" |") for line in page.splitlines()]
  suffix, groups = KEPT[runs]
  files = sorted(RESULTS.glob(f"{runs}.json.xz"))
  assert read_run("run", files[0]).report["complete"] is False  # with its scores per frame
  for file in files:
    name = file.name.removesuffix(".json.xz")
    report = json.loads(lzma.decompress(file.read_bytes()))
    arm, _, seed = name.rpartition("-")
    label = (arm if seed == "0" else f"{arm}, seed {seed}") + suffix
    row = [*percents(report["sgdx"]["all"])]
    row += [", ".join(percents(report["sgdx"][group])) for group in groups]
    rows = [line.split(" | ") for line in lines if line.startswith(f"| {label} | ")]
    ends = len(groups)
    shown = [[*(x.split()[0] for x in cells[1:3]), *cells[len(cells) - ends :]] for cells in rows]
    assert row in shown, label
    assert report["signature"] in page


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
@pytest.mark.parametrize(
  ("condition", "label"),
  [
    ("none", "alone"),
    ("backtrans", "back-translations"),
    ("paraphrase", "paraphrases"),
    ("reworded", "and both"),
    ("oracle", "(oracle)"),
  ],
)
def test_the_first_pages_have_the_means_over_seeds(condition, label, page):
  reports = [
    json.loads(lzma.decompress(file.read_bytes()))["sgdx"]["all"]
    for file in RESULTS.glob(f"study_spandst/whole_epoch/{condition}-?.json.xz")
  ]
  means = [100 * statistics.mean(x[key] for x in reports) for key in ("jga_orig", "jga_v1_5")]
  lines = (ROOT / page).read_text("utf-8").splitlines()
  row = next(x.split("|") for x in lines if x.startswith("| a") and label in x)
  assert int(row[2]) == len(reports)
  assert [x.split()[0] for x in row[3:5]] == [f"{mean:.1f}" for mean in means]


@pytest.mark.parametrize(
  ("words", "said"),
  [
    ([], "--archive is missing"),
    (["--archive", "nowhere.zip"], "nowhere.zip does not exist"),
    (["--archive", ".", "--arms", "backtran"], "available: none backtrans oracle"),
    (["--archive", ".", "--arm", "none"], "available: --archive --out"),
    (["--archive", ".", "--skip", "evaluation"], "available: train eval score report"),
    (["--archive", ".", "--jobs", "0"], "1 or more"),
    (["--archive", ".", "--seeds", "a"], "not a whole number"),
    (["--archive", ".", "--seeds", "08"], "08 is not a whole number"),  # nor for gin
    (["--archive", ".", "--dialogues", "tset=3"], "--dialogues tset=3"),
    (["--archive", ".", "--dialogues", "test=x"], "--dialogues test=x"),
    (["--archive", ".", "--train", "gin/study/trian.gin"], "gin/study/trian.gin: no such file"),
    (["--archive", ".", "--vocabulary", "none.model"], "no such file"),
    (["--archive"], "has no value"),
    (["--archive", ".", "--tracker", "span"], "available: t5dst spandst"),
    (["--archive", ".", "--tracker", "spandst"], "--encoder is missing"),
    (["--archive", ".", "--tracker", "spandst", "--encoder", "gin"], "gin has no vocab.txt"),
    (["--archive", ".", "--arms", "scratch"], "available: none backtrans oracle corrupt"),
    (["--archive", ".", "--arms", "none,oracle,none"], "none twice"),
    (["--archive", ".", "--seeds", "0,1,1"], "1 twice\n  fix:       omit one of the two\n"),
    (["--archive", ".", "--arms", ""], "one or more"),
    (["--archive", ".", "--encoder", "gin"], "gin has no vocab.txt"),
    (["--archive", ".", "--encoder", "gin", "--vocabulary", "a"], "--vocabulary a with an encoder"),
  ],
)
def test_refuses(words, said):
  done = study(*words, "--dry-run") if words != ["--archive"] else study(*words)
  assert done.returncode == 2
  assert said in done.stderr
  assert [line.split(":")[0].strip() for line in done.stderr.splitlines()[-3:]] == [
    "expected", "available", "fix",
  ]  # fmt: skip


def test_another_encoder_in_the_same_folder_is_refused(tmp_path):
  """Runs name it by a variable of the environment, which is not in their commands."""
  steps = [function_of_script(name) for name in ("same_input", "digest")]
  (tmp_path / "a").write_text("a")
  (tmp_path / "b").write_text("b")
  call = 'same_input vocabulary "$1"; same_input encoder a; same_input encoder "$2"'
  command = "\n".join((f"source {ROOT}/launch/common.sh; out=.", *steps, call))

  def run(*names):
    return subprocess.run(
      ["bash", "-c", command, "-", *names], cwd=tmp_path, capture_output=True, text=True
    )

  assert run("b", "a").returncode == run("b", "a").returncode == 0
  for names, what in ("aa", "vocabulary"), ("bb", "encoder"):
    done = run(*names)
    assert done.returncode == 1
    assert f"is not the {what} that . was begun with" in done.stderr


@pytest.mark.parametrize(
  ("jobs", "given", "share"), [(1, "", ""), (2, "", "0.45"), (12, "", "0.075"), (12, ".04", ".04")]
)
def test_arms_share_the_memory_of_a_gpu(jobs, given, share):
  function = function_of_script("share_memory")
  name = "XLA_PYTHON_CLIENT_MEM_FRACTION"
  steps = f"jobs={jobs} {name}={given}\n{function}\nset -eu\nshare_memory\necho ${name}"
  done = subprocess.run(["bash", "-c", steps], capture_output=True, text=True, check=True)
  assert done.stdout.strip() == share


@pytest.mark.parametrize("code", [0, 3])
def test_waits_for_an_arm_that_is_suspended(code):
  """Under job control, bash's `wait` returns when a process is stopped; that once ended studies."""
  steps = f"""{function_of_script("ended")}
    set -m
    (sleep 1; exit {code}) &
    arm=$!
    (sleep 0.2; kill -STOP $arm; sleep 1.2; kill -CONT $arm) &
    ended $arm"""
  assert subprocess.run(["bash", "-c", steps], check=False).returncode == code


@pytest.fixture
def repository(tmp_path):
  """The parts of a clone that the script needs, with this Python's environment as its .venv.

  Beside it lies an archive whose services are not SGD's.
  """
  write_sample(tmp_path / "archive", {"train": 60, "dev": 12, "test": 12})
  copy_parts(tmp_path)
  (tmp_path / ".venv").mkdir()
  for name in ("bin", "lib", "pyvenv.cfg"):
    (tmp_path / ".venv" / name).symlink_to(pathlib.Path(sys.prefix) / name)
  mark_installed(tmp_path)
  (tmp_path / "gin/study/tiny.gin").write_text(
    "from __gin__ import dynamic_registration\n"
    "from t5x import utils\n"
    "include 'gin/study/train.gin'\n"
    "TASK_FEATURE_LENGTHS = {'inputs': 144, 'targets': 16}\n"
    "TRAIN_STEPS = 4\nEVAL_PERIOD = 4\nEVAL_STEPS = 1\nEVALUATOR_NUM_EXAMPLES = 12\n"
    "utils.SaveCheckpointConfig.period = 4\n"
  )
  (tmp_path / "gin/study/tiny_model.gin").write_text(
    "from __gin__ import dynamic_registration\n"
    "from t5x.examples.t5 import network\n"
    "include 'gin/study/model.gin'\n"
    "TASK_FEATURE_LENGTHS = {'inputs': 144, 'targets': 16}\n"
    "network.T5Config.num_encoder_layers = 1\n"
    "network.T5Config.num_decoder_layers = 1\n"
  )
  return tmp_path


# Stands for `python` and `sgdx`. Trainings wait until two have begun, and fail one after the other.
FAKE_TRACKER = """#!/usr/bin/env bash
case "$*" in
  *" t5x.train "*)
    for word; do case "$word" in --gin.MODEL_DIR=*) model="$(eval echo "${word#*=}")" ;; esac; done
    mkdir -p "$model"
    echo "$*" > "$model/config.gin"
    for ((i = 0; i < 600; i++)); do
      [ "$(ls -d runs/study/*/model | wc -l)" != 2 ] || exit 0
      sleep .1
    done
    exit 1 ;;
  "-c "*) echo 0 1 ;;
  "-m pip "*) echo jax==1.0 ;;
  *) echo "made by ${0##*/} $1 $2" ;;
esac
"""


def test_arms_are_trained_in_parallel(tmp_path):
  copy_parts(tmp_path)
  for name in ("python", "sgdx"):
    (tmp_path / ".venv/bin").mkdir(parents=True, exist_ok=True)
    (tmp_path / ".venv/bin" / name).write_text(FAKE_TRACKER)
    (tmp_path / ".venv/bin" / name).chmod(0o755)
  mark_installed(tmp_path)
  vocabulary = ROOT / "sgdx_t5x/corpus/sample/vocabulary.model"
  words = ("--archive", ".", "--arms", "none,corrupt", "--jobs", "2", "--vocabulary", vocabulary)
  done = study(*words, root=tmp_path)
  assert done.returncode == 0, done.stderr + done.stdout
  for arm in ("none-0", "corrupt-0"):
    assert f"{arm}: made by python -m t5x.eval" in done.stdout
    assert f"runs/study/{arm}/model" in (tmp_path / f"runs/study/results/{arm}.gin").read_text()


@pytest.mark.long
def test_a_study_ends_and_goes_on(repository):
  words = (
    *("--archive", "archive", "--arms", "corrupt", "--dialogues", "train=40,dev=1,test=2"),
    *("--train", "gin/study/tiny.gin", "--model", "gin/study/tiny_model.gin"),
    *("--vocabulary", ROOT / "sgdx_t5x/corpus/sample/vocabulary.model"),
  )
  first = study(*words, "--skip", "report", root=repository)
  assert first.returncode == 0, first.stderr + first.stdout
  results = repository / "runs/study/results"
  scores = json.loads((results / "test/corrupt-0.json").read_text())
  assert scores["sgdx"]["all"]["num_dialogues"] == 2
  assert scores["sgdx"]["all"]["ss_jga"] is not None
  assert not scores["complete"]
  assert "TRAIN_STEPS = 4" in (results / "corrupt-0.gin").read_text()
  model = repository / "runs/study/corrupt-0/model/checkpoint_4"
  before = model.stat().st_mtime_ns

  again = study(*words, root=repository)
  assert again.returncode == 0, again.stderr + again.stdout
  assert model.stat().st_mtime_ns == before
  assert "t5x: step" not in again.stdout + again.stderr
  assert (results / "report/report.html").stat().st_size > 100_000
  other = study(*words, "--model", "gin/models/from_scratch_mini.gin", root=repository)
  assert other.returncode == 1
  assert "trained was made by a different command" in other.stdout + other.stderr
  sums = dict(reversed(line.split()) for line in (results / "SHA256SUMS").read_text().splitlines())
  assert {"./test/corrupt-0.json", "./about.txt", "./corrupt-0.gin"} <= sums.keys()
  for name, digest in sums.items():
    assert hashlib.sha256((results / name).read_bytes()).hexdigest() == digest


@pytest.mark.long
def test_a_study_of_a_span_tracker_ends(repository):
  (repository / "encoder").mkdir()
  shutil.copy(ROOT / "sgdx_t5x/corpus/sample/vocab.txt", repository / "encoder")
  (repository / "encoder/tokenizer_config.json").write_text('{"do_lower_case": true}')
  (repository / "gin/study/tiny.gin").write_text(
    "from __gin__ import dynamic_registration\n"
    "from t5x import utils\n"
    "include 'gin/study/spandst.gin'\n"
    "utils.SaveCheckpointConfig.period = 2\n"
    "TRAIN_STEPS = 2\nEVAL_PERIOD = 2\nEVAL_STEPS = 1\nEVALUATOR_NUM_EXAMPLES = 1\n"
    "BATCH_SIZE = 2\n"
  )
  (repository / "gin/study/tiny_model.gin").write_text(
    "from __gin__ import dynamic_registration\n"
    "from sgdx_t5x.spandst import encoder\n"
    "include 'gin/models/minilm.gin'\n"
    "encoder.BertConfig:\n"
    "  emb_dim = 16\n  num_heads = 2\n  num_layers = 1\n  mlp_dim = 16\n"
  )
  done = study(
    *("--archive", "archive", "--tracker", "spandst", "--encoder", "encoder"),
    *("--arms", "scratch", "--dialogues", "train=9,dev=1,test=2"),
    *("--train", "gin/study/tiny.gin", "--model", "gin/study/tiny_model.gin"),
    root=repository,
  )
  assert done.returncode == 0, done.stderr + done.stdout
  results = repository / "runs/study/results"
  scores = json.loads((results / "test/scratch-0.json").read_text())
  assert scores["sgdx"]["all"]["num_dialogues"] == 2
  assert scores["sgdx"]["all"]["ss_jga"] is not None
  assert (results / "report/report.html").exists()
