"""Every gin file of pre-finetuning parses."""

import pytest
from gin_cases import TRAIN, added_scale, files_below, parse, tried_files

FOLDER = "gin/papers/prefinedst"
CASES = {
  f"{where}/{name}": ([f"{where}/{name}.gin"], TRAIN)
  for where in (FOLDER, f"{FOLDER}/sample")
  for name in ("prefine", "t5dst_prefine")
}


@pytest.fixture(scope="module")
def parsed():
  return parse(CASES)


@pytest.mark.parametrize("name", CASES)
def test_parses(parsed, name):
  assert isinstance(parsed[name], dict), parsed[name]


def test_every_file_is_tried():
  assert tried_files(CASES) == files_below(FOLDER)


def test_launch_scripts_leave_the_first_stage_its_batch():
  assert added_scale(f"{FOLDER}/prefine.gin") == ""
  assert added_scale(f"{FOLDER}/t5dst_prefine.gin") == "gin/scale/cpu.gin"
  assert added_scale(f"{FOLDER}/sample/t5dst_prefine.gin") == ""
