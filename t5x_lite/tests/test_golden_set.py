"""The golden set of the repository: cut from the full recordings, small, compared strictly."""

import dataclasses
import tarfile

import numpy as np
import packed_goldens
import pytest
from packed_goldens import Sample, assert_close, assert_equal


def _load(file):
  return packed_goldens.load_arrays(packed_goldens.unpacked() / file)


def test_set_is_cut_from_the_recordings(golden_set):
  """Also without the full recordings: cutting the set again leaves it unchanged."""
  with tarfile.open(packed_goldens.PACKED) as archive:
    packed = {entry.name: archive.extractfile(entry).read() for entry in archive}
  expected = packed_goldens.members(golden_set.root)
  assert packed.keys() == expected.keys()
  assert [name for name, content in packed.items() if content != expected[name]] == []


@pytest.mark.parametrize("file", packed_goldens.ARRAY_FILES)
def test_arrays_of_the_set_are_those_recorded(golden_set, file):
  recorded, kept = golden_set.arrays(file), _load(file)
  assert kept.keys() == recorded.keys()
  for name, value in recorded.items():
    if isinstance(value, Sample):  # without the full recordings
      value, kept[name] = value.entries, kept[name].entries
    assert_equal(value, kept[name], name)
    assert value.dtype == getattr(kept[name], "entries", kept[name]).dtype


def test_set_is_small():
  files = [path for path in packed_goldens.PACKED.parent.iterdir() if path.is_file()]
  assert {path.name for path in files} == {"A.tar.xz", "README.md"}
  assert sum(path.stat().st_size for path in files) < 520_000


def test_few_entries_are_sampled_and_no_inputs():
  arrays = _load("t5_1_1/adafactor.npz")
  assert {type(v) for k, v in arrays.items() if "kernel" in k and "params" in k} == {Sample}
  for file in ("t5_1_1/params.npz", "t5_1_1/batch.npz", "relpos.npz"):
    assert not any(isinstance(value, Sample) for value in _load(file).values())
  for shape in ((49,), (16, 64), (132, 128), (3, 4, 5)):
    found = packed_goldens.positions(shape)
    assert len(set(found)) == len(found) == packed_goldens.ENTRIES
    assert found.min() >= 0
    assert found.max() < np.prod(shape)


@pytest.fixture
def array():
  return np.arange(60, dtype=np.float32).reshape(4, 15)


def test_sample_is_compared_in_shape_and_entries(array):
  sample = packed_goldens.cut("t5_1_1/expected.npz", "grads/w", array)
  assert isinstance(sample, Sample)
  assert_close(array, sample, rtol=0, atol=0)
  assert_close(array + np.float32(0.5), sample, rtol=0, atol=0.5)
  wrong = array.copy()
  wrong.flat[packed_goldens.positions(array.shape)[3]] += 1
  for actual in (wrong, array.T, array[None], array + 1):
    with pytest.raises(AssertionError):
      assert_close(actual, sample, rtol=0, atol=0.5)


def test_digest_stands_for_every_entry(array):
  sample = packed_goldens.cut("t5_1_1/adafactor.npz", "factored8/params_3/w", array)
  assert_equal(array, sample)
  for position in range(array.size):
    wrong = array.copy()
    wrong.flat[position] = np.nextafter(wrong.flat[position], np.float32(100))
    with pytest.raises(AssertionError):
      assert_equal(wrong, sample)
  assert_equal(wrong, dataclasses.replace(sample, digest=""))  # the last entry is not sampled
