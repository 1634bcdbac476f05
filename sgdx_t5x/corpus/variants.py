"""Names of splits and schema variants, and of variants of perturbed corpora."""

from collections.abc import Iterable, Sequence

from sgdx_t5x import annexes

SPLITS = ("train", "dev", "test")
ORIGINAL = "original"
SGDX_VARIANTS = ("v1", "v2", "v3", "v4", "v5")
PIVOTS = ("zh", "ja", "ko")
BACK_TRANSLATIONS = tuple(f"bt_{pivot}" for pivot in PIVOTS)
# Shipped for SGD's train services, not part of a corpus. Two sets, of each the nearest first.
FIVE_PARAPHRASES = tuple(f"para_{k}" for k in range(1, 6))  # those of the second study
TEN_PARAPHRASES = tuple(f"para_{k}" for k in range(6, 16))
PARAPHRASES = FIVE_PARAPHRASES + TEN_PARAPHRASES
ALL_VARIANTS = (ORIGINAL, *SGDX_VARIANTS, *BACK_TRANSLATIONS)
# Kinds of perturbation of a corpus' dialogues; no variant may have such a name.
PERTURBATIONS = tuple(annexes.table("PERTURBATIONS"))


def in_order(variants: Iterable[str], own_variants: Iterable[str] = ()) -> list[str]:
  """Sorts names of variants: original, v1 to v5, back-translations, paraphrases, then others.

  Args:
    variants: the names. Others that are not in `own_variants` come last and keep their order.
    own_variants: variants of the user's own, in the order in which the user named them.
  """
  order = (*ALL_VARIANTS, *PARAPHRASES, *own_variants)
  return sorted(variants, key=lambda x: order.index(x) if x in order else len(order))


def reworded_variants(variants: Iterable[str]) -> tuple[str, ...]:
  """Returns the variants that means and schema sensitivity are over.

  They are v1 to v5, even if some are missing; without any of these, all others in their order.
  """
  reworded = [variant for variant in variants if variant != ORIGINAL]
  if not reworded or not set(SGDX_VARIANTS).isdisjoint(reworded):
    return SGDX_VARIANTS
  return tuple(reworded)


def tagged(kinds: Sequence[str], variant: str) -> str:
  """Returns the name of a perturbed corpus's variant in ids: "ned" for the original, "ned+v3".

  Args:
    kinds: kinds of perturbation, see `Corpus.perturbed`; a corpus without any has plain names.
    variant: of the schema.
  """
  if kinds and variant == ORIGINAL:
    return "+".join(kinds)
  return "+".join([*kinds, variant])


def untagged(name: str) -> tuple[tuple[str, ...], str]:
  """Returns kinds of perturbation and variant of a name that `tagged` made."""
  kinds, remaining = [], name.split("+")
  while remaining and remaining[0] in PERTURBATIONS:
    kinds.append(remaining.pop(0))
  return (tuple(kinds), "+".join(remaining) or ORIGINAL) if kinds else ((), name)
