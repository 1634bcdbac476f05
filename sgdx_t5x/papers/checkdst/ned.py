"""NED: named entities become strings that no tracker has seen, in text and annotation alike.

Following CheckDST's named entity disturbance, but with one mapping per dialogue instead of one per
turn and value: carried values stay equal across services, results match calls, and every value of
a state still occurs in the text.
"""

import collections
import dataclasses
import itertools
import random
import re
import string as characters_of
from collections.abc import Callable, Mapping
from typing import Any

from sgdx_t5x.corpus.schema import DONTCARE, Schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.checkdst.entities import Slots, entity_slots
from sgdx_t5x.papers.checkdst.mapping import answerable_mapping
from sgdx_t5x.papers.checkdst.new_names import name_source
from sgdx_t5x.papers.checkdst.same_value import (
  Groups,
  canonical_forms,
  clock_time,
  in_case_of,
  leaders,
  plain_text,
  same_values,
  whole_groups,
)
from sgdx_t5x.papers.checkdst.split import Line, Perturber, Split
from sgdx_t5x.papers.checkdst.texts import gaps, overlapping_texts, span_texts, spans_of
from sgdx_t5x.papers.checkdst.values import (
  possible_values,
  result_values,
  said_values,
  state_values,
)

LETTERS, CHARACTERS, NAMES = "letters", "characters", "names"
_TRIES = 50  # attempts to permute a string so that it is new in its dialogue
_CAPITALISED = re.compile(r"\b[A-Z]\w{2,}")
_LETTER, _DIGIT = str.isalpha, str.isdigit


def perturber(split: Split, seed: int, *, entities: str = LETTERS) -> Perturber:
  """Returns the perturber that replaces the named entities of a split's dialogues.

  Args:
    split: what is to be perturbed.
    seed: determines the new strings.
    entities: "letters" or "characters" permutes those of each string; "names" are invented.

  Raises:
    SgdxError: no slot holds names.
  """
  schema = split.schema
  slots = entity_slots(schema)
  if not slots:
    raise SgdxError(
      f"{schema.origin}: no service has a slot that holds names",
      expected="a non-categorical slot of a title, a person, a city, a station or an address",
      available=", ".join(f"{s.name} ({len(s.noncategorical_slots)} free slots)" for s in schema),
      fix="choose another kind: vs replaces all free values, sdi and pi change words",
    )
  names = name_source(split, slots) if entities == NAMES else None
  make = characters if entities == CHARACTERS else letters

  def change(data: dict[str, Any], counts: collections.Counter) -> list[Line]:
    named, prefix = entities_of(data, schema, slots), f"{seed}/{data['dialogue_id']}"
    if names is None:
      strings = permuted(named, prefix, make)
    else:
      forms = canonical_forms(data, named.groups)
      strings = names.mapping(named.places, prefix, named.unavailable, forms, named.text)
    strings = whole_groups(strings, named.groups)
    partial = partial_mentions(data, strings)
    line = replace_entities(data, schema, slots, named, strings, counts)
    counts["partial_mentions"] += partial
    if not line["strings"]:
      return []
    return [{"dialogue_id": data["dialogue_id"], **line, "partial_mentions": partial}]

  options = {"entities": entities, "slots": "kinds"}
  return Perturber("ned", options, change, slots)


@dataclasses.dataclass(frozen=True)
class Entities:
  """The named entities of a dialogue.

  Attributes:
    places: string -> one of the (service, slot) that have it, the first by name.
    unchanged: string -> why it is not replaced.
    groups: strings that mean the same, see `same_values`: all of them are replaced, or none.
    leaders: string -> the one in another case whose permutation it shares, see `leaders`.
    unavailable: strings that are not available as new ones, in lower case: all of the dialogue's.
    text: its utterances, a line each.
  """

  places: Mapping[str, tuple[str, str]]
  unchanged: Mapping[str, str]
  unavailable: frozenset[str]
  text: str = ""
  groups: Groups = dataclasses.field(default_factory=dict)
  leaders: Mapping[str, str] = dataclasses.field(default_factory=dict)


def entities_of(data: Mapping[str, Any], schema: Schema, slots: Slots) -> Entities:
  """Collects the strings of entity slots: of acts, states, calls and spans."""
  places: dict[str, tuple[str, str]] = {}
  other_values = {DONTCARE, *possible_values(data, schema)}
  spans = list(itertools.chain.from_iterable(map(span_texts, data["turns"])))
  for service, slot, value in (*said_values(data), *spans):
    if slot in slots.get(service, ()):
      places[value] = min(places.get(value, (service, slot)), (service, slot))
    else:
      other_values.add(value)
  overlapping = set().union(*map(overlapping_texts, data["turns"]))
  unchanged = {value: "overlap" for value in places if value in overlapping}
  others_plain = set(map(plain_text, other_values))
  unchanged |= {value: "other" for value in places if plain_text(value) in others_plain}
  unchanged |= {value: "nothing" for value in places if not any(map(str.isalnum, value))}
  groups = same_values(data)
  for value, reason in [*unchanged.items()]:
    for twin in places.keys() & groups.get(value, ()):
      unchanged.setdefault(twin, reason)
  unavailable = frozenset(map(str.lower, (*other_values, *places, *result_values(data))))
  dialogue_text = "\n".join(turn["utterance"] for turn in data["turns"])
  follows = leaders(groups, {text for *_, text in spans}, state_values(data))
  replaced = {value: places[value] for value in sorted(places) if value not in unchanged}
  return Entities(replaced, unchanged, unavailable, dialogue_text, groups, follows)


def replace_entities(
  data: dict[str, Any],
  schema: Schema,
  slots: Slots,
  entities: Entities,
  strings: Mapping[str, str],
  counts: collections.Counter,
) -> dict[str, Any]:
  """Replaces strings of a dialogue, and counts those that stay.

  Args:
    data: decoded, changed in place.
    schema: of the dialogue.
    slots: whose values are replaced.
    entities: the dialogue's entities.
    strings: old -> new.
    counts: of the corpus so far.

  Returns:
    The fields of a changes.jsonl line, see `mapping.apply_mapping`.
  """
  line, unspanned = answerable_mapping(data, schema, slots, strings, entities.groups)
  unchanged = dict.fromkeys(entities.places.keys() - strings.keys(), "collision")
  unchanged |= {**entities.unchanged, **dict.fromkeys(unspanned, "unspanned")}
  counts["strings"] += len(entities.places) + len(entities.unchanged)
  counts["strings_mapped"] += len(line["strings"])
  for reason in unchanged.values():
    counts["kept", reason] += 1
  return line


def permuted(
  entities: Entities, prefix: str, make: Callable[[str, random.Random], str]
) -> dict[str, str]:
  """Returns each entity with its characters in another order.

  Each has its own random number generator, so that changing one entity affects no other.
  """
  strings, unavailable = {}, set(entities.unavailable)
  followers: dict[str, list[str]] = collections.defaultdict(list)
  for text, leader in entities.leaders.items():
    followers[leader].append(text)
  for text in entities.places:
    is_time = any(map(clock_time, entities.groups.get(text, ())))
    if text in entities.leaders or is_time:  # "20:00" and "8pm", permuted, would be two times
      continue
    rng = random.Random(f"{prefix}/{text}")
    for number in range(2 * _TRIES):
      permute = make if number < _TRIES else same_shape
      permutations = _permuted_alike([text, *followers[text]], permute, rng)
      lower = set(map(str.lower, permutations.values()))
      if lower and unavailable.isdisjoint(lower):
        strings |= permutations
        unavailable |= lower
        break
  return strings


def _permuted_alike(
  texts: list[str], make: Callable[[str, random.Random], str], rng: random.Random
) -> dict[str, str]:
  """Permutes texts that differ in case or white space in the same way; {} if two become one."""
  state, permutations = rng.getstate(), {}
  for text in texts:
    rng.setstate(state)
    permutation = make(text, rng)
    leader = permutations.setdefault(texts[0], permutation)
    # Texts of different lengths ("ß", "SS") are not permuted in the same way.
    is_alike = plain_text(permutation) == plain_text(leader)
    permutations[text] = permutation if is_alike else in_case_of(text, leader)
  return permutations if len(set(permutations.values())) == len(texts) else {}


def letters(text: str, rng: random.Random) -> str:
  """Permutes the letters of each word; capitals, digits and punctuation stay where they are.

  A text without letters has its digits permuted.

  >>> letters("Sacramento, CA", random.Random(3))
  'Tamcnaeros, AC'
  """
  kind = _LETTER if any(map(str.isalpha, text)) else _DIGIT
  return re.sub(r"\S+", lambda word: _permuted_word(word[0], kind, rng), text)


def characters(text: str, rng: random.Random) -> str:
  """Permutes all characters, including spaces, which are then collapsed, as in CheckDST."""
  shuffled = list(text)
  rng.shuffle(shuffled)
  return " ".join("".join(shuffled).split())


def same_shape(text: str, rng: random.Random) -> str:
  """Returns random letters for letters and digits for digits."""
  draw = [
    rng.choice(characters_of.ascii_lowercase) if _LETTER(c)
    else rng.choice(characters_of.digits) if _DIGIT(c) else c
    for c in text
  ]  # fmt: skip
  return "".join(map(_cased, text, draw))


def _permuted_word(word: str, kind: Callable[[str], bool], rng: random.Random) -> str:
  places = [i for i, c in enumerate(word) if kind(c)]
  sources = places[:]
  rng.shuffle(sources)
  result = list(word)
  for place, source in zip(places, sources, strict=True):
    result[place] = _cased(word[place], word[source])
  return "".join(result)


def _cased(like: str, character: str) -> str:
  cased = character.upper() if like.isupper() else character.lower()
  return cased if len(cased) == 1 else character


def partial_mentions(data: Mapping[str, Any], strings: Mapping[str, str]) -> int:
  """Counts turns with a capitalised word of an entity outside spans: "the Hilton".

  Such words stay unchanged, and could tell a tracker what the entity was.
  """
  name_words: set[str] = set()
  for text in strings:
    name_words.update(_CAPITALISED.findall(text) if " " in text else ())
  if not name_words:
    return 0
  count = 0
  for turn in data["turns"]:
    outside = " ".join(gaps(turn["utterance"], spans_of(turn)))
    count += not name_words.isdisjoint(_CAPITALISED.findall(outside))
  return count
