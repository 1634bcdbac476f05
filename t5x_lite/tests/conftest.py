"""Test fixtures: the golden numbers recorded from Google's T5X, and a server that runs scripts."""

import os

import pytest
from compiling import compiled_as_for_users  # noqa: F401 - sets variables that JAX reads

# isort: split
import jax
from fork_server import ForkServer
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
def jax_cache(tmp_path_factory):
  """The compilation cache, shared by all processes of a test session."""
  base = tmp_path_factory.getbasetemp()
  # Each pytest-xdist worker has its own folder inside that of the session.
  return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "jax_cache"


@pytest.fixture(scope="session", autouse=True)
def _programs_are_kept(jax_cache):
  """Caches programs on disk: functions that tests recreate are not recompiled."""
  jax.config.update("jax_compilation_cache_dir", str(jax_cache))
  jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
  jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@pytest.fixture(scope="session")
def server(jax_cache) -> ForkServer:
  """Starts scripts."""
  with ForkServer(jax_cache) as server:
    yield server


def pytest_terminal_summary(terminalreporter):
  """Prints what tests recorded as `report`, even if they ran in other processes."""
  for report in terminalreporter.stats.get("passed", ()):
    for name, value in report.user_properties:
      if name == "report":
        terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {value}")
