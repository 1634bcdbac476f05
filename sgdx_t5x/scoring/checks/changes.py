"""What `sgdx perturb` says of a set: perturbation.json and changes.jsonl."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.data.corpus import Corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files import decode_json

FORMAT = "sgdx-perturb/1"


@dataclasses.dataclass(frozen=True)
class Changes:
  """What was changed in the dialogues of a set.

  Attributes:
    names: dialogue id -> replaced string -> its replacement.
    choices: dialogue id -> (service, categorical slot) -> replaced value -> its replacement.
    repairs: (dialogue id, turn) -> (service, slot) -> the value that is said first and taken back.
    lines: (dialogue id, turn) -> what changes.jsonl says of the turn.
  """

  names: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
  choices: Mapping[str, Mapping[tuple[str, str], Mapping[str, str]]] = dataclasses.field(
    default_factory=dict
  )
  repairs: Mapping[tuple[str, int], Mapping[tuple[str, str], str]] = dataclasses.field(
    default_factory=dict
  )
