"""Perturbed sets through the command line: perturb, prepare, evaluate in one run, check."""

import json
import shutil

import pytest
from commands import sgdx
from event_names import not_written
from places import DOCS, ROOT

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.records.prepare import prepare

pytestmark = pytest.mark.long
SMALL = (  # compilation takes most of the time
  "--gin.network.T5Config.num_encoder_layers=1",
  "--gin.network.T5Config.num_decoder_layers=1",
)


@pytest.fixture(scope="module")
def run(fork_server):
  """Runs t5x.SCRIPT with a gin file and further arguments to its end."""

  def run(script, gin, *arguments):
    fork_server.run(script, gin, *SMALL, *arguments, cwd=ROOT)

  return run


@pytest.fixture(scope="module")
def model(tmp_path_factory, run, small_sample):
  """A model trained for 30 steps, which answers "none" where most slots have no value."""
  folder = tmp_path_factory.mktemp("model")
  run(
    *("train", "gin/sample/t5dst_backtrans.gin", f"--gin.MODEL_DIR='{folder}'"),
    *("--gin.TRAIN_STEPS=30", "--gin.BATCH_SIZE=4", "--gin.EVAL_PERIOD=30", "--gin.EVAL_STEPS=1"),
    *("--gin.train.inference_evaluator_cls=None", f"--tfds_data_dir={small_sample}/data"),
  )
  return folder


def test_perturbed_sets_are_evaluated_and_checked_in_one_run(
  model, run, small_sample, tmp_path, capsys
):
  """As in docs/papers/checkdst.md: t5x.eval runs on the mixture, the check on its one folder."""
  corpus, data = small_sample / "sample", tmp_path / "data"
  shutil.copytree(small_sample / "data", data)
  sets = {kind: tmp_path / kind for kind in ("ned", "pi", "sdi")}
  for kind, place in sets.items():
    options = ("--corpus", corpus, "--split", "dev", "--out", place)
    assert sgdx("checkdst", "perturb", kind, *options) == 0
    prepare(open_corpus(place), data)
  run(
    *("eval", "gin/sample/eval.gin", "--gin.MIXTURE_OR_TASK_NAME='sample_t5dst_checkdst'"),
    "--gin.MIXTURE_OR_TASK_MODULE='sgdx_t5x.papers.checkdst.tasks'",
    "--gin.utils.DatasetConfig.split='dev'",
    f"--gin.CHECKPOINT_PATH='{model}/checkpoint_30'",
    f"--gin.EVAL_OUTPUT_DIR='{tmp_path / 'eval'}'",
    "--gin.TASK_FEATURE_LENGTHS={'inputs': 224, 'targets': 20}",  # fewer lengths to compile for
    f"--tfds_data_dir={data}",
  )
  name = "inference_eval/t5dst_checkdst_ned/eval/jga"
  assert f"`{name}`" in (DOCS / "papers/checkdst.md").read_text("utf-8")
  assert not not_written(tmp_path / "eval", [name])
  code = sgdx(
    *("checkdst", "check", "--corpus", corpus, "--split", "dev", "--bootstrap-samples", 100),
    *("--perturbed", *(f"{kind}={place}" for kind, place in sets.items())),
    *("--predictions", f"all={tmp_path / 'eval'}", "--json", tmp_path / "check.json"),
  )
  assert code == 0, capsys.readouterr().err
  found = json.loads((tmp_path / "check.json").read_text())["sets"]
  assert list(found) == ["original", *sets]
  for label, task in (("original", "sgd"), *((kind, f"checkdst_{kind}") for kind in sets)):
    file = tmp_path / "eval/inference_eval" / f"sample_t5dst_{task}-metrics.jsonl"
    seqio_jga = json.loads(file.read_text().splitlines()[-1])["jga"]
    assert seqio_jga == pytest.approx(found[label]["rows"]["all"]["jga"], abs=1e-9)
