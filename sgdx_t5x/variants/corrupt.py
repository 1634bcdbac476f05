"""Corrupted variants of a schema: random words and words out of order, given a seed.

The SGD-X paper (Lee et al. 2022, section 5) tried such corruptions of names and descriptions as
training data beside back-translation, and they did not help: noise is no paraphrase. They are
here to reproduce that result. The paper gives no rates; ours change a little more than
back-translation does (indel distance of names .20 against .13, BLEU of descriptions 24 against 37).
"""

import random
from collections.abc import Sequence

from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.variants.wording import Element, reword, wording

REPLACED = 0.2  # share of words that become others of the schema's names, or descriptions
MOVED = 2  # most places that a word moves


def corrupt_schema(schema: Schema, seed: int) -> Schema:
  """Returns the schema with random words in it and words out of place.

  Args:
    seed: determines an element's corruption, whatever other services and elements the schema
      has, except that these change the words to draw from.
  """
  texts = wording(schema)
  words: dict[str, set[str]] = {}  # of all names, and of all descriptions
  for element, text in texts.items():
    words.setdefault(element.field, set()).update(text.split())
  pools = {field: sorted(of_field) for field, of_field in words.items()}
  corrupted = {}
  for element, text in texts.items():
    corrupted[element] = _corrupt(element, text, pools[element.field], seed)
  corrupted_schema, _ = reword(schema, corrupted, f"{schema.origin}, corrupted with seed {seed}")
  return corrupted_schema


def _corrupt(element: Element, text: str, pool: Sequence[str], seed: int) -> str:
  rng = random.Random(f"{seed}/{element.key}")  # per element: others do not affect it
  words = [rng.choice(pool) if rng.random() < REPLACED else word for word in text.split()]
  # Sorting by place + up to MOVED + 1: no word passes more than MOVED others.
  places = [i + rng.uniform(0, MOVED + 1) for i in range(len(words))]
  return " ".join(word for _, word in sorted(zip(places, words, strict=True)))
