"""What a score records of its demonstrations, and whether their words occur in its split."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import USER
from sgdx_t5x.metrics.frames import GoldFrame, utterance_crc
from sgdx_t5x.prompts.protocol import Provenance
from sgdx_t5x.prompts.sdt.demonstrations import Demonstration, Demonstrations, check_services

LEAST_WORDS = 7  # shorter utterances ("Yes, please.") are not specific


@dataclasses.dataclass(frozen=True)
class Leak:
  """How many utterances of seven words or more occur verbatim in a split, of how many."""

  found: int
  of: int


def count_leak(demos: Iterable[Demonstration], crcs: Collection[int]) -> Leak:
  """Looks for the user's words. Args: crcs, `utterance_crc` of the user's utterances in a split."""
  specific = set()
  for demo in demos:
    for speaker, text in demo.turns:
      if speaker == USER and len(text.split()) >= LEAST_WORDS:
        specific.add(text)
  return Leak(sum(utterance_crc(text) in crcs for text in specific), len(specific))


def provenance(
  demos: Demonstrations,
  select: Callable[[Sequence[Demonstration]], Iterable[Demonstration]],
  corpus: Corpus,
  gold: Sequence[GoldFrame],
) -> Provenance:
  """Returns the signature fields and the notes of a score.

  Args:
    demos: the demonstrations.
    select: function that returns what prompts show of a service's demonstrations.
    corpus: the corpus, which has their services.
    gold: the frames that are scored, in whose user utterances they are looked for.

  Raises:
    SgdxError: a demonstration of a service that the corpus does not have.
  """
  check_services(demos, [corpus.schema(split) for split in corpus.splits])
  services = {frame.service for frame in gold}
  demonstrations: list[Demonstration] = []
  for name, of_service in demos.by_service.items():
    if name in services:
      demonstrations += select(of_service)
  leak = count_leak(demonstrations, {frame.utterance_crc for frame in gold})
  fields = {"demos": f"{demos.source}:{demos.crc}", "leak": f"{leak.found}of{leak.of}"}
  notes = (
    f"LEAK: {leak.found} of {leak.of} user utterances of {LEAST_WORDS} words or more in the "
    "demonstrations occur in the scored dialogues (docs/demonstrations.md)",
  )
  return Provenance(fields, notes if leak.found else ())
