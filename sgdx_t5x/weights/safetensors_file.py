"""Reads safetensors files."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sgdx_t5x.errors import SgdxError, require

_DTYPES = ("F32", "BF16", "F16")


def read_safetensors(
  path: pathlib.Path, on_bytes: Callable[[int], None], ignored: Sequence[str] = ()
) -> tuple[dict[str, np.ndarray], set[str]]:
  """Returns {name: float32 array} of a file, and the dtypes stored.

  Args:
    path: the file.
    on_bytes: called with the size of each array in bytes after it is read.
    ignored: name suffixes of arrays to skip.

  Raises:
    SgdxError: the file cannot be read, or has arrays of unsupported types.
  """
  safetensors = import_safetensors()
  arrays, dtypes = {}, set()
  try:
    with safetensors.safe_open(path, framework="numpy") as file:
      for name in file.keys():  # noqa: SIM118  # not a dictionary
        if name.endswith(tuple(ignored)):
          continue
        dtype = file.get_slice(name).get_dtype()
        if dtype not in _DTYPES:
          raise SgdxError(
            f"{path}: {name} is of type {dtype}",
            expected=f"floating point: {', '.join(_DTYPES)}",
            fix="import the unquantized model",
          )
        array = file.get_tensor(name)
        arrays[name] = array.astype(np.float32, copy=False)
        on_bytes(array.nbytes)
        dtypes.add(dtype)
  except (safetensors.SafetensorError, OSError) as e:
    raise SgdxError(
      f"{path}, {path.stat().st_size:,} bytes: {e}",
      expected="a complete safetensors file",
      fix="download it again; a file of about 130 bytes is a Git LFS pointer (`git lfs pull`)",
    ) from None
  return arrays, dtypes


def import_safetensors() -> Any:
  """Returns the package with its NumPy functions; raises SgdxError if not installed."""
  safetensors = require("safetensors", extra="train", why="Hugging Face's weight files")
  require("safetensors.numpy", extra="train", why="Hugging Face's weight files")
  require("ml_dtypes", extra="train", why="bfloat16 in NumPy")
  return safetensors
