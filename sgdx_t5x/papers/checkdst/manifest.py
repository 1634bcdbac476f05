"""perturbation.json: how a split was perturbed, and from what."""

import dataclasses
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.corpus import PERTURBATION, Corpus
from sgdx_t5x.corpus.variants import PERTURBATIONS
from sgdx_t5x.errors import SgdxError, malformed
from sgdx_t5x.files.reading import decode_json

FORMAT = "sgdx-perturb/1"
SCORED_ALL, SCORED_LAST = "all", "last"
COUNTERFACTUAL_KIND, CONTROL_KIND = "coco", "coco_ori"  # whose last user turn alone is scored


@dataclasses.dataclass(frozen=True)
class Manifest:
  """How a split was perturbed.

  Attributes:
    kind: "ned", "pi", "sdi", "vs", "coco" or "coco_ori".
    options: all that determined the result besides the seed.
    seed: the seed.
    split: of the corpus.
    of: name ("corpus") and checksum of the corpus that was perturbed.
    counts: what was changed, see docs/papers/checkdst.md.
    files: dialogue file -> CRC-32 of the original's, 8 hex digits.
    complete: whether the original split had all dialogues that were published.
    version: of this package.
    scored: "all" frames, or the "last" user turn of each dialogue only.
    slots: service -> slots whose values were replaced; empty if none were.
  """

  kind: str
  options: Mapping[str, Any]
  seed: int
  split: str
  of: Mapping[str, str]
  counts: Mapping[str, Any]
  files: Mapping[str, str]
  complete: bool
  version: str
  scored: str = SCORED_ALL
  slots: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)

  def to_json(self) -> dict[str, Any]:
    """Returns the manifest in the form of perturbation.json."""
    data = {"format": FORMAT, **{k: getattr(self, k) for k in _KEYS}}
    if self.slots:
      data["slots"] = {service: sorted(names) for service, names in sorted(self.slots.items())}
    return data

  @classmethod
  def from_json(cls, data: Any, origin: str) -> "Manifest":
    """Reads a decoded manifest. Raises SgdxError if it is not of this format."""
    try:
      if data["format"] != FORMAT:
        raise TypeError(f"format {data['format']!r}")
      slots = {service: frozenset(names) for service, names in data.get("slots", {}).items()}
      fields = {key: data[key] for key in _KEYS}
      for key in ("options", "of", "counts", "files"):
        fields[key].items()
      names = itertools.chain.from_iterable(slots.values())
      if fields["kind"] not in PERTURBATIONS or not all(isinstance(x, str) for x in names):
        raise TypeError(f"kind {fields['kind']!r}, slots {data.get('slots')!r}"[:200])
      return cls(**fields, slots=slots)
    except (KeyError, TypeError, AttributeError) as e:
      raise SgdxError(
        f"{origin}: {malformed(e)}",
        expected=f"a manifest written by `sgdx checkdst perturb`, format {FORMAT}",
        fix="perturb the original again with this version",
      ) from None


_KEYS = (
  "kind", "options", "seed", "split", "of", "scored", "counts", "files", "complete", "version",
)  # fmt: skip


def read_manifests(corpus: Corpus, split: str) -> tuple[Manifest, ...]:
  """Returns the manifests of a split, first step first; () if it was not perturbed."""
  if not corpus.perturbed(split):
    return ()
  name = PERTURBATION.format(split=split)
  origin = f"{corpus.origin}: {name}"
  expected = "a manifest written by `sgdx checkdst perturb`"
  data = decode_json(corpus.source.read(name), origin, expected, "perturb the original again")
  return tuple(
    Manifest.from_json(item, origin) for item in (data if isinstance(data, list) else [data])
  )


def manifest_text(manifests: Sequence[Manifest]) -> str:
  """Returns the text of perturbation.json: an object, or a list after several steps."""
  data = [manifest.to_json() for manifest in manifests]
  return json.dumps(data if data[1:] else data[0], indent=1, ensure_ascii=False) + "\n"
