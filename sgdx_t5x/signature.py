"""The package's version, in one place: every signature names it."""

import importlib.metadata

_SOURCE_TREE = "0.0.0+source"  # imported from a checkout that was never installed


def package_version() -> str:
  """Returns the installed version of sgdx_t5x, or "0.0.0+source"."""
  try:
    return importlib.metadata.version("sgdx_t5x")
  except importlib.metadata.PackageNotFoundError:
    return _SOURCE_TREE
