"""The frozen set: the same requests for every language model, see docs/tools/language-models.md.

`frozen.json` names its frames of SGD's test split, and has the SHA-256 of their requests: with the
six wordings of SGD-X and the tools of the frame's service, as `requests.Requests` writes them.
"""

import hashlib
import importlib.resources
from collections.abc import Sequence

import msgspec

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.variants import ORIGINAL, SGDX_VARIANTS
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.protocol import service_pairs
from sgdx_t5x.tools.requests import RequestForm, Requests
from sgdx_t5x.variants.variant_schemas import VariantSchemas

SPLIT = "test"
VARIANTS = (ORIGINAL, *SGDX_VARIANTS)


class FrozenSet(msgspec.Struct):
  """What is frozen.

  Attributes:
    sha256: of the file of all requests.
    frames: ids, one frame per dialogue; each round has one frame of every service.
  """

  sha256: str
  frames: list[str]


def frozen_set() -> FrozenSet:
  """Returns the frozen set."""
  file = importlib.resources.files(__package__) / "frozen.json"
  return msgspec.json.decode(file.read_bytes(), type=FrozenSet)


def frozen_requests(corpus: Corpus, frames: Sequence[str]) -> str:
  """Returns the requests of the first frames of the frozen set, as a file of JSON lines.

  Requests with the same tools follow each other, for the prompt caches of servers. Those of all
  frames are compared with the set's SHA-256.

  Raises SgdxError: a corpus that lacks frames, or has other words.
  """
  schemas, original = VariantSchemas(corpus, {}), corpus.schema(SPLIT)
  pairs = {name: service_pairs(original, schemas.get(SPLIT, name)) for name in VARIANTS}
  writer = Requests(SPLIT, pairs, RequestForm())
  places = {frame: place for place, frame in enumerate(frames)}
  dialogue_ids = {frame.rsplit("-", 2)[0] for frame in frames}
  placed: list[tuple[int, str, int, str]] = []
  for dialogue in corpus.dialogues(SPLIT):
    if dialogue.dialogue_id in dialogue_ids:
      for example, line in writer.lines(dialogue):
        if (place := places.get(example.frame_id)) is not None:
          placed.append((VARIANTS.index(example.variant), example.service, place, line))
  # By variant, then service: neighbours have the same tools.
  text = "".join(line for *_, line in sorted(placed))
  frozen = frozen_set()
  digest = hashlib.sha256(text.encode()).hexdigest()
  is_whole = len(frames) == len(frozen.frames)
  if len(placed) < len(frames) * len(VARIANTS) or (is_whole and digest != frozen.sha256):
    raise SgdxError(
      f"{corpus.origin}: {len(placed):,} requests with the SHA-256 {digest}",
      expected=f"{len(frames) * len(VARIANTS):,}, of all {frozen.sha256}",
      fix="pass the official archive of SGD as --corpus; `sgdx data prepare --download` fetches it",
    )
  return text
