"""Signatures: what a score depends on, in one line to report with it (as in sacreBLEU)."""

import dataclasses
import re
from collections.abc import Mapping

from sgdx_t5x import annexes

_SOURCE_TREE = "0.0.0+source"  # imported from a checkout that was never installed
_PARTIAL, _COMPLETE = "PARTIAL", "complete"
# Scores are comparable if all fields but these agree: `scoring.compare` takes only the frames and
# variants that both have.
_FRAME_FIELDS = ("frames", "sample")
_FREE_FIELDS = ("sgdx", "variants", "sets", *_FRAME_FIELDS, _COMPLETE, _PARTIAL, "version")
# Of the field "schemas": NAME=CHECKSUM, joined by "+", which a name may contain too.
_OWN_SCHEMA = re.compile(r"(?:^|\+)(.+?)=([0-9a-f]{8})(?=\+|$)")


def package_version() -> str:
  """Returns the installed version of sgdx_t5x, or "0.0.0+source"."""
  import importlib.metadata  # here: it takes 15 ms, and most commands print no signature

  try:
    return importlib.metadata.version("sgdx_t5x")
  except importlib.metadata.PackageNotFoundError:
    return _SOURCE_TREE


@dataclasses.dataclass(frozen=True)
class Signature:
  """A signature; `str` gives its line, "sgdx|corpus:sample:1a2b|...|complete|version:1".

  Attributes:
    fields: name -> value, in the order of the line; "" for a name without a value.
  """

  fields: Mapping[str, str]

  @classmethod
  def of(
    cls, corpus: str, checksum: str, fields: Mapping[str, str | int], complete: bool | None = None
  ) -> "Signature":
    """Builds the signature of numbers that this version of sgdx_t5x computes.

    Args:
      corpus: name of the corpus.
      checksum: its checksum.
      fields: what else the numbers depend on, name -> value, in order; "" leaves a field out.
      complete: True marks the numbers complete, False PARTIAL, None neither.
    """
    state = {} if complete is None else {_COMPLETE if complete else _PARTIAL: ""}
    texts = {name: str(value) for name, value in fields.items() if value != ""}
    version = {"version": package_version()}
    return cls({"sgdx": "", "corpus": f"{corpus}:{checksum}"} | texts | state | version)

  @classmethod
  def parse(cls, line: str) -> "Signature":
    """Reads a line. A field's name ends at its first colon."""
    fields = {}
    for field in line.split("|"):
      name, _, value = field.partition(":")
      fields[name] = value
    return cls(fields)

  def __str__(self) -> str:
    return "|".join(f"{name}:{value}" if value else name for name, value in self.fields.items())

  @property
  def corpus(self) -> str:
    """Name of the corpus; "" if the signature has none."""
    return self.fields.get("corpus", "").rpartition(":")[0]

  @property
  def checksum(self) -> str:
    """Checksum of the corpus; "" if the signature has none."""
    return self.fields.get("corpus", "").rpartition(":")[2]

  @property
  def split(self) -> str:
    """Split of the corpus; "" if the signature has none."""
    return self.fields.get("split", "")

  @property
  def own_schemas(self) -> dict[str, str]:
    """Variant of the user's own -> checksum of its schemas."""
    return dict(_OWN_SCHEMA.findall(self.fields.get("schemas", "")))

  @property
  def partial(self) -> bool:
    """Whether the numbers are marked PARTIAL."""
    return _PARTIAL in self.fields


def differences(
  a: Signature, b: Signature, same_frames: bool = False
) -> dict[str, tuple[str | None, str | None]]:
  """Returns the fields that make the scores of two signatures incomparable.

  Args:
    a: signature of the first scores.
    b: signature of the second.
    same_frames: whether both must also cover the same frames.

  Returns:
    Name -> (value of a, value of b), None for a missing field. A corpus is identified by its
    checksum, whatever its name, and of variants of the user's own only those that both scored
    matter. A field with its usual value (`annexes`) agrees with none.
  """
  free = {*_FREE_FIELDS}.difference(_FRAME_FIELDS if same_frames else ())
  names = [name for name in {**a.fields, **b.fields} if name not in free]
  names.sort(key=lambda name: name in _FRAME_FIELDS)  # last: other settings may be the reason
  pairs = {}
  for name in names:
    values = a.fields.get(name), b.fields.get(name)
    is_same = _value(name, values[0]) == _value(name, values[1])
    if not is_same and not (name == "schemas" and _agree(a.own_schemas, b.own_schemas)):
      pairs[name] = values
  return pairs


def _agree(a: Mapping[str, str], b: Mapping[str, str]) -> bool:
  """Whether the variants that both have, have the same checksum in both."""
  return all(b.get(variant, checksum) == checksum for variant, checksum in a.items())


def _value(name: str, text: str | None) -> str | None:
  """Returns what of a field's value is compared; None stands for a missing or usual one."""
  if text == annexes.table("USUAL_FIELDS").get(name):
    return None
  return text.rpartition(":")[2] if text and name == "corpus" else text
