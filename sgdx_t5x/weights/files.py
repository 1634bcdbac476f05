"""Folders that are written whole or not at all."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Callable

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files import atomic_folder


def check_local(path: str | pathlib.Path, option: str) -> pathlib.Path:
  """Returns a path to write to. Raises SgdxError for gs:// and the like."""
  if "://" in str(path):
    raise SgdxError(
      f"{option} {path}",
      expected="a folder on this machine",
      fix="write to a local folder and copy it, e.g. with `gcloud storage cp -r`",
    )
  return pathlib.Path(path).resolve()


def check_free(
  folder: pathlib.Path, overwrite: bool, ours: Callable[[pathlib.Path], bool], what: str
) -> None:
  """Refuses to write over what is there.

  Args:
    folder: what is to be written.
    overwrite: whether the user allows to replace it.
    ours: tells whether a file or folder in `folder` may be lost by replacing it.
    what: what such a folder holds, for messages.

  Raises:
    SgdxError: it exists, and is not to be replaced, or not ours to replace.
  """
  if not folder.exists() and not folder.is_symlink():
    return
  if not folder.is_dir():
    raise SgdxError(
      f"{folder} is a file", expected="a folder that does not exist yet", fix="name another folder"
    )
  held = sorted(folder.iterdir())
  if not held:
    return
  strange = [path.name for path in held if not ours(path)]
  if strange:
    raise SgdxError(
      f"{folder} holds other files",
      expected=f"nothing, or {what}",
      available=", ".join(strange[:6]) + (", ..." if len(strange) > 6 else ""),
      fix="name another folder",
    )
  if not overwrite:
    raise SgdxError(
      f"{folder} exists already",
      expected="a folder that does not exist yet",
      fix="name another folder, or give --overwrite to replace it",
    )


def written_whole(folder: pathlib.Path) -> contextlib.AbstractContextManager[pathlib.Path]:
  """`atomic_folder`, for weights: yields a path that becomes `folder` if the block succeeds."""
  return atomic_folder(
    folder,
    expected="a folder that can be written, on a disk with room for the weights",
    fix="make room, or name another folder",
  )
