"""What some tests need and not every machine has: data, a browser, large packages.

Where it is lacking, the tests of a file that need it are skipped with one message.
"""

import collections
import importlib.util
import os
import shutil

import pytest
from shared import in_users_clone


def chromium_program() -> str | None:
  """Returns the path of Chromium."""
  names = ("chromium", "chromium-browser", "google-chrome")
  return next(filter(None, map(shutil.which, names)), None)


def lacks(*packages: str) -> bool:
  """Whether one of the packages is not installed."""
  return any(importlib.util.find_spec(name) is None for name in packages)


_SHARED = (in_users_clone, "../shared (SGD, T5's vocabulary), which a user's clone does not have")
# Fixture -> whether what it needs is lacking, and what that is. CI must have all of it but torch.
_FIXTURES = {
  "real_archive": _SHARED,
  "t5_vocabulary_file": _SHARED,
  "chromium": (
    lambda: not os.environ.get("CI") and (lacks("playwright") or not chromium_program()),
    "playwright and a chromium on the PATH",
  ),
  "transformers": (
    lambda: lacks("torch", "sentencepiece", "transformers"),
    "torch and transformers: pip install '.[hf]'",
  ),
}


def skip_what_is_lacking(config, items) -> None:
  """Skips the tests whose fixtures lack something; leaves one of those that a file has."""
  together = collections.defaultdict(list)
  for item in items:
    reason = _reason(item)
    if reason:
      together[item.path, reason].append(item)
  others = set()
  for (_, reason), (first, *rest) in together.items():
    number = f" ({1 + len(rest)} tests of this file)" if rest else ""
    # Before a mark of its own, which has no number.
    first.add_marker(pytest.mark.skipif(True, reason=reason + number), append=False)
    others.update(rest)
  config.hook.pytest_deselected(items=list(others))
  items[:] = [item for item in items if item not in others]


def _reason(item) -> str | None:
  """Why a test is skipped, as told before it runs."""
  for fixture in getattr(item, "fixturenames", ()):
    is_lacking, what = _FIXTURES.get(fixture, (bool, ""))
    if is_lacking():
      return f"needs {what}"
  for mark in item.iter_markers("skipif"):
    if mark.args[0] is True:
      return mark.kwargs["reason"]
  return None
