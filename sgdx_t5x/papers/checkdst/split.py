"""A split to be perturbed: its decoded dialogues, and the definition of a perturbation."""

import collections
import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import Dialogue, check_dialogue, check_ids, decode_dialogues
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.errors import SgdxError, malformed

Line = dict[str, Any]  # of changes.jsonl
# Changes a decoded dialogue in place and counts what it did; returns the lines to undo it.
Change = Callable[[dict[str, Any], collections.Counter], list[Line]]


@dataclasses.dataclass(frozen=True)
class Perturber:
  """A kind of perturbation, ready to change dialogues one by one.

  Attributes:
    kind: its name.
    options: all that determines the result besides the seed, as in the manifest.
    change: the function.
    slots: service -> slots whose values are replaced; empty if only utterances change.
    needs_acts: whether users' acts must be annotated; spans must always be.
  """

  kind: str
  options: Mapping[str, Any]
  change: Change
  slots: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
  needs_acts: bool = False


@dataclasses.dataclass(frozen=True)
class Split:
  """A split of a corpus, as decoded JSON: keys that SGD does not have are kept.

  Attributes:
    corpus: where it is.
    name: "train", "dev" or "test".
  """

  corpus: Corpus
  name: str

  @property
  def schema(self) -> Schema:
    """The split's original schema."""
    return self.corpus.schema(self.name)

  def files(self) -> Iterator[tuple[str, bytes, list[dict[str, Any]]]]:
    """Yields name, content and decoded dialogues of each file, checked."""
    schema, ids = self.schema, set()
    for name in self.corpus.dialogue_files(self.name):
      origin, raw = f"{self.corpus.origin}: {name}", self.corpus.source.read(name)
      data = decode_dialogues(raw, origin)
      for item in data:
        dialogue = Dialogue.from_json(item if isinstance(item, dict) else {}, origin)
        check_dialogue(dialogue, schema, origin)
        check_ids(dialogue, ids, origin)
        ids.add(dialogue.dialogue_id)
      yield name, raw, data

  def dialogues(self) -> Iterator[dict[str, Any]]:
    """Yields the decoded dialogues, in order."""
    for _, _, data in self.files():
      yield from data


def changed(perturber: Perturber, data: dict[str, Any], counts: collections.Counter) -> list[Line]:
  """Changes one dialogue. Raises SgdxError if its annotation does not have SGD's form.

  Args:
    perturber: what changes it.
    data: decoded, changed in place.
    counts: of the corpus so far.
  """
  with annotation_of(data):
    return perturber.change(data, counts)


@contextlib.contextmanager
def annotation_of(data: Any) -> Iterator[None]:
  """Turns what reading the annotation of a decoded dialogue raises into a SgdxError."""
  try:
    yield
  except (KeyError, TypeError, AttributeError, IndexError, ValueError) as e:
    name = data.get("dialogue_id") if isinstance(data, dict) else None
    raise SgdxError(
      f"dialogue {name}: {malformed(e)}",
      expected="turns, slots, actions, service_call and service_results as in SGD's README",
      fix="correct the annotation: `sgdx data verify` shows where",
    ) from e
