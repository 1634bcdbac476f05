"""Paraphrases of whole utterances: back-translated, or read from a table.

Values must come back unchanged, each at its own place; so must digits, negations, and a "yes" or
"no" at the start. A turn whose paraphrase lost one of them keeps its own words.
"""

import collections
import functools
import pathlib
import random
import re
from collections.abc import Callable, Mapping, Sequence

from sgdx_t5x.corpus.dialogue import USER
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.files.reading import decode_lines, is_text, read_input
from sgdx_t5x.papers.backtranslation.checkpoint import CheckpointTranslator
from sgdx_t5x.papers.backtranslation.text_provider import SOURCE, TextProvider
from sgdx_t5x.papers.checkdst.pi_words import Exchange, NewWords, Provider
from sgdx_t5x.papers.checkdst.split import Split
from sgdx_t5x.papers.checkdst.texts import spans_of, words
from sgdx_t5x.papers.simulator.surface import find_values

Translate = Callable[[Sequence[str]], Mapping[str, str]]  # distinct utterances -> other words
_NEGATIONS = re.compile(r"\b(?:not|no|nor|never|none|nothing|neither|without|cannot)\b|n't\b")
_DIGITS = re.compile(r"\d+")
_ANSWERS = {
  **dict.fromkeys(("yes", "yeah", "yep", "yup", "sure", "okay", "ok", "correct", "right"), True),
  **dict.fromkeys(("no", "nope", "nah"), False),
}
CACHE = ".sgdx_utterances"  # folder of translations, in the current folder


def provider(split: Split, translate: Translate) -> Provider:
  """Returns the provider; it reads the split once and has all of its utterances translated."""
  texts = {
    turn["utterance"]: None
    for data in split.dialogues()
    for turn in data["turns"]
    if turn["speaker"] == USER and turn["utterance"].strip()
  }
  return functools.partial(_translated, translate(list(texts)))


def table(where: str) -> Translate:
  """Returns a function that looks utterances up in JSON Lines of {"text": ..., "made": ...}."""
  expected = 'a line {"text": ..., "made": ...} per utterance'
  text = read_input(where, "a table of utterances and paraphrases (JSON Lines)")
  made: dict[str, str] = {}
  for line, row in decode_lines(text, where, expected, "correct the line"):
    if not (isinstance(row, dict) and is_text(row.get("text")) and is_text(row.get("made"))):
      raise SgdxError(f"{line}: no text and paraphrase", expected=expected, fix="correct the line")
    made[row["text"]] = row["made"]
  if not made:
    raise SgdxError(
      f"{where}: no rows", expected=expected, fix="write utterances and their paraphrases into it"
    )
  return lambda texts: {text: made[text] for text in texts if text in made}


def translator(
  pivot: str,
  *,
  model: str | None = None,
  model_back: str | None = None,
  source: str | None = None,
  target: str | None = None,
) -> Translate:
  """Returns a function that translates utterances into a language and back, with a cache.

  Args:
    pivot: the language.
    model: folder of the checkpoint.
    model_back: that of the way back, if different.
    source: code of English, as the tokenizer calls it.
    target: code of the pivot.

  Raises:
    UsageError: no checkpoint, or only one of the codes.
  """
  if not model or bool(source) != bool(target):
    raise UsageError(
      "--provider hf " + ("with one language code" if model else "without --model"),
      expected="the folder of a checkpoint that translates, and its codes of both languages",
      fix="pass --model DIR --source CODE --target CODE, or no code if its tokenizer has none",
    )
  codes = {SOURCE: source, pivot: target} if source and target else {}
  checkpoint = CheckpointTranslator(model, model_back, codes)
  provider = TextProvider(checkpoint, pathlib.Path(CACHE), lambda line: None)

  def translate(texts: Sequence[str]) -> Mapping[str, str]:
    provider.check([pivot])
    return provider.round_trip(texts, pivot, lambda what, done, total: None)

  return translate


def _translated(
  made: Mapping[str, str], exchange: Exchange, number: int, rng: random.Random
) -> NewWords | str:
  turn = exchange.data["turns"][number]
  before, new = turn["utterance"], made.get(turn["utterance"], "").strip()
  if not new:
    return "untranslated"
  spans = sorted(spans_of(turn), key=lambda span: span[2:])
  places = find_values([before[start:end] for _, _, start, end in spans], new)
  found = [place for place in places if place is not None]
  if len(found) < len(spans):
    return "lost"
  for reason, what in (("digits", _digits), ("negation", _negations), ("answer", _answer)):
    if what(before) != what(new):
      return reason
  return NewWords(new, [(*span[:2], *place) for span, place in zip(spans, found, strict=True)])


def _digits(text: str) -> collections.Counter:
  return collections.Counter(_DIGITS.findall(text))


def _negations(text: str) -> bool:
  return bool(_NEGATIONS.search(text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")))


def _answer(text: str) -> bool | None:
  return _ANSWERS.get(next(iter(words(text)), ""))
