"""SDI: users speak as people do: fillers, repeats, restarts and repairs, by insertion only.

Following the speech disfluency of LAUG, which CheckDST uses. States, acts, values and calls stay
unchanged, spans only move, and cutting out the insertions restores the original text.

The words and rates of sdi_terms.json are our own. Spontaneous English has 2 to 3 fillers in 100
words; these rates are denser than real speech by design, so that most turns are changed.
"""

import collections
import dataclasses
import importlib.resources
import json
import random
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.dialogue import USER
from sgdx_t5x.papers.checkdst.answerable import lost_values, stated_values
from sgdx_t5x.papers.checkdst.split import Line, Perturber, Split
from sgdx_t5x.papers.checkdst.texts import edit_turn, edited, moved, span_texts, spans_of
from sgdx_t5x.papers.checkdst.values import known_forms, state_values

REPAIR, FILLER, REPEAT, RESTART = "repair", "filler", "repeat", "restart"
_OPTIONS = {  # as in the manifests of all sets
  "only": ["repairs", "fillers", "repeats", "restarts"], "restart": "often", "terms": "default"
}  # fmt: skip
# "rates": kind -> probability: of a repair, per turn with values; of a filler and of a repeat, per
# word; of a restart, per turn that is already changed. The other keys are lists of [text, weight];
# "edits" ("I mean") stand between a wrong value and its correction.
_TERMS = json.loads(importlib.resources.files(__package__).joinpath("sdi_terms.json").read_text())
_RATES = _TERMS["rates"]
_TRIES = 20  # attempts to draw a wrong value
_TOKEN = re.compile(r"\S+")
_LETTERS = re.compile(r"[A-Za-z]+")
_LOWER_WORD = re.compile(r"(?<![\w'])[a-z]+")
_FIRST_WORD = re.compile(r"\w+(?:'\w+)?")
_I = frozenset({"i", "i'm", "i'd", "i've", "i'll"})


@dataclasses.dataclass(frozen=True)
class Pool:
  """What is said in the split, to draw wrong values from.

  Attributes:
    texts: (service, slot) -> its span texts, sorted.
    canonical: (service, slot, text) -> canonical values.
    lower_words: words that occur in lower case: a first word that is not one of them may be a
      name.
  """

  texts: Mapping[tuple[str, str], Sequence[str]]
  canonical: Mapping[tuple[str, str, str], Collection[str]]
  lower_words: Collection[str]


@dataclasses.dataclass(frozen=True)
class _Insertion:
  place: int  # in the original text
  text: str
  kind: str
  note: Mapping[str, str] = dataclasses.field(default_factory=dict)  # further fields of its line


def perturber(split: Split, seed: int) -> Perturber:
  """Returns the perturber that makes the user turns of a split disfluent.

  Args:
    split: what is to be perturbed.
    seed: determines the insertions.
  """
  schema, pool = split.schema, _pool(split)

  def change(data: dict[str, Any], counts: collections.Counter) -> list[Line]:
    lines, name = [], data["dialogue_id"]
    draw_wrong, stated = _wrong_values(pool, data), stated_values(data, schema)
    for number, turn in enumerate(data["turns"]):
      if turn["speaker"] != USER or not turn["utterance"].strip():
        continue
      rng = random.Random(f"{seed}/{name}/{number}")
      insertions = [*_repairs(turn, draw_wrong, rng), *_small_words(turn, rng)]
      first_word = len(turn["utterance"]) - len(turn["utterance"].lstrip())
      if not insertions or rng.random() < _RATES[RESTART]:
        insertions.insert(0, _Insertion(first_word, f"{_drawn('restarts', rng)} ", RESTART))
      insertions.sort(key=lambda x: x.place)  # stable: a restart stays first
      insertions = _around_values(insertions, stated, data, number)
      if insertions:
        rows = _insert(insertions, pool, stated, data, number)
        lines.append({"dialogue_id": name, "turn": number, "insertions": rows})
        counts.update(f"{x.kind}s" for x in insertions)
    return lines

  return Perturber("sdi", _OPTIONS, change)


def _drawn(name: str, rng: random.Random) -> str:
  """Draws from a list of `_TERMS`, by weight."""
  texts, weights = zip(*_TERMS[name], strict=True)
  return rng.choices(texts, weights)[0]


def _pool(split: Split) -> Pool:
  texts: dict[tuple[str, str], set[str]] = {}
  canonical: dict[tuple[str, str, str], set[str]] = {}
  lower: set[str] = set()
  for data in split.dialogues():
    forms = known_forms(data)
    for turn in data["turns"]:
      lower.update(_LOWER_WORD.findall(turn["utterance"]))
      for service, slot, text in span_texts(turn):
        texts.setdefault((service, slot), set()).add(text)
        canonical.setdefault((service, slot, text), set()).update(forms.get(text, (text,)))
  sorted_texts = {place: sorted(texts_of_slot) for place, texts_of_slot in texts.items()}
  return Pool(sorted_texts, canonical, frozenset(lower))


def _wrong_values(
  pool: Pool, data: Mapping[str, Any]
) -> Callable[[str, str, str, random.Random], str | None]:
  """Returns a function from (service, slot, value, rng) to a value not meant in the dialogue."""
  text = "\n".join(turn["utterance"] for turn in data["turns"]).lower()
  forms = known_forms(data)
  in_states = state_values(data)

  def draw(service: str, slot: str, value: str, rng: random.Random) -> str | None:
    texts = pool.texts.get((service, slot), ())
    meant = {*forms.get(value, ()), *pool.canonical.get((service, slot, value), (value,))}
    for _ in range(_TRIES if len(texts) > 1 else 0):
      candidate = texts[rng.randrange(len(texts))]
      if (
        candidate not in in_states
        and candidate.lower() not in text
        and meant.isdisjoint(pool.canonical[service, slot, candidate])
      ):
        return candidate
    return None

  return draw


def _repairs(
  turn: Mapping[str, Any],
  draw_wrong: Callable[[str, str, str, random.Random], str | None],
  rng: random.Random,
) -> list[_Insertion]:
  """Inserts a wrong value and an edit term right before some of the turn's values."""
  spans, insertions = sorted(spans_of(turn), key=lambda span: span[2:]), []
  last = -1
  for service, slot, start, end in spans:
    inside = any(span_start < start < ends for *_, span_start, ends in spans)  # of another value
    if rng.random() >= _RATES[REPAIR] / len(spans) or start < last or inside:
      continue
    if wrong_value := draw_wrong(service, slot, turn["utterance"][start:end], rng):
      text = f"{wrong_value}, {_drawn('edits', rng)} "
      note = {"slot": f"{service}.{slot}", "instead": wrong_value}
      insertions.append(_Insertion(start, text, REPAIR, note))
      last = end
  return insertions


def _small_words(turn: Mapping[str, Any], rng: random.Random) -> list[_Insertion]:
  """Inserts fillers and repeats before words outside values; none before the first word."""
  text, insertions = turn["utterance"], []
  spans = [(start, end) for _, _, start, end in spans_of(turn)]
  for i, token in enumerate(_TOKEN.finditer(text)):
    begin, finish = token.span()
    if i == 0 or any(start < finish and begin < end for start, end in spans):
      continue
    chance = rng.random()
    if chance < _RATES[FILLER]:
      insertions.append(_Insertion(begin, f"{_drawn('fillers', rng)} ", FILLER))
    elif chance < _RATES[FILLER] + _RATES[REPEAT] and _LETTERS.fullmatch(token[0]):
      again = token[0] + _drawn("repeat_joins", rng)
      insertions.append(_Insertion(begin, again, REPEAT))
  return insertions


def _around_values(
  insertions: list[_Insertion], stated: Mapping[str, int], data: Mapping[str, Any], number: int
) -> list[_Insertion]:
  """Leaves out insertions that tear apart a value of a state that has no span."""
  text = data["turns"][number]["utterance"]
  new_text = edited(text, [(x.place, x.place, x.text) for x in insertions])
  for value in lost_values(stated, data, number, new_text):
    pattern = re.compile(r"\s+".join(map(re.escape, value.split())), re.IGNORECASE)
    for match in pattern.finditer(text):
      insertions = [x for x in insertions if not match.start() < x.place < match.end()]
  return insertions


def _insert(
  insertions: Sequence[_Insertion],
  pool: Pool,
  stated: Mapping[str, int],
  data: dict[str, Any],
  number: int,
) -> list[dict[str, Any]]:
  """Inserts into the utterance; returns the field `insertions` of a line of changes.jsonl."""
  turn = data["turns"][number]
  edits = [(x.place, x.place, x.text) for x in insertions]
  rows: list[dict[str, Any]] = []
  for insertion, (start, _) in zip(insertions, moved(edits), strict=True):
    rows.append({"at": start, "text": insertion.text, "kind": insertion.kind, **insertion.note})
  if insertions[0].kind == RESTART:
    lower_text = _lower_first(turn, insertions[0].place, pool)
    # The first letter may belong to a value that has no span.
    if lower_text != turn["utterance"] and not lost_values(stated, data, number, lower_text):
      turn["utterance"], rows[0]["lowered"] = lower_text, True
  edit_turn(turn, edits)
  return rows


def _lower_first(turn: Mapping[str, Any], place: int, pool: Pool) -> str:
  """Returns the text, first letter lowered unless its word is I, may be a name, or is a value's."""
  text = turn["utterance"]
  word, letter = _FIRST_WORD.match(text, place), text[place]
  if (
    word is None
    or not letter.isupper()
    or letter.lower().upper() != letter  # as of the dotted I, in two characters: places would move
    or word[0].lower() in _I
    or word[0].lower().partition("'")[0] not in pool.lower_words
    or any(start < word.end() and place < end for _, _, start, end in spans_of(turn))
  ):
    return text
  return f"{text[:place]}{letter.lower()}{text[place + 1 :]}"
