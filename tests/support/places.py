"""Paths of the repository and of the tests' fixtures."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SUPPORT = ROOT / "tests/support"
FIXTURES = ROOT / "tests/fixtures"
