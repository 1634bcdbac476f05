"""How far a wording of a schema is from the original: the SGD-X paper's Table 1, for any wording.

Definitions, and where the released data differ from the paper: docs/schema-statistics.md.
"""

import dataclasses
import itertools
import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.schema import Intent, Schema, Service, Slot, check_aligned
from sgdx_t5x.corpus.variants import (
  BACK_TRANSLATIONS,
  FIVE_PARAPHRASES,
  SGDX_VARIANTS,
  TEN_PARAPHRASES,
)
from sgdx_t5x.errors import require
from sgdx_t5x.progress import OnProgress, counter, no_progress
from sgdx_t5x.signature import Signature
from sgdx_t5x.variants.variant_schemas import VariantSchemas

# Those that the paper reports; the distance it calls Levenshtein is `indel_distance`.
_PAPER_KEYS = ("slot_names_in_train", "intent_names_in_train", "indel_distance", "bleu")
_AVERAGED = (*_PAPER_KEYS, "levenshtein_distance")

Set = Mapping[str, Mapping[str, Schema]]  # variant -> split -> schema


def _paper(*row: float | None) -> Mapping[str, float | None]:
  return dict(zip(_PAPER_KEYS, row, strict=True))


# SGD-X paper, Table 1, and section 5 for back-translations (by Google Translate; zh, ko, ja).
PAPER_ORIGINAL = _paper(0.65, 0.71, None, None)
PAPER_SGDX: Mapping[str, Any] = {
  "variants": {
    "v1": _paper(0.13, 0.00, 0.30, 18.8),
    "v2": _paper(0.14, 0.00, 0.42, 11.3),
    "v3": _paper(0.05, 0.04, 0.49, 5.6),
    "v4": _paper(0.06, 0.00, 0.56, 2.9),
    "v5": _paper(0.02, 0.04, 0.61, 1.0),
  },
  "average": _paper(0.08, 0.02, 0.48, 7.9),
  "self_bleu": 4.5,
}
PAPER_BACK_TRANSLATIONS: Mapping[str, Any] = {
  "variants": {},
  "average": _paper(None, None, 0.14, 34.1),
  "self_bleu": 41.8,
}
SGDX = "SGD-X"


@dataclasses.dataclass(frozen=True)
class SchemaStatistics:
  """One wording against the original.

  Attributes:
    num_services: services compared.
    num_names: names of their slots and intents.
    num_descriptions: descriptions of services, slots and intents.
    slot_names_in_train: share, 0 to 1, of the slots of unseen services whose name is a slot name
      in train's original schema; None if there are no such slots, or no train.
    intent_names_in_train: the same for intents.
    indel_distance: mean over names of 1 - ratio, 0 to 1; ratio as in python-Levenshtein, where
      replacing a character costs two. The paper's "Levenshtein".
    levenshtein_distance: mean over names of edits / length of the longer name, 0 to 1.
    bleu: of the descriptions against the original's, 0 to 100.
  """

  num_services: int
  num_names: int
  num_descriptions: int
  slot_names_in_train: float | None
  intent_names_in_train: float | None
  indel_distance: float | None
  levenshtein_distance: float | None
  bleu: float | None


def schema_statistics(
  originals: Sequence[Schema],
  variants: Sequence[Schema],
  train: Schema | None = None,
  unseen: Collection[str] | None = None,
) -> SchemaStatistics:
  """Compares schemas with the originals they reword. A service in several of them counts once.

  Args:
    originals: original schemas, one per split.
    variants: their rewordings, in the same order.
    train: original schema of train.
    unseen: original names of the services whose slot and intent names are looked up in `train`;
      None for all services that `train` does not have.

  Raises:
    SgdxError: a pair that does not align, or sacrebleu is not installed.
  """
  from rapidfuzz.distance import Indel, Levenshtein

  pairs = _pairs(originals, variants)
  indel_distances: list[float] = []
  levenshtein_distances: list[float] = []
  references: list[str] = []
  descriptions: list[str] = []
  for original, reworded in pairs:
    for a, b in zip(_elements(original), _elements(reworded), strict=True):
      indel_distances.append(Indel.normalized_distance(a.name, b.name))
      levenshtein_distances.append(Levenshtein.normalized_distance(a.name, b.name))
    references += _descriptions(original)
    descriptions += _descriptions(reworded)
  slot_share = intent_share = None
  if train is not None:
    if unseen is None:
      unseen = {original.name for original, _ in pairs}.difference(train.names)
    unseen_services = [reworded for original, reworded in pairs if original.name in unseen]
    slot_share = _share_in_train(unseen_services, train, "slots")
    intent_share = _share_in_train(unseen_services, train, "intents")
  return SchemaStatistics(
    len(pairs),
    len(indel_distances),
    len(descriptions),
    slot_share,
    intent_share,
    _mean(indel_distances),
    _mean(levenshtein_distances),
    corpus_bleu(descriptions, references),
  )


def self_bleu(
  originals: Mapping[str, Schema], variants: Sequence[Mapping[str, Schema]]
) -> float | None:
  """BLEU of every variant's descriptions against every other's, as one corpus of pairs.

  Args:
    originals: split -> original schema.
    variants: split -> schema of each variant; services that all variants have are compared.

  Returns:
    0 to 100, lower is more diverse; None if there are fewer than two variants, or no service that
    all have.
  """
  if not variants:
    return None
  texts: list[dict[str, list[str]]] = []  # per variant: service -> descriptions
  for variant in variants:
    pairs = _pairs([originals[split] for split in variant], list(variant.values()))
    texts.append({original.name: _descriptions(reworded) for original, reworded in pairs})
  common = set.intersection(*map(set, texts))
  hypotheses: list[str] = []
  references: list[str] = []
  for variant_texts, other_texts in itertools.permutations(texts, 2):
    for name in common:  # in any order: BLEU sums counts over all texts
      hypotheses += variant_texts[name]
      references += other_texts[name]
  return corpus_bleu(hypotheses, references)


def corpus_bleu(texts: Sequence[str], references: Sequence[str]) -> float | None:
  """BLEU-4, 0 to 100, lower-cased, one reference per text; None if there is no text."""
  return _bleu().corpus_score(list(texts), [list(references)]).score if texts else None


def report(
  corpus: Corpus, sets: Mapping[str, Set], on_progress: OnProgress = no_progress
) -> dict[str, Any]:
  """Returns the statistics of sets of variants in the form of `sgdx stats --format json`.

  Args:
    corpus: has the originals.
    sets: name -> variant -> split -> schema; "v1" to "v5" of SGD and back-translations ("bt_...")
      get the paper's numbers beside theirs.
    on_progress: called with (task, done, total, unit).

  Raises:
    SgdxError: a schema that does not align, or sacrebleu is not installed.
  """
  originals = {split: corpus.schema(split) for split in corpus.splits}
  train = originals.get("train")
  # As in the paper, the names of test's new services are looked up, not those of dev's.
  unseen = frozenset()
  if train is not None and "test" in originals:
    unseen = frozenset(originals["test"].names) - corpus.seen_services("test")

  # Of n variants, each is compared with the original, and for self-BLEU with n - 1 others.
  total = 1 + sum(len(variants) ** 2 for variants in sets.values())
  advance = counter(on_progress, "computing distances", total, "comparisons")

  def numbers(variant: Mapping[str, Schema]) -> dict[str, Any]:
    compared = [originals[split] for split in variant]
    result = schema_statistics(compared, list(variant.values()), train, unseen)
    advance(1)
    return dataclasses.asdict(result)

  is_sgd, original = corpus.name == "sgd", numbers(originals)
  reported_sets = []
  for name, variants in sets.items():
    rows = {variant: numbers(schemas) for variant, schemas in variants.items()}
    average = {key: _mean([row[key] for row in rows.values()]) for key in _AVERAGED}
    bleu = self_bleu(originals, list(variants.values()))
    advance(len(variants) * (len(variants) - 1))
    reported_sets.append(
      {
        "name": name,
        "variants": rows,
        "average": average,
        "self_bleu": bleu,
        "paper": _paper_of(name, variants) if is_sgd else None,
      }
    )
  return {
    "format": "sgdx-stats/1",
    "signature": _signature(corpus, original["num_services"], len(unseen)),
    "original": original,
    "paper_original": PAPER_ORIGINAL if is_sgd else None,
    "sets": reported_sets,
  }


def variant_sets(schemas: VariantSchemas) -> dict[str, Set]:
  """Returns the sets of variants that a data set has: SGD-X, back-translations, and what ships."""
  sets = {
    SGDX: schemas.by_variant(SGDX_VARIANTS),
    "back-translations": schemas.by_variant(BACK_TRANSLATIONS),
    "back-translations that ship with sgdx_t5x": schemas.by_variant(
      BACK_TRANSLATIONS, shipped=True
    ),
    "paraphrases that ship with sgdx_t5x": schemas.by_variant(FIVE_PARAPHRASES, shipped=True),
    "ten more that ship with sgdx_t5x": schemas.by_variant(TEN_PARAPHRASES, shipped=True),
  }
  return {name: variants for name, variants in sets.items() if variants}


# --- parts ---------------------------------------------------------------------------------


def _pairs(
  originals: Sequence[Schema], variants: Sequence[Schema]
) -> list[tuple[Service, Service]]:
  """Returns (original, reworded) services of aligned schemas, each service once."""
  pairs: dict[str, tuple[Service, Service]] = {}
  for original, variant in zip(originals, variants, strict=True):
    check_aligned(original, variant)
    for service, reworded in zip(original, variant, strict=True):
      pairs.setdefault(service.name, (service, reworded))
  return list(pairs.values())


def _descriptions(service: Service) -> list[str]:
  return [item.description for item in (service, *_elements(service))]


def _elements(service: Service) -> tuple[Slot | Intent, ...]:
  return (*service.slots, *service.intents)


def _share_in_train(services: Sequence[Service], train: Schema, kind: str) -> float | None:
  """Returns the share of the names of the services' `kind`, slots or intents, that train has."""
  train_names: set[str] = set()
  for service in train:
    train_names.update(item.name for item in getattr(service, kind))
  is_in_train: list[bool] = []
  for service in services:
    is_in_train += [item.name in train_names for item in getattr(service, kind)]
  return _mean(is_in_train)


def _mean(values: Sequence[float | None]) -> float | None:
  numbers = [float(x) for x in values if x is not None]
  return statistics.fmean(numbers) if numbers else None


def _paper_of(name: str, variants: Collection[str]) -> Mapping[str, Any] | None:
  if name == SGDX and len(variants) == len(SGDX_VARIANTS):
    return PAPER_SGDX
  return PAPER_BACK_TRANSLATIONS if all(v.startswith("bt_") for v in variants) else None


def _bleu() -> Any:
  sacrebleu = require("sacrebleu", extra="stats", why="BLEU of descriptions")
  return sacrebleu.BLEU(lowercase=True, force=True)  # force: no warning about tokenised text


def _signature(corpus: Corpus, num_services: int, num_unseen: int) -> str:
  bleu = _bleu()
  bleu.corpus_score(["-"], [["-"]])  # it has no signature before its first use
  fields: dict[str, str | int] = {
    "splits": "+".join(corpus.splits),
    "services": num_services,
    "unseen": num_unseen,
    "bleu": str(bleu.get_signature()).replace(":", "=").replace("|", ","),
  }
  return str(Signature.of(corpus.name, corpus.checksum(), fields))
