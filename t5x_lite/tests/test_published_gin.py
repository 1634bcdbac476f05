"""Gin files in the forms that T5X's documentation shows parse and resolve unchanged.

The documentation fine-tunes T5 1.1 on a WMT mixture that the package `t5` registers. That package
is not needed here: a folder of the same name stands in for it.
"""

import pytest

FINETUNE = """
TRAIN_STEPS = 1_020_000  # 1,000,000 of pre-training and 20,000 more
DROPOUT_RATE = 0.0
MIXTURE_OR_TASK_NAME = "wmt_t2t_ende_v003"
TASK_FEATURE_LENGTHS = {"inputs": 256, "targets": 256}
INITIAL_CHECKPOINT_PATH = "gs://t5-data/pretrained_models/t5x/t5_1_1_base/checkpoint_1000000"
LOSS_NORMALIZING_FACTOR = 233472
"""
# With the modules imported (docs/usage/gin.md), and with tasks imported after the includes
# (docs/usage/finetune.md).
FORMS = {
  "dynamic": """
from __gin__ import dynamic_registration
import __main__ as train_script
from t5.data import mixtures
from t5x import models
from t5x import partitioning
from t5x import utils
include "t5x/examples/t5/t5_1_1/base.gin"
include "t5x/configs/runs/finetune.gin"
""",
  "plain": """
include 't5x/configs/runs/finetune.gin'
include 't5x/examples/t5/t5_1_1/base.gin'
import t5.data.tasks
""",
}
STANDS_FOR_T5 = """
import functools
import seqio
import tensorflow as tf
VOCABULARY = seqio.SentencePieceVocabulary(
  "gs://t5-data/vocabs/cc_all.32000.100extra/sentencepiece.model"
)
seqio.TaskRegistry.add(
  "wmt_t2t_ende_v003",
  seqio.FunctionDataSource(
    lambda split, shuffle_files, seed=None: None, splits=["train", "validation"]
  ),
  preprocessors=[],
  output_features={k: seqio.Feature(VOCABULARY) for k in ("inputs", "targets")},
)
"""


def _dry_run(server, folder, model_dir, code=0):
  args = ("--run_mode=train", "--dry_run", f"--gin.MODEL_DIR='{model_dir}'")
  return server.run("main", "user.gin", *args, cwd=folder, code=code)


@pytest.fixture
def user(tmp_path):
  """A user's folder, with the stand-in for `t5`."""
  data = tmp_path / "t5" / "data"
  data.mkdir(parents=True)
  for name in ("mixtures.py", "tasks.py"):
    (data / name).write_text(STANDS_FOR_T5)
  return tmp_path


@pytest.mark.parametrize("form", FORMS)
def test_a_published_fine_tuning_gin_resolves_unchanged(server, user, form):
  (user / "user.gin").write_text(FORMS[form] + FINETUNE)
  assert "configuration is complete" in _dry_run(server, user, "/tmp/finetune-model/")


def test_a_missing_t5_package_is_named(server, tmp_path):
  (tmp_path / "user.gin").write_text(FORMS["dynamic"] + FINETUNE)
  err = _dry_run(server, tmp_path, "m", code=1)
  assert "t5.data" in err
  assert "fix:" in err
  assert "Traceback" not in err
