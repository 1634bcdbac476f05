"""perturbation.json: how a split was perturbed, and from what."""

import json
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from sgdx_t5x.corpus.corpus import PERTURBATION, Corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import decode_json

FORMAT: Literal["sgdx-perturb/1"] = "sgdx-perturb/1"
SCORED_LAST: Literal["last"] = "last"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
  """How a split was perturbed.

  Attributes:
    format: of the file.
    kind: of perturbation, see `variants.PERTURBATIONS`.
    options: all that determined the result besides the seed.
    seed: the seed.
    split: of the corpus.
    of: name ("corpus") and checksum of the corpus that was perturbed.
    scored: "all" frames, or the "last" user turn of each dialogue only.
    counts: what was changed, see docs/papers/checkdst.md.
    files: dialogue file -> CRC-32 of the original's, 8 hex digits.
    complete: whether the original split had all dialogues that were published.
    version: of this package.
    slots: service -> slots whose values were replaced; empty if none were.
  """

  format: Literal["sgdx-perturb/1"] = FORMAT
  kind: str
  options: Mapping[str, Any]
  seed: int
  split: str
  of: Mapping[str, str]
  scored: Literal["all", "last"] = "all"
  counts: Mapping[str, Any]
  files: Mapping[str, str]
  complete: bool
  version: str
  slots: Mapping[str, frozenset[str]] = {}

  def text(self) -> str:
    """Returns the text of perturbation.json."""
    data = {name: getattr(self, name) for name in self.__struct_fields__}
    data["slots"] = {service: sorted(names) for service, names in sorted(self.slots.items())}
    if not self.slots:
      del data["slots"]
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def read_manifest(corpus: Corpus, split: str) -> Manifest | None:
  """Returns the manifest of a split; None if it was not perturbed."""
  if not corpus.perturbed(split):
    return None
  name = PERTURBATION.format(split=split)
  origin = f"{corpus.origin}: {name}"
  expected = f"a manifest written by `sgdx checkdst perturb`, format {FORMAT}"
  fix = "perturb the original again"
  data = decode_json(corpus.source.read(name), origin, expected, fix)
  try:
    return msgspec.convert(data, Manifest)
  except ValueError as e:  # of msgspec, or of half a character
    raise SgdxError(f"{origin}: {e}", expected=expected, fix=fix) from None
