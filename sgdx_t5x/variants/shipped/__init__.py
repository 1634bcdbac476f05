"""Back-translations and paraphrases that ship with this package: of SGD's train services.

`paraphrases.jsonl` was written from the texts of the train split alone, for this project, by a
language model that was shown nothing else, not even SGD-X; `sgdx compose` put it in order, first
five of each text and then, written later, ten (docs/compose.md).
"""

import functools
import importlib.resources
import json
import zlib

from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.corpus.variants import PARAPHRASES, PIVOTS
from sgdx_t5x.variants.compose import with_digit
from sgdx_t5x.variants.translations import Record, TranslationTable, apply_records, read_records
from sgdx_t5x.variants.wording import Element, reword, wording

SGD_TRAIN = "b4f33b54"  # `wording_checksum` of the texts that were reworded


def wording_checksum(schema: Schema) -> str:
  """CRC-32 of all names and descriptions, as 8 hex digits."""
  texts = "\n".join(f"{element.key}\t{text}" for element, text in wording(schema).items())
  return f"{zlib.crc32(texts.encode()):08x}"


@functools.cache
def shipped_table() -> TranslationTable:
  """Returns the records in this folder, one file per pivot."""
  folder = importlib.resources.files("sgdx_t5x.variants.shipped")
  records: list[Record] = []
  for pivot in PIVOTS:
    records += read_records(folder / f"{pivot}.jsonl")
  return TranslationTable(records, "the shipped back-translations")


@functools.cache
def shipped_paraphrases() -> dict[Element, tuple[str, ...]]:
  """Returns the paraphrases of each text, by `PARAPHRASES`; names are written as words."""
  file = importlib.resources.files("sgdx_t5x.variants.shipped") / "paraphrases.jsonl"
  rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
  return {Element.from_key(row["element"]): tuple(row["paraphrases"]) for row in rows}


def shipped_schema(original: Schema, variant: str) -> Schema | None:
  """Returns a schema in a shipped wording.

  Args:
    original: the schema of a split; its texts must be those that were reworded.
    variant: "bt_zh", "bt_ja", "bt_ko", "para_1" to "para_15".

  Returns:
    The schema; None unless each of its names and descriptions has a record: dev and test of SGD
    have other services, and a custom schema may share only the name of one of train's.
  """
  origin = f"shipped {variant} of {original.origin}"
  if variant in PARAPHRASES:
    if wording_checksum(original) != SGD_TRAIN:
      return None
    k = PARAPHRASES.index(variant) + 1
    texts = {element: texts[k - 1] for element, texts in shipped_paraphrases().items()}
    return with_digit(reword(original, texts, origin)[0], k)
  pivot = variant.removeprefix("bt_")
  texts = wording(original)
  table = shipped_table()
  has_all_records = pivot != variant and table.has(texts, pivot)
  if not has_all_records or wording_checksum(original) != SGD_TRAIN:
    return None
  return apply_records(original, table.back_translate(list(texts.items()), pivot), origin)[0]
