"""The kinds of perturbation: a line here and a file each; CONTRIBUTING.md has the rest."""

from collections.abc import Callable, Mapping
from typing import Any

from sgdx_t5x.papers.checkdst import ned, pi, sdi, vs
from sgdx_t5x.papers.checkdst.split import Perturber, Split

# kind -> (function of a split, a seed and options; names of the options)
KINDS: Mapping[str, tuple[Callable[..., Perturber], tuple[str, ...]]] = {
  "ned": (ned.perturber, ("entities", "slots")),
  "pi": (pi.perturber, ("provider", "table", *pi.OF_CHECKPOINT)),
  "sdi": (sdi.perturber, ("only", "restart", "terms")),
  "vs": (vs.perturber, ("values",)),
}


def open_perturber(kind: str, split: Split, seed: int, options: Mapping[str, Any]) -> Perturber:
  """Returns the perturber of the dialogues of a split.

  Args:
    kind: key of KINDS.
    split: what is perturbed; kinds that draw from it read it here.
    seed: determines the result, together with the options.
    options: of that kind, as far as given.

  Raises:
    KeyError: no such kind.
    SgdxError: invalid options or an unsuitable corpus.
  """
  return KINDS[kind][0](split, seed, **options)
