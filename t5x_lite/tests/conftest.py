"""Fixtures of the tests: the golden numbers recorded from Google's T5X, and tiny models."""

import os
import pathlib
import sys

import jax
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Pytest's importlib mode does not do this, and tests import helpers that lie beside them.
sys.path.insert(0, str(pathlib.Path(__file__).parent))
jax.config.update("jax_platforms", "cpu")

from goldens import MODELS, GoldenModel, GoldenSet, require_golden  # noqa: E402


@pytest.fixture(scope="session")
def golden_set() -> GoldenSet:
  """The golden set."""
  return GoldenSet(require_golden())


@pytest.fixture(scope="session", params=MODELS)
def golden(request, golden_set) -> GoldenModel:
  """One golden model after the other."""
  return GoldenModel(golden_set.root, request.param)


def pytest_terminal_summary(terminalreporter):
  """Prints what tests recorded as `report`, also if they ran in other processes."""
  for report in terminalreporter.stats.get("passed", ()):
    for name, value in report.user_properties:
      if name == "report":
        terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {value}")
