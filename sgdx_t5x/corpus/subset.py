"""A random sample of the dialogues of a corpus, for models too slow for a whole split."""

import hashlib
from collections.abc import Iterator, Mapping

from sgdx_t5x.corpus.corpus import Check, Corpus
from sgdx_t5x.corpus.dialogue import Dialogue, check_dialogue
from sgdx_t5x.errors import UsageError


class Subset(Corpus):
  """A corpus with a sample of the dialogues of some splits; schemas are complete.

  Dialogues are sampled at random, so services keep their shares and scores estimate those of the
  whole split (`sgdx prompts --limit` spreads a sample over services instead). "Random" means the
  order of a hash of seed and id, the same in every Python; a larger sample contains a smaller.
  """

  def __init__(self, corpus: Corpus, num_dialogues: Mapping[str, int], seed: int = 0):
    """Args: corpus; num_dialogues, split -> size of its sample, other splits stay complete; seed.

    Raises:
      SgdxError: a split that the corpus lacks.
      UsageError: a number below 1 or above that of the split's dialogues.
    """
    super().__init__(corpus.source)
    self._chosen: dict[str, frozenset[str]] = {}  # split -> ids
    for split, number in num_dialogues.items():
      self._chosen[split] = self._sample(corpus, split, number, seed)

  def dialogues(self, split: str, check: Check = check_dialogue) -> Iterator[Dialogue]:
    """Like `Corpus.dialogues`; all are checked, but only the sample is yielded."""
    for dialogue in super().dialogues(split, check):
      if split not in self._chosen or dialogue.dialogue_id in self._chosen[split]:
        yield dialogue

  def expected_dialogues(self, split: str) -> int | None:
    """The size of the sample."""
    return len(self._chosen[split]) if split in self._chosen else super().expected_dialogues(split)

  def is_complete(self, split: str, num_dialogues: int) -> bool:
    """False for a split that was sampled."""
    return split not in self._chosen and super().is_complete(split, num_dialogues)

  def checksum(self) -> str:
    """Like `Corpus.checksum`, but also depends on which dialogues were sampled."""
    digest = hashlib.sha256(super().checksum().encode())
    for split, ids in sorted(self._chosen.items()):
      digest.update(f"\n{split} {' '.join(sorted(ids))}".encode())
    return digest.hexdigest()[:16]

  def _sample(self, corpus: Corpus, split: str, number: int, seed: int) -> frozenset[str]:
    # Unchecked: `dialogues` checks all of them when they are read.
    ids = [d.dialogue_id for d in corpus.dialogues(split, lambda *_: None)]
    if not 1 <= number <= len(ids):
      raise UsageError(
        f"{number:,} dialogues of {split}",
        expected="at least 1, and at most as many as the split has",
        available=f"{split} has {len(ids):,}",
        fix=f"request 1 to {len(ids):,}, or give no number to use all of {split}"
        if ids
        else f"pass a corpus with dialogues of {split}, or sample none of it",
      )
    return frozenset(sorted(ids, key=lambda name: rank(name, seed))[:number])


def rank(dialogue_id: str, seed: int) -> bytes:
  """The key by which dialogues are sorted to be sampled."""
  return hashlib.sha256(f"{seed}/{dialogue_id}".encode()).digest()
