"""Memory pages of arrays on a CPU: small ones, unless glibc asks Linux for large ones.

XLA allocates the memory of each step anew. In pages of 4 kB, that is hundreds of thousands of page
faults, and a tenth of a step's time or more (benchmarks/history.md). glibc asks for pages of 2 MB
if an environment variable says so when the process starts, not later.
"""

from __future__ import annotations

import os
import pathlib

TUNABLE = "glibc.malloc.hugetlb"
# 'always [madvise] never': large pages for programs that ask; with 'always', for all.
_SETTING = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
_FIRST_GLIBC = (2, 35)


def describe() -> str:
  """Returns a line that says how to get large pages; "" where it would change nothing."""
  import jax

  if jax.default_backend() != "cpu" or TUNABLE in os.environ.get("GLIBC_TUNABLES", ""):
    return ""
  return f"using 4 kB memory pages; training is faster with {_variable()}" if _is_asked() else ""


def _variable() -> str:
  """The variable, with its present content kept."""
  tunables = os.environ.get("GLIBC_TUNABLES", "")
  return f"GLIBC_TUNABLES={tunables}{':' if tunables else ''}{TUNABLE}=1"


def _is_asked() -> bool:
  """Whether Linux gives large pages to programs that ask, and glibc can."""
  try:
    name, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
    setting = _SETTING.read_text()
  except (AttributeError, OSError, ValueError):  # another system, or another C library
    return False
  glibc_version = tuple(int(n) for n in version.split(".")[:2])
  return name == "glibc" and glibc_version >= _FIRST_GLIBC and "[madvise]" in setting
