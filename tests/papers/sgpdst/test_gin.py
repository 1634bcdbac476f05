"""Every gin file of SGP-DST parses."""

import pytest
from gin_cases import (
  EVAL,
  INFER,
  START,
  TRAIN,
  added_scale,
  encoder_cases,
  files_below,
  names,
  parse,
  tried_files,
)

from sgdx_t5x.papers.sgpdst.sgpdst import PARTS

FOLDER = "gin/papers/sgpdst"
COPY = ["--gin.MIXTURE_OR_TASK_NAME='sgpdst_copy_sgdx_v3'", "--gin.PART='copy'"]
CASES = {
  **{f"{FOLDER}/{part}": ([f"{FOLDER}/{part}.gin"], [*TRAIN, START]) for part in PARTS},
  **{f"{FOLDER}/sample/{part}": ([f"{FOLDER}/sample/{part}.gin"], TRAIN) for part in PARTS},
  **{f"{where}/{run}": ([f"{where}/{run}.gin"], [*flags, *COPY])
     for where in (FOLDER, f"{FOLDER}/sample")
     for run, flags in (("eval", EVAL), ("infer", INFER))},
  **encoder_cases(f"{FOLDER}/copy.gin"),
}  # fmt: skip
INCLUDED = {f"{FOLDER}/sgpdst_model.gin", f"{FOLDER}/train.gin", f"{FOLDER}/sample/train.gin"}
OF_CORE = {file for file in tried_files(CASES) if not file.startswith(FOLDER)}


@pytest.fixture(scope="module")
def parsed():
  return parse(CASES)


@pytest.mark.parametrize("name", CASES)
def test_parses(parsed, name):
  assert isinstance(parsed[name], dict), parsed[name]


def test_every_file_is_tried():
  assert tried_files(CASES) - OF_CORE | INCLUDED == files_below(FOLDER)


def test_machines_leave_its_batch(parsed):
  for scale in names("scale/encoders"):
    with_scale = parsed[f"{FOLDER}/copy.gin gin/scale/encoders/{scale}.gin"]
    assert with_scale == parsed[f"{FOLDER}/copy"]
  assert added_scale(f"{FOLDER}/copy.gin") == "gin/scale/encoders/cpu.gin"
