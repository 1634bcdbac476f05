"""What lies in ../shared, beside the repository: data and recordings that may not be part of it.

A user's clone has no such folder, CI has. Tests reach it through this module only, and most through
fixtures of it (`real_archive`, `golden_set`): a test that requests one is marked `shared`.
"""

import os
import pathlib

import pytest

_FOLDER = pathlib.Path(__file__).resolve().parents[4] / "shared"


def in_users_clone() -> bool:
  """Whether there is no ../shared, as only CI must have."""
  return not (_FOLDER.is_dir() or os.environ.get("CI"))


def find_shared(relative: str) -> pathlib.Path | None:
  """Returns a file or folder of ../shared, None if it is absent; fails instead in CI."""
  path = _FOLDER / relative
  if path.exists():
    return path
  if os.environ.get("CI"):
    pytest.fail(f"../shared/{relative} is not here, but CI must run this test")
  return None


def shared_file(relative: str) -> pathlib.Path:
  """Returns a file or folder of ../shared; skips the test if it is absent; fails instead in CI."""
  path = find_shared(relative)
  if path is None:
    pytest.skip(f"../shared/{relative} is not here (a user's clone has none)")
  return path
