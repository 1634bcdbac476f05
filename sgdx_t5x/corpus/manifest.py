"""perturbation.json: how a split was perturbed, and from what."""

import json
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

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
    counts: of "dialogues", and of what was changed.
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

  def __post_init__(self) -> None:
    """Raises ValueError if a corpus could not use it; msgspec adds the place in the file."""
    if "corpus" not in self.of or not isinstance(self.counts.get("dialogues"), int):
      raise ValueError("`of` lacks the corpus, or `counts` the number of dialogues")

  @property
  def scores_last_turns(self) -> bool:
    """Whether only each dialogue's last turn is scored, as of counterfactuals."""
    return self.scored == SCORED_LAST

  @property
  def label(self) -> str:
    """Name of the split's records: the kind; of counterfactuals also which slots were added."""
    slots = self.options.get("slots") if self.scores_last_turns else None
    return f"{self.kind}_{slots}" if slots else self.kind

  def text(self) -> str:
    """Returns the text of perturbation.json."""
    data = {name: getattr(self, name) for name in self.__struct_fields__}
    data["slots"] = {service: sorted(names) for service, names in sorted(self.slots.items())}
    if not self.slots:
      del data["slots"]
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"
