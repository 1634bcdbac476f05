"""Fuzzy matching of predicted and gold values of non-categorical slots.

The official scorer (google-research, schema_guided_dst/metrics.py) uses
`fuzzywuzzy.fuzz.token_sort_ratio(gold, predicted) / 100`. fuzzywuzzy uses difflib unless
python-Levenshtein is installed, which the official requirements do not include. The two differ on
about 16% of real value pairs, so the back end is an option, named in every score's signature. An
exact match scores 1 with every back end.
"""

import difflib
import functools
import re

from sgdx_t5x.arguments import check_choice

BACKENDS = ("difflib", "levenshtein", "exact")

# fuzzywuzzy's "force_ascii" drops only these characters, so a Chinese value is not empty after
# cleaning.
_DROPPED = dict.fromkeys(range(128, 256))
_NOT_WORD = re.compile(r"\W")


def match(ref: str, hyp: str, backend: str = "difflib") -> float:
  """Returns the similarity of a predicted and a gold value, from 0 to 1.

  Args:
    ref: the gold value, which comes first: difflib is not symmetric.
    hyp: the predicted value.
    backend: "difflib" (the official scorer as installed by its requirements), "levenshtein" (with
      python-Levenshtein installed), or "exact" (1 or 0).

  Raises:
    SgdxError: unknown back end.
  """
  check_choice(backend, "fuzzy", BACKENDS)
  if backend == "exact" or ref == hyp:
    return float(ref == hyp)
  return _token_sort_ratio(ref, hyp, backend)


def equal(a: str, b: str, backend: str = "difflib") -> bool:
  """Whether two predicted values match with 1, whichever is the gold one. Args: see `match`."""
  return match(a, b, backend) == match(b, a, backend) == 1


# The same wrong value recurs turn after turn and in every variant. The cache is bounded (about
# 100 MB when full), so that a tracker with many wrong values cannot exhaust the memory.
@functools.lru_cache(maxsize=1 << 18)
def _token_sort_ratio(ref: str, hyp: str, backend: str) -> float:
  a, b = _sorted_tokens(ref), _sorted_tokens(hyp)
  if a == b:
    return 1.0  # values of only punctuation are equal, as in fuzzywuzzy
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
