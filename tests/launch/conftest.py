"""Checkouts whose scripts run against fake binaries."""

import pytest
from cloud import FAKES, Cloud, mark_installed, write_checkout


@pytest.fixture(scope="session")
def checkout(tmp_path_factory):
  """See `write_checkout`."""
  top = tmp_path_factory.mktemp("launch")
  write_checkout(top)
  return top


@pytest.fixture
def cloud(checkout, tmp_path):
  """A `Cloud` of the test's own."""
  return Cloud(checkout, tmp_path)


@pytest.fixture
def installed(cloud):
  """A checkout whose .venv exists; its python records its calls."""
  (cloud.repo / ".venv/bin").mkdir(parents=True)
  (cloud.repo / ".venv/bin/python").symlink_to(FAKES / "python")
  mark_installed(cloud.repo)
  return cloud
