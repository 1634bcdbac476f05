"""SeqIO tasks and mixtures of CheckDST's perturbed corpora, for all families registered so far.

Importing this module registers them; other annexes' tasks must be imported before it. The test sets
are made with seed 0, the training sets with another seed and other names.
"""

from sgdx_t5x.corpus.variants import ORIGINAL, SGDX_VARIANTS, tagged
from sgdx_t5x.papers.checkdst.register import PERTURBATIONS
from sgdx_t5x.tasks.registration import FAMILIES, register_mixture


def register_perturbed(family: str, records: str, suffix: str, kind: str) -> list[str]:
  """Registers the tasks of a perturbed corpus: with the original schemas, and with v1 to v5.

  Args:
    family: key of `FAMILIES`.
    records: name of the records, without "sample_".
    suffix: of the tasks' names, after the family.
    kind: of the perturbation, as ids of examples name it.

  Returns:
    The names of the tasks, that with the original schemas first.
  """
  names = [register_task(family, records, suffix, kind)]
  for variant in SGDX_VARIANTS:
    names.append(register_task(family, records, f"{suffix}_{variant}", kind, variant))
  return names


def register_task(
  family: str, records: str, suffix: str, kind: str, variant: str = ORIGINAL
) -> str:
  """Registers the task of one schema variant. Returns its name. Args: see `register_perturbed`."""
  own_family = FAMILIES[family]
  name = f"{family}_{suffix}"
  prefix = "sample_" if own_family.data == "sample" else ""
  own_family.register(name, data=f"{prefix}{records}", variants=[tagged([kind], variant)])
  return name


def test_sets(family: str) -> list[str]:
  """Returns the tasks that are evaluated together: original, v1 to v5, ned, pi and sdi."""
  return [*FAMILIES[family].tasks, *(f"{family}_checkdst_{kind}" for kind in ("ned", "pi", "sdi"))]


def _register_family(family: str) -> None:
  original = FAMILIES[family].tasks[0]
  for kind in PERTURBATIONS:
    names = register_perturbed(family, kind, f"checkdst_{kind}", kind)
    register_mixture(f"{family}_checkdst_{kind}_all_variants", names)
  every = test_sets(family)
  register_mixture(f"{family}_checkdst", [original, *every[-3:]])
  register_mixture(f"{family}_all_variants_checkdst", every)
  for kind in ("ned", "sdi"):
    copies = register_task(family, f"{kind}_aug", f"sgd_{kind}_aug", kind)
    register_mixture(f"{family}_{kind}_aug", [original, copies])


PERTURBED_FAMILIES = tuple(FAMILIES)  # those that had been registered when this was imported
for _family in PERTURBED_FAMILIES:
  _register_family(_family)
