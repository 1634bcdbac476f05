"""Providers that translate plain texts: both directions, batches, and a cache on disk.

Each distinct text is translated once, and written to the cache with its batch as soon as that is
returned: a killed run loses one batch, and the same command resumes from there.
"""

import dataclasses
import datetime
import hashlib
import json
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sgdx_t5x.errors import SgdxError, first_line
from sgdx_t5x.files.reading import is_text
from sgdx_t5x.papers.backtranslation.translations import (
  SOURCE,
  Items,
  Notify,
  Progress,
  Record,
)

if TYPE_CHECKING:
  from sgdx_t5x.papers.backtranslation.checkpoint import CheckpointTranslator

CACHE_FORMAT = "sgdx-translations/1"


@dataclasses.dataclass(frozen=True, slots=True)
class _Translation:
  text: str
  date: str


class TextProvider:
  """Makes a provider of a translator."""

  def __init__(self, translator: "CheckpointTranslator", cache: pathlib.Path, notify: Notify):
    """Args: the translator; the folder of its cache; notify, called with messages for the user."""
    self._translator, self._folder, self._notify = translator, cache, notify

  def check(self, pivots: Sequence[str]) -> None:
    """Refuses pivots that the translator does not support."""
    self._translator.check(pivots)

  def back_translate(self, items: Items, pivot: str, progress: Progress) -> list[Record]:
    """Returns the records of all items. Raises SgdxError if the translator fails."""
    texts = _distinct(text for _, text in items)
    forward = self._translate(texts, SOURCE, pivot, progress)
    pivot_texts = _distinct(translation.text for translation in forward.values())
    back = self._translate(pivot_texts, pivot, SOURCE, progress)
    label, records = self._translator.label(pivot), []
    for element, text in items:
      in_pivot = forward.get(text, _Translation("", ""))
      # Nothing is translated back; today's date would make each day's records differ.
      returned = back.get(in_pivot.text, _Translation("", in_pivot.date))
      records.append(Record(element, pivot, in_pivot.text, returned.text, label, returned.date))
    return records

  def _translate(
    self, texts: Sequence[str], source: str, target: str, progress: Progress
  ) -> dict[str, _Translation]:
    translator, cache = self._translator, self._cache(source, target)
    missing = [text for text in texts if text not in cache.translations]
    direction, count = f"{source} > {target}", len(texts) - len(missing)
    progress(direction, count, len(texts))
    for start in range(0, len(missing), translator.batch_texts):
      batch = missing[start : start + translator.batch_texts]
      try:
        results = translator.translate(batch, source, target)
        if len(results) != len(batch):
          raise ValueError(f"{len(results)} translations for {len(batch)} texts")
      except Exception as e:  # of any library, and of what lies behind it
        raise SgdxError(
          f"{translator.name} failed ({direction}, {count} of {len(texts)} texts done): "
          f"{type(e).__name__}: {first_line(e)}",
          expected="a translation of each text",
          available=f"texts translated so far are kept in {cache.path}",
          fix="solve the problem and run the same command again: it resumes where it stopped",
        ) from e
      translations = [_Translation(result.strip(), _today()) for result in results]
      cache.add(dict(zip(batch, translations, strict=True)))
      count += len(batch)
      progress(direction, count, len(texts))
    return {text: cache.translations[text] for text in texts}

  def _cache(self, source: str, target: str) -> "_Cache":
    settings = {"provider": self._translator.name, "source": source, "target": target}
    settings |= self._translator.settings(source, target)
    return _Cache(self._folder, settings, self._notify)


class _Cache:
  """An append-only file of translations; one for each direction and set of settings."""

  def __init__(self, folder: pathlib.Path, settings: Mapping[str, Any], notify: Notify):
    header = json.dumps({"format": CACHE_FORMAT, **settings}, ensure_ascii=False)
    name = f"{settings['provider']}-{settings['source']}-{settings['target']}"
    digest = hashlib.sha256(header.encode(errors="surrogatepass")).hexdigest()[:12]
    self.path = folder / f"{name}-{digest}.jsonl"
    self.translations: dict[str, _Translation] = {}
    data = self.path.read_bytes() if self.path.exists() else b""
    complete, newline, cut = data.rpartition(b"\n")
    self._start = [] if newline else [header]  # lines to write ahead of the next batch
    self._keep = len(complete + newline) if cut else None  # bytes to cut the file back to
    if cut:
      notify(f"{self.path}: dropped the last line, which was cut short")
    for number, line in enumerate(complete.split(b"\n")[1:], start=2):
      self._read(line, number)

  def add(self, translations: Mapping[str, _Translation]) -> None:
    """Appends a batch in one go."""
    lines = [*self._start]
    for text, translation in translations.items():
      row = {"text": text, "made": translation.text, "date": translation.date}
      lines.append(json.dumps(row, ensure_ascii=False))
    self.path.parent.mkdir(parents=True, exist_ok=True)
    if self._keep is not None:
      os.truncate(self.path, self._keep)
    with self.path.open("ab") as file:
      file.write("".join(f"{line}\n" for line in lines).encode())
    self._start, self._keep = [], None
    self.translations.update(translations)

  def _read(self, line: bytes, number: int) -> None:
    try:
      row = json.loads(line)
      text, translation, date = row["text"], row["made"], row["date"]
      if not all(map(is_text, (text, translation, date))):
        raise TypeError
    except (KeyError, RecursionError, TypeError, ValueError):
      raise SgdxError(
        f"{self.path}, line {number}: not a translation record",
        expected='{"text": ..., "made": ..., "date": ...}',
        fix="delete the line; its text will be translated again",
      ) from None
    self.translations[text] = _Translation(translation, date)


def _distinct(texts: Iterable[str]) -> list[str]:
  """The texts without duplicates and empty ones, in order."""
  return [text for text in dict.fromkeys(texts) if text.strip()]


def _today() -> str:
  return datetime.datetime.now(datetime.UTC).date().isoformat()
