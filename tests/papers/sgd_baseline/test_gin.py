"""Every gin file of the SGD paper's baseline parses, with every encoder and machine."""

import pytest
from gin_cases import (
  added_scale,
  encoder_cases,
  files_below,
  names,
  parse,
  tracker_cases,
  tried_files,
)

FOLDER = "gin/papers/sgd_baseline"
TRAINING = f"{FOLDER}/baseline"
CASES = {
  **tracker_cases(FOLDER, "baseline", start=True),
  **tracker_cases(f"{FOLDER}/sample", "baseline", start=False),
  **encoder_cases(f"{TRAINING}.gin"),
}
INCLUDED = {f"{FOLDER}/model.gin", f"{FOLDER}/sample/baseline_model.gin"}
OF_CORE = {file for file in tried_files(CASES) if not file.startswith(FOLDER)}


@pytest.fixture(scope="module")
def parsed():
  return parse(CASES)


@pytest.mark.parametrize("name", CASES)
def test_parses(parsed, name):
  assert isinstance(parsed[name], dict), parsed[name]


def test_every_file_is_tried():
  assert tried_files(CASES) - OF_CORE | INCLUDED == files_below(FOLDER)


def test_the_papers_settings(parsed):
  """SGD paper, section 5, baseline: batch 32, 80 epochs of 175,780 frames."""
  assert parsed[TRAINING] == {
    "MIXTURE_OR_TASK_NAME": "baseline_sgd",
    "BATCH_SIZE": 32,
    "TRAIN_STEPS": 80 * 175_780 // 32,
    "INITIAL_CHECKPOINT_PATH": "/c",
  }


def test_machines_leave_its_batch(parsed):
  """Its number of steps counts on it. Regression: a scale file halved it."""
  for scale in names("scale/encoders"):
    assert parsed[f"{TRAINING}.gin gin/scale/encoders/{scale}.gin"] == parsed[TRAINING]
  assert added_scale(f"{TRAINING}.gin") == "gin/scale/encoders/cpu.gin"
