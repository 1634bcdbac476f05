"""Every gin file of CheckDST's annex parses."""

import pytest
from gin_cases import EVAL, TRAIN, files_below, parse, tried_files

FOLDER = "gin/papers/checkdst"
CASES = {
  f"{where}/{name}": ([f"{where}/{name}.gin"], flags)
  for where in (FOLDER, f"{FOLDER}/sample")
  for name, flags in (("checkdst_eval", EVAL), ("t5dst_ned_aug", TRAIN), ("t5dst_sdi_aug", TRAIN))
}


@pytest.fixture(scope="module")
def parsed():
  return parse(CASES)


@pytest.mark.parametrize("name", CASES)
def test_parses(parsed, name):
  assert isinstance(parsed[name], dict), parsed[name]


def test_every_file_is_tried():
  assert tried_files(CASES) == files_below(FOLDER)
