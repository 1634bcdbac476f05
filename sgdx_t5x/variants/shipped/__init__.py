"""Back-translations and paraphrases that ship with this package: of SGD's train services.

`paraphrases.jsonl` was written for this project by a language model: first five of each text of the
train split from these texts alone; later ten, for which it was shown the paraphrases that existed,
too. It was never shown SGD-X. `sgdx compose` put them in order (docs/compose.md).
"""

import functools
import importlib.resources
import json
import zlib

from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.corpus.variants import BACK_TRANSLATIONS, PARAPHRASES
from sgdx_t5x.variants.compose import with_digit
from sgdx_t5x.variants.wording import Element, reword, wording

SGD_TRAIN = "b4f33b54"  # `wording_checksum` of the texts that were reworded


def wording_checksum(schema: Schema) -> str:
  """CRC-32 of all names and descriptions, as 8 hex digits."""
  texts = "\n".join(f"{element.key}\t{text}" for element, text in wording(schema).items())
  return f"{zlib.crc32(texts.encode()):08x}"


@functools.cache
def shipped_texts(variant: str) -> dict[Element, str]:
  """Returns the texts of a shipped variant; names are written as words."""
  is_paraphrase = variant in PARAPHRASES
  name = "paraphrases" if is_paraphrase else variant.removeprefix("bt_")
  file = importlib.resources.files("sgdx_t5x.variants.shipped") / f"{name}.jsonl"
  texts = {}
  for row in map(json.loads, file.read_bytes().splitlines()):
    if "element" in row:  # a header has none
      text = row["paraphrases"][PARAPHRASES.index(variant)] if is_paraphrase else row["text"]
      texts[Element.from_key(row["element"])] = text
  return texts


def shipped_schema(original: Schema, variant: str) -> Schema | None:
  """Returns a schema in a shipped wording.

  Args:
    original: the schema of a split; its texts must be those that were reworded.
    variant: "bt_zh", "bt_ja", "bt_ko", "para_1" to "para_15".

  Returns:
    The schema; None unless each of its names and descriptions was reworded: dev and test of SGD
    have other services, and a custom schema may share only the name of one of train's.
  """
  is_shipped = variant in BACK_TRANSLATIONS + PARAPHRASES
  if not is_shipped or wording_checksum(original) != SGD_TRAIN:
    return None
  schema, _ = reword(original, shipped_texts(variant), f"shipped {variant} of {original.origin}")
  return with_digit(schema, PARAPHRASES.index(variant) + 1) if variant in PARAPHRASES else schema
