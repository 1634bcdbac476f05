"""Large pages are suggested only where they would help and are not requested yet."""

import os

import pytest

from t5x._process import memory


@pytest.fixture
def machine(monkeypatch, tmp_path):
  """Sets what Linux, the C library and the environment report."""
  setting = tmp_path / "enabled"
  monkeypatch.setattr(memory, "_SETTING", setting)

  def configure(pages="always [madvise] never\n", library="glibc 2.36", tunables=None):
    setting.write_text(pages)
    monkeypatch.setattr(os, "confstr", lambda name: library, raising=False)
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    if tunables is not None:
      monkeypatch.setenv("GLIBC_TUNABLES", tunables)

  return configure


@pytest.mark.parametrize(
  ("tunables", "variable"),
  [
    (None, "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"),
    ("glibc.malloc.arena_max=1", "GLIBC_TUNABLES=glibc.malloc.arena_max=1:glibc.malloc.hugetlb=1"),
  ],
)
def test_told(machine, tunables, variable):
  machine(tunables=tunables)
  assert memory.describe() == f"using 4 kB memory pages; training is faster with {variable}"


@pytest.mark.parametrize(
  "why",
  [
    {"tunables": "glibc.malloc.hugetlb=1"},
    {"tunables": "glibc.malloc.hugetlb=0"},  # the user has decided
    {"pages": "[always] madvise never\n"},
    {"pages": "always madvise [never]\n"},
    {"library": "glibc 2.34"},
    {"library": "musl"},
  ],
)
def test_not_told(machine, why):
  machine(**why)
  assert memory.describe() == ""


def test_no_such_setting(machine, monkeypatch, tmp_path):
  machine()
  monkeypatch.setattr(memory, "_SETTING", tmp_path / "none")
  assert memory.describe() == ""
