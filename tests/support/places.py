"""Paths of the repository, the tests' fixtures and the shared real data."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SUPPORT = ROOT / "tests/support"
FIXTURES = ROOT / "tests/fixtures"
SHARED = ROOT.parent / "shared"


def shared_file(relative: str) -> pathlib.Path:
  """A file of ../shared; skips if it is absent, fails instead in CI."""
  path = SHARED / relative
  if not path.exists():
    reason = f"../shared/{relative} is not here (a user's clone has none)"
    if os.environ.get("CI"):
      pytest.fail(f"{reason}, but CI must run this test")
    pytest.skip(reason)
  return path
