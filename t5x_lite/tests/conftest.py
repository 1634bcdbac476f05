"""Test fixtures: the golden numbers recorded from Google's T5X, and a server that runs scripts."""

import os

import pytest
from compiling import compiled_as_for_users  # noqa: F401 - sets variables that JAX reads

# isort: split
import jax
from fork_server import ForkServer, fork_server
from goldens import MODELS, GoldenModel, GoldenSet, find_golden

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
jax.config.update("jax_platforms", "cpu")


def pytest_itemcollected(item) -> None:
  """Marks the tests that read ../shared, or the set in the repository where there is none."""
  if "golden_set" in getattr(item, "fixturenames", ()):
    item.add_marker(pytest.mark.shared)


@pytest.fixture(scope="session")
def golden_set() -> GoldenSet:
  """The golden numbers."""
  return GoldenSet(find_golden())


@pytest.fixture(scope="session", params=MODELS)
def golden(request, golden_set) -> GoldenModel:
  """Each golden model in turn."""
  return GoldenModel(golden_set.root, request.param)


@pytest.fixture(scope="session")
def server() -> ForkServer:
  """Starts scripts."""
  return fork_server()


def pytest_terminal_summary(terminalreporter):
  """Prints what tests recorded as `report`, even if they ran in other processes."""
  for report in terminalreporter.stats.get("passed", ()):
    for name, value in report.user_properties:
      if name == "report":
        terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {value}")
