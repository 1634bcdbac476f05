"""Translation providers, which make back-translations of the texts of a schema.

A new one is a file here, a function in `PROVIDERS`, and its options in `cli/backtranslate.py`.
One that translates plain texts only needs a `texts.Translator`; `texts.TextProvider` does the rest.
"""

import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from sgdx_t5x.errors import UsageError, nearest
from sgdx_t5x.variants.translations import Notify, Provider


def open_provider(
  name: str, options: Mapping[str, Any], cache: pathlib.Path, notify: Notify
) -> Provider:
  """Returns a provider.

  Args:
    name: key of `PROVIDERS`.
    options: of that provider, as far as given.
    cache: folder for translations; created when there is something to keep.
    notify: called with messages for the user.

  Raises:
    SgdxError: no such provider, or invalid options.
  """
  if name not in PROVIDERS:
    raise UsageError(
      f"provider {name!r}",
      expected="a translation provider",
      available=nearest(name, PROVIDERS),
      fix="choose one of them",
    )
  return PROVIDERS[name](options, cache, notify)


def _table(options: Mapping[str, Any], cache: pathlib.Path, notify: Notify) -> Provider:
  if options:
    from sgdx_t5x.variants.translations import open_table

    return open_table(**options)
  from sgdx_t5x.variants.shipped import shipped_table

  return shipped_table()


def _google(options: Mapping[str, Any], cache: pathlib.Path, notify: Notify) -> Provider:
  from sgdx_t5x.papers.backtranslation.providers.google import GoogleTranslator
  from sgdx_t5x.papers.backtranslation.providers.texts import TextProvider

  return TextProvider(GoogleTranslator(**options, notify=notify), cache, notify)


def _hf(options: Mapping[str, Any], cache: pathlib.Path, notify: Notify) -> Provider:
  from sgdx_t5x.papers.backtranslation.providers.huggingface import HuggingFaceTranslator
  from sgdx_t5x.papers.backtranslation.providers.texts import TextProvider

  return TextProvider(HuggingFaceTranslator(**options), cache, notify)


PROVIDERS: Mapping[str, Callable[[Mapping[str, Any], pathlib.Path, Notify], Provider]] = {
  "table": _table,
  "google": _google,
  "hf": _hf,
}
