"""How well a predicted value matches a gold value of a non-categorical slot.

The official scorer (google-research, schema_guided_dst/metrics.py) takes
`fuzzywuzzy.fuzz.token_sort_ratio(gold, predicted) / 100`. fuzzywuzzy measures with
difflib unless python-Levenshtein happens to be installed, which the official requirements
do not ask for; the two differ on about 16% of real value pairs (field notes, section 1),
so the back end is a choice that every score names. A right value scores 1 with any.
"""

import difflib
import functools
import re

from sgdx_t5x.errors import SgdxError

BACKENDS = ("difflib", "levenshtein", "exact")

# fuzzywuzzy's "force_ascii" drops these characters only; others stay, so a value in Chinese
# is not empty after cleaning.
_DROPPED = dict.fromkeys(range(128, 256))
_NOT_WORD = re.compile(r"\W")


def match(ref: str, hyp: str, backend: str = "difflib") -> float:
  """Returns how well a predicted value matches a gold one, from 0 to 1.

  Args:
    ref: the gold value. difflib is not symmetric: the gold value comes first.
    hyp: the predicted value.
    backend: "difflib" (the official scorer as its requirements install it),
      "levenshtein" (the same with python-Levenshtein installed), or "exact" (1 or 0).

  Raises:
    SgdxError: unknown back end.
  """
  if backend not in BACKENDS:
    raise SgdxError(
      f"fuzzy back end {backend!r}",
      expected="a way to compare values",
      available=", ".join(BACKENDS),
      fix="name one of them; difflib is what the official scorer uses",
    )
  if backend == "exact":
    return float(ref == hyp)
  return 1.0 if ref == hyp else _token_sort_ratio(ref, hyp, backend)


# The same wrong value comes back turn after turn and in every variant. Bounded, so that a
# tracker which generates much nonsense cannot fill the memory: some 100 MB when full.
@functools.lru_cache(maxsize=1 << 18)
def _token_sort_ratio(ref: str, hyp: str, backend: str) -> float:
  a, b = _sorted_tokens(ref), _sorted_tokens(hyp)
  if a == b:
    return 1.0  # two values of punctuation only are equal, as in fuzzywuzzy
  if not a or not b:
    return 0.0
  if backend == "difflib":
    percent = 100 * difflib.SequenceMatcher(None, a, b).ratio()
  else:
    from rapidfuzz import fuzz  # only this back end needs it

    percent = fuzz.ratio(a, b)
  return round(percent) / 100  # fuzzywuzzy scores in whole percent


def _sorted_tokens(text: str) -> str:
  return " ".join(sorted(_NOT_WORD.sub(" ", text.translate(_DROPPED)).lower().split()))
