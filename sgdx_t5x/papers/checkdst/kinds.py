"""The kinds of perturbation: a line here and a file each; CONTRIBUTING.md has the rest."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sgdx_t5x.errors import UsageError, nearest
from sgdx_t5x.papers.checkdst import ned, pi, sdi, vs
from sgdx_t5x.papers.checkdst.split import Perturber, Split
from sgdx_t5x.papers.coco import coco_open

# kind -> (function of a split, a seed and options; names of the options)
KINDS: Mapping[str, tuple[Callable[..., Perturber], tuple[str, ...]]] = {
  "ned": (ned.perturber, ("entities", "slots")),
  "pi": (pi.perturber, ("provider", "table", "pivot", "model_to", "model_from", "project")),
  "sdi": (sdi.perturber, ("only", "restart", "terms")),
  "vs": (vs.perturber, ("values",)),
}
OPTIONS: Mapping[str, tuple[str, ...]] = {
  **{kind: names for kind, (_, names) in KINDS.items()},
  "coco": coco_open.OPTIONS,  # a turn becomes a dialogue: see `coco_write`
}


def open_perturber(kind: str, split: Split, seed: int, options: Mapping[str, Any]) -> Perturber:
  """Returns the perturber of the dialogues of a split.

  Args:
    kind: key of KINDS.
    split: what is perturbed; kinds that draw from it read it here.
    seed: determines the result, together with the options.
    options: of that kind, as far as given.

  Raises:
    UsageError: no such kind, or an option of another kind.
    SgdxError: invalid options or an unsuitable corpus.
  """
  check_options(kind, options)
  return KINDS[kind][0](split, seed, **options)


def check_options(kind: str, options: Iterable[str]) -> None:
  """Refuses an unknown kind, and options of another one. Raises UsageError."""
  if kind not in OPTIONS:
    raise UsageError(
      f"kind {kind!r}",
      expected="a kind of perturbation",
      available=nearest(kind, OPTIONS),
      fix="choose one of them",
    )
  for name in options:
    if name not in OPTIONS[kind]:
      owners = [other for other, own in OPTIONS.items() if name in own]
      raise UsageError(
        f"--{name.replace('_', '-')} with --kind {kind}",
        expected=f"--kind {' or '.join(owners)}" if owners else "an option of that kind",
        available=" ".join(f"--{own.replace('_', '-')}" for own in OPTIONS[kind]),
        fix="omit it, or choose the kind that it belongs to",
      )
