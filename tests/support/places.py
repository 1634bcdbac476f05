"""Paths of the repository and of the tests' fixtures."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SUPPORT = ROOT / "tests/support"
FIXTURES = ROOT / "tests/fixtures"
# Folders of annexes, which may be deleted: everything else works without them.
ANNEXES = (
  *("sgdx_t5x/papers/", "gin/papers/", "docs/papers/", "tests/papers/"),
  *("sgdx_t5x/tools/", "docs/tools/", "tests/tools/"),
)
