"""The golden set of the repository: how it is cut from the full recordings, packed, and read.

Run as a script it makes the set again:

  python t5x_lite/tests/support/packed_goldens.py ../shared/golden/A

Large outputs (gradients, and parameters and slots after steps of Adafactor) become a `Sample`, all
else is kept bit for bit. t5x_lite/tests/golden/README.md describes the format.
"""

import atexit
import dataclasses
import functools
import hashlib
import io
import json
import pathlib
import re
import shutil
import sys
import tarfile
import tempfile

import numpy as np

PACKED = pathlib.Path(__file__).resolve().parents[1] / "golden/A.tar.xz"
ARRAY_FILES = (
  "adafactor_toy.npz",
  "relpos.npz",
  *(f"{model}/{name}.npz" for model in ("t5_1_0", "t5_1_1") for name in ("adafactor", "batch")),
  *(f"{model}/{name}.npz" for model in ("t5_1_0", "t5_1_1") for name in ("expected", "params")),
)
# Arrays that are sampled, by the name of their file; inputs of the recorded runs never are.
SAMPLED = {
  "adafactor_toy.npz": re.compile("default/params_3/w2d"),
  "adafactor.npz": re.compile(r"\w+/(params|slots)_\d/"),
  "expected.npz": re.compile("grads/"),
}
ENTRIES = 24  # of each sampled array; an array of at most twice as many is kept whole
COMPARED_BITWISE = "factored8/"  # the state that both checkpoints hold: test_run_checkpoints.py


@dataclasses.dataclass(frozen=True)
class Sample:
  """What the set keeps of a large array.

  Attributes:
    entries: [n] the array's entries at `positions(shape)`.
    shape: the array's shape.
    digest: SHA-256 of its bytes, as hexadecimal digits; "" where no test compares bit for bit.
  """

  entries: np.ndarray
  shape: tuple[int, ...]
  digest: str

  def of(self, array: np.ndarray) -> np.ndarray:
    """Returns the entries of another array at the sampled positions."""
    return np.asarray(array).reshape(-1)[positions(self.shape)]


def positions(shape: tuple[int, ...]) -> np.ndarray:
  """Flat indices of the sampled entries: multiples of the golden ratio, spread over the array."""
  fractions = np.arange(1, ENTRIES + 1) * 0.6180339887498949 % 1.0
  return np.sort((fractions * np.prod(shape)).astype(np.int64))


def digest(array: np.ndarray) -> str:
  """SHA-256 of an array's bytes, little-endian, rows first."""
  array = np.asarray(array)
  return hashlib.sha256(array.astype(array.dtype.newbyteorder("<")).tobytes()).hexdigest()


def cut(file: str, key: str, array: np.ndarray | Sample) -> np.ndarray | Sample:
  """Returns what the set keeps of an array. Args: file is where it was recorded, as `x.npz`."""
  pattern = SAMPLED.get(pathlib.PurePath(file).name)
  if isinstance(array, Sample) or array.size <= 2 * ENTRIES or not (pattern and pattern.match(key)):
    return array
  found = digest(array) if key.startswith(COMPARED_BITWISE) else ""
  return Sample(array.reshape(-1)[positions(array.shape)], array.shape, found)


def load_arrays(path: pathlib.Path) -> dict[str, np.ndarray | Sample]:
  """Reads the arrays of an npz file, which may be unpacked from the set.

  Args:
    path: `x.npz`; beside it, if it came from the set, `x.npz.json` and `x.npz.planes`.

  Returns:
    Arrays by name; those that the set does not keep whole as samples.
  """
  if path.exists():
    with np.load(path) as archive:
      return dict(archive)
  planes = np.frombuffer(pathlib.Path(f"{path}.planes").read_bytes(), np.uint8)
  numbers = planes.reshape(4, -1).T.tobytes()
  arrays, start = {}, 0
  for key, dtype, shape, *found in json.loads(pathlib.Path(f"{path}.json").read_text()):
    size = ENTRIES if found else int(np.prod(shape))
    entries = np.frombuffer(numbers, dtype, size, start)
    arrays[key] = Sample(entries, tuple(shape), *found) if found else entries.reshape(shape)
    start += entries.nbytes
  return arrays


def _packed_arrays(file: str, arrays: dict[str, np.ndarray | Sample]) -> dict[str, bytes]:
  """An index, and the numbers with their first bytes first: exponents are alike, and pack well."""
  index, numbers = [], b""
  for key, value in arrays.items():
    value = cut(file, key, value)
    sampled = isinstance(value, Sample)
    entries = value.entries if sampled else value
    little = entries.dtype.newbyteorder("<")
    if little.itemsize != 4:
      raise ValueError(f"{file}: {key} is {little}; only numbers of four bytes can be packed")
    numbers += entries.astype(little).tobytes()
    index.append([key, little.str, list(value.shape), *([value.digest] if sampled else [])])
  planes = np.frombuffer(numbers, np.uint8).reshape(-1, 4).T.tobytes()
  return {f"{file}.json": json.dumps(index).encode(), f"{file}.planes": planes}


def members(root: pathlib.Path) -> dict[str, bytes]:
  """What the set holds of recordings.

  Args:
    root: the full recordings, or an unpacked set, which is then given back.

  Returns:
    Contents of the archive's files by name, sorted.
  """
  contents = {}
  for file in ARRAY_FILES:
    contents |= _packed_arrays(file, load_arrays(root / file))
  for path in root.rglob("*"):
    name = path.relative_to(root).as_posix()
    if path.is_file() and not name.startswith(ARRAY_FILES) and name != "README.md":
      contents[name] = path.read_bytes()
  return dict(sorted(contents.items()))


def pack(root: pathlib.Path, path: pathlib.Path = PACKED) -> None:
  """Makes the set of the full recordings below `root`, as one archive."""
  path.parent.mkdir(parents=True, exist_ok=True)
  with tarfile.open(path, "w:xz", preset=9, format=tarfile.USTAR_FORMAT) as archive:
    for name, content in members(root).items():
      entry = tarfile.TarInfo(name)
      entry.size = len(content)
      archive.addfile(entry, io.BytesIO(content))


@functools.cache
def unpacked() -> pathlib.Path:
  """Unpacks the set into a folder that is removed when the process ends, and returns it."""
  folder = tempfile.mkdtemp(prefix="t5x_golden_")
  atexit.register(shutil.rmtree, folder, ignore_errors=True)
  with tarfile.open(PACKED) as archive:
    archive.extraction_filter = getattr(tarfile, "data_filter", None)  # as of Python 3.11.4
    archive.extractall(folder)
  return pathlib.Path(folder)


def assert_close(actual, expected, *, rtol: float, atol: float, err_msg: str = "") -> None:
  """Like np.testing.assert_allclose; of a sample the sampled entries and the shape."""
  if isinstance(expected, Sample):
    assert np.shape(actual) == expected.shape, err_msg
    actual, expected = expected.of(actual), expected.entries
  np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol, err_msg=err_msg)


def assert_equal(actual, expected, err_msg: str = "") -> None:
  """Like np.testing.assert_array_equal; a sample's digest stands for the entries left out."""
  if isinstance(expected, Sample):
    assert np.shape(actual) == expected.shape, err_msg
    np.testing.assert_array_equal(expected.of(actual), expected.entries, err_msg=err_msg)
    assert not expected.digest or digest(actual) == expected.digest, err_msg
  else:
    np.testing.assert_array_equal(actual, expected, err_msg=err_msg)


if __name__ == "__main__":
  if len(sys.argv) != 2:
    sys.exit(f"usage: python {sys.argv[0]} FULL_RECORDINGS")
  pack(pathlib.Path(sys.argv[1]))
  print(f"wrote {PACKED} ({PACKED.stat().st_size / 1000:.0f} kB)")
