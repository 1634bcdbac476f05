"""What a score records of its demonstrations, and whether their words occur in its split."""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import SYSTEM, USER
from sgdx_t5x.metrics.frames import GoldFrame, utterance_crc
from sgdx_t5x.prompts.protocol import Provenance
from sgdx_t5x.prompts.sdt.demonstrations import Demonstration, Demonstrations, check_services

LEAST_WORDS = 7  # shorter utterances ("Yes, please.") are not specific


@dataclasses.dataclass(frozen=True)
class Leak:
  """How many utterances of seven words or more occur verbatim in a split, of how many."""

  found: int
  of: int


def count_leak(
  demos: Iterable[Demonstration],
  split_crcs: Collection[int],
  speakers: Sequence[str] = (USER, SYSTEM),
) -> Leak:
  """Looks for the words of demonstrations in a split.

  Args:
    demos: the demonstrations.
    split_crcs: `utterance_crc` of the split's utterances.
    speakers: whose utterances are looked for.
  """
  specific = set()
  for demo in demos:
    for speaker, text in demo.turns:
      if speaker in speakers and len(text.split()) >= LEAST_WORDS:
        specific.add(text)
  return Leak(sum(utterance_crc(text) in split_crcs for text in specific), len(specific))


def said_in(corpus: Corpus, split: str) -> Iterator[int]:
  """Yields `utterance_crc` of all utterances of a split."""
  for dialogue in corpus.dialogues(split):
    for turn in dialogue.turns:
      yield utterance_crc(turn.utterance)


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
  leak = count_leak(demonstrations, {frame.utterance_crc for frame in gold}, (USER,))
  fields = {"demos": f"{demos.source}:{demos.crc}", "leak": f"{leak.found}of{leak.of}"}
  notes = (
    f"LEAK: {leak.found} of {leak.of} user utterances of {LEAST_WORDS} words or more in the "
    "demonstrations occur in the scored dialogues (docs/demonstrations.md)",
  )
  return Provenance(fields, notes if leak.found else ())
