"""The functions of the kinds of perturbation, which `register.PERTURBATIONS` lists."""

from collections.abc import Callable, Mapping

from sgdx_t5x.papers.checkdst import ned, pi, sdi, vs
from sgdx_t5x.papers.checkdst.split import Perturber, Split

# kind -> function of a split, a seed and the kind's option, if it has one
KINDS: Mapping[str, Callable[..., Perturber]] = {
  "ned": ned.perturber,
  "pi": pi.perturber,
  "sdi": sdi.perturber,
  "vs": vs.perturber,
}


def open_perturber(kind: str, split: Split, seed: int, options: Mapping[str, str]) -> Perturber:
  """Returns the perturber of the dialogues of a split.

  Args:
    kind: key of KINDS.
    split: what is perturbed; kinds that draw from it read it here.
    seed: determines the result, together with the options.
    options: of that kind, as far as given.

  Raises:
    KeyError: no such kind.
    SgdxError: an unsuitable corpus, or no such file.
  """
  return KINDS[kind](split, seed, **options)
