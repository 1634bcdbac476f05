"""Signatures: what a score depends on, in one line to copy beside it (as sacreBLEU does)."""

import importlib.metadata

_SOURCE_TREE = "0.0.0+source"  # imported from a checkout that was never installed


def package_version() -> str:
  """Returns the installed version of sgdx_t5x, or "0.0.0+source"."""
  try:
    return importlib.metadata.version("sgdx_t5x")
  except importlib.metadata.PackageNotFoundError:
    return _SOURCE_TREE


def signature_fields(signature: str) -> dict[str, str]:
  """Splits "sgdx|corpus:sample:1a2b|...|PARTIAL|version:1" at the first colons; no colon: ""."""
  return {name: value for name, _, value in (x.partition(":") for x in signature.split("|"))}


# Scores may differ in these fields of their signatures, and in no other.
_FREE_FIELDS = ("sgdx", "variants", "frames", "sample", "complete", "PARTIAL", "version")


def unlike_fields(a: str, b: str) -> dict[str, tuple[str | None, str | None]]:
  """Returns field -> its values in two signatures, where scores cannot be compared for them.

  How many frames there are does not matter here: `compare` takes those that both have.
  """
  first, second = (signature_fields(signature) for signature in (a, b))
  pairs = {
    name: (first.get(name), second.get(name))
    for name in {**first, **second}
    if name not in _FREE_FIELDS
  }
  return {name: pair for name, pair in pairs.items() if len({_value(name, x) for x in pair}) > 1}


def _value(name: str, text: str | None) -> str | None:
  """What of a field matters: a corpus is what its checksum says, whatever its folder's name."""
  return text.rpartition(":")[2] if text and name == "corpus" else text
