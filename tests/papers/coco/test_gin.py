"""Every gin file of CoCo's annex parses."""

import pytest
from gin_cases import INFER, TRAIN, added_scale, files_below, parse, tried_files

FOLDER = "gin/papers/coco"
FLAGS = {
  "coco_generator": TRAIN,
  "coco_classifier": TRAIN,
  # Last: gin cannot register the sample's model after a method of its base class is configured.
  "coco_infer": INFER,
  "coco_classify": INFER,
}
CASES = {
  f"{where}/{name}": ([f"{where}/{name}.gin"], flags)
  for name, flags in FLAGS.items()
  for where in (FOLDER, f"{FOLDER}/sample")
}


@pytest.fixture(scope="module")
def parsed():
  return parse(CASES)


@pytest.mark.parametrize("name", CASES)
def test_parses(parsed, name):
  assert isinstance(parsed[name], dict), parsed[name]


def test_every_file_is_tried():
  assert tried_files(CASES) == files_below(FOLDER)


def test_launch_scripts_leave_the_generator_its_batch_and_lengths():
  assert added_scale(f"{FOLDER}/coco_generator.gin") == ""
