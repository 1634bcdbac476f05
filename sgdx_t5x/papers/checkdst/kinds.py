"""The functions of the kinds of perturbation, which `register.PERTURBATIONS` lists."""

from collections.abc import Callable, Mapping

from sgdx_t5x.papers.checkdst import ned, pi, sdi, vs
from sgdx_t5x.papers.checkdst.split import Perturber

# kind -> function of a split, a seed and the kind's option, if it has one
KINDS: Mapping[str, Callable[..., Perturber]] = {
  "ned": ned.perturber,
  "pi": pi.perturber,
  "sdi": sdi.perturber,
  "vs": vs.perturber,
}
