"""What a score records of its demonstrations, and whether their words occur in its split."""

from collections.abc import Sequence

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import USER
from sgdx_t5x.metrics.frames import GoldFrame, utterance_crc
from sgdx_t5x.prompts.protocol import Provenance
from sgdx_t5x.prompts.sdt.demonstrations import Demonstrations, check_services
from sgdx_t5x.prompts.sdt.layout import chosen
from sgdx_t5x.prompts.sdt.style import SdtStyle

LEAST_WORDS = 7  # shorter utterances ("Yes, please.") are not specific


def provenance(
  demos: Demonstrations, style: SdtStyle, corpus: Corpus, gold: Sequence[GoldFrame]
) -> Provenance:
  """Returns the signature fields and the notes of a score.

  Args:
    demos: the demonstrations.
    style: which of them prompts show.
    corpus: the corpus, which has their services.
    gold: the frames that are scored, in whose user utterances they are looked for.

  Raises:
    SgdxError: a demonstration of a service that the corpus does not have.
  """
  check_services(demos, [corpus.schema(split) for split in corpus.splits])
  services = {frame.service for frame in gold}
  utterances: set[str] = set()  # of the user, in the demonstrations that prompts show
  for name, of_service in demos.by_service.items():
    for demo in chosen(of_service, style) if name in services else ():
      for speaker, text in demo.turns:
        if speaker == USER and len(text.split()) >= LEAST_WORDS:
          utterances.add(text)
  scored_crcs = {frame.utterance_crc for frame in gold}
  num_leaked = sum(utterance_crc(text) in scored_crcs for text in utterances)
  fields = {"demos": f"{demos.source}:{demos.crc}", "leak": f"{num_leaked}of{len(utterances)}"}
  notes = (
    f"LEAK: {num_leaked} of {len(utterances)} user utterances of {LEAST_WORDS} words or more in "
    "the demonstrations occur in the scored dialogues (docs/demonstrations.md)",
  )
  return Provenance(fields, notes if num_leaked else ())
