"""Reads safetensors files."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from sgdx_t5x.errors import SgdxError, require

FLOATS = ("F32", "BF16", "F16")  # the types of arrays that can be read


def array_types(path: pathlib.Path) -> dict[str, str]:
  """Returns {name: type} of a file, for example "F32" or "I64"; raises SgdxError as below."""
  with _opened(path) as file:
    return {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118


def read_safetensors(
  path: pathlib.Path, names: Iterable[str], on_bytes: Callable[[int], None]
) -> dict[str, np.ndarray]:
  """Returns {name: float32 array} of a file.

  Args:
    path: the file.
    names: arrays to read.
    on_bytes: called with the size of each array in bytes after it is read.

  Raises:
    SgdxError: the file cannot be read, or the arrays are of unsupported types.
  """
  arrays = {}
  with _opened(path) as file:
    for name in names:
      dtype = file.get_slice(name).get_dtype()
      if dtype not in FLOATS:
        raise SgdxError(
          f"{path}: {name} is of type {dtype}",
          expected=f"floating point: {', '.join(FLOATS)}",
          fix="import the unquantized model",
        )
      array = file.get_tensor(name)
      arrays[name] = array.astype(np.float32, copy=False)
      on_bytes(array.nbytes)
  return arrays


@contextlib.contextmanager
def _opened(path: pathlib.Path) -> Iterator[Any]:
  safetensors = import_safetensors()
  try:
    with safetensors.safe_open(path, framework="numpy") as file:
      yield file
  except (safetensors.SafetensorError, OSError) as e:
    raise SgdxError(
      f"{path}, {path.stat().st_size:,} bytes: {e}",
      expected="a complete safetensors file",
      fix="download it again; a file of about 130 bytes is a Git LFS pointer (`git lfs pull`)",
    ) from None


def import_safetensors() -> Any:
  """Returns the package with its NumPy functions; raises SgdxError if not installed."""
  safetensors = require("safetensors", extra="train", why="Hugging Face's weight files")
  require("safetensors.numpy", extra="train", why="Hugging Face's weight files")
  require("ml_dtypes", extra="train", why="bfloat16 in NumPy")
  return safetensors
