"""New values for old ones: invented names, or others of the corpus."""

import collections
import dataclasses
import random
from collections.abc import Callable, Iterable, Mapping, Sequence

from sgdx_t5x.papers.checkdst.entities import Slots, kinds_of_slots
from sgdx_t5x.papers.checkdst.same_value import (
  canonical_forms,
  canonical_value,
  in_case_of,
  plain_text,
  same_values,
)
from sgdx_t5x.papers.checkdst.split import Split
from sgdx_t5x.papers.checkdst.texts import is_said, normalised
from sgdx_t5x.papers.checkdst.values import said_values
from sgdx_t5x.papers.simulator.values import VALUE_KINDS, parse_pool
from sgdx_t5x.papers.simulator.variation import forms as ways_to_say
from sgdx_t5x.papers.simulator.variation import is_moment

_TRIES = 50  # attempts to draw a name that is new in its dialogue
# Further forms of an invented name, if the old one has more forms.
_OTHER_FORMS = ("{first}", "{last}", "{} City", "the {}", "{} there")

Draw = Callable[[random.Random], tuple[str, Sequence[str]]]  # a name, and its other forms


@dataclasses.dataclass
class _Taken:
  """What is not available as a new name: `strings`, in lower case, and what a text says."""

  strings: set[str]
  text: str  # normalised

  def __contains__(self, name: str) -> bool:
    return name.lower() in self.strings or is_said(name, self.text)


@dataclasses.dataclass(frozen=True)
class NameSource:
  """Where new names come from.

  Attributes:
    kinds: (service, slot) -> kind of its values, or another key of `draws`.
    draws: kind -> function that draws a name of it.
    closed: kinds whose names have only the forms that are drawn, and their case: numbers, days,
      and names of the split.
    ordered: kind -> group in which days or times keep their order within a dialogue.
  """

  kinds: Mapping[tuple[str, str], str]
  draws: Mapping[str, Draw]
  closed: frozenset[str] = frozenset()
  ordered: Mapping[str, str] = dataclasses.field(default_factory=dict)

  def mapping(
    self,
    places: Mapping[str, tuple[str, str]],
    prefix: str,
    unavailable: Iterable[str],
    canonical: Mapping[str, Iterable[str]],
    dialogue_text: str = "",
  ) -> dict[str, str]:
    """Returns string -> new string, for the strings for which a name was found.

    Forms of one value become distinct forms of one new value, so that this can be undone.

    Args:
      places: string -> its (service, slot).
      prefix: of the seeds.
      unavailable: strings that are not available as new ones, in lower case.
      canonical: string -> canonical values, see `same_value.canonical_forms`.
      dialogue_text: text of the dialogue; what it says is not available either.
    """
    groups: dict[str, list[str]] = collections.defaultdict(list)
    for text in places:
      groups[canonical_value(text, canonical.get(text, ()))].append(text)
    in_order: dict[str, list[tuple[str, str]]] = collections.defaultdict(list)
    strings: dict[str, str] = {}
    used = _Taken(set(unavailable), normalised(dialogue_text))
    for plain, texts in sorted(groups.items()):
      pool = self.kinds[places[texts[0]]]
      if pool in self.ordered and is_moment(plain):
        in_order[self.ordered[pool]].append((plain, pool))
      elif assigned := self._drawn(pool, random.Random(f"{prefix}/{plain}"), plain, texts, used):
        strings |= assigned
        used.strings.update(map(str.lower, assigned.values()))
    for name, moments in in_order.items():
      strings |= self._in_order(random.Random(f"{prefix}/{name}"), moments, groups, used)
      used.strings.update(map(str.lower, strings.values()))
    return strings

  def _drawn(
    self, pool: str, rng: random.Random, plain: str, texts: Sequence[str], used: _Taken
  ) -> dict[str, str]:
    """Draws a name and maps the forms of a value to its forms; {} if none is found."""
    for _ in range(_TRIES):
      if assigned := _assigned(*self.draws[pool](rng), plain, texts, pool in self.closed, used):
        return assigned
    return {}

  def _in_order(
    self,
    rng: random.Random,
    moments: Sequence[tuple[str, str]],
    groups: Mapping[str, Sequence[str]],
    used: _Taken,
  ) -> dict[str, str]:
    """New days or times in the order of the old ones: nobody leaves before having arrived."""
    plains = [plain for plain, _ in moments]
    for _ in range(_TRIES):
      forms_by_name = dict(self.draws[pool](rng) for _, pool in moments)
      strings: dict[str, str] = {}
      for plain, name in zip(sorted(plains), sorted(forms_by_name), strict=False):
        unavailable = _Taken({*used.strings, *map(str.lower, strings.values())}, used.text)
        strings |= _assigned(name, forms_by_name[name], plain, groups[plain], True, unavailable)
      if len(strings) == sum(len(groups[plain]) for plain in plains):
        return strings
    return {}


def _assigned(
  name: str,
  other_forms: Sequence[str],
  plain: str,
  texts: Sequence[str],
  is_closed: bool,
  used: _Taken,
) -> dict[str, str]:
  """Maps the forms of an old name to forms of a new one; {} if there are too few."""
  forms = _forms(name, other_forms, is_closed)
  if is_moment(name):  # "2019-03-05" is a canonical value and never said
    forms = [name, *(form for form in forms if form != name)] if is_moment(plain) else forms[1:]
  forms = [form for form in forms if form not in used]
  if not forms or (forms[0] != name and (is_moment(plain) or not is_moment(name))):
    return {}
  main, *variants = sorted(texts, key=lambda text: (text != plain, text))
  twins = [text for text in variants if plain_text(text) == plain_text(main)]
  # "fresno" of "Fresno" becomes the new name in lower case, whichever of them is the main one.
  assigned = {main: in_case_of(main, forms[0]) if twins else forms[0]}
  for text in variants:
    cased = [forms[0]]
    if text in twins:  # what differs in case or white space only, differs in case only afterwards
      cased = [in_case_of(text, forms[0]), *cased, forms[0].lower(), forms[0].upper()]
    if available := [form for form in cased if form not in assigned.values()]:
      assigned[text] = available[0]
  remaining = [text for text in variants if text not in assigned]
  assigned |= dict(zip(remaining, forms[1:], strict=False))
  return assigned if len(assigned) == len(texts) else {}


def name_source(split: Split, slots: Slots) -> NameSource:
  """Returns a source of invented names.

  For train they are from the share that the simulator's train may have, else from the held-out
  share, so that both are disjoint.

  Args:
    split: what is perturbed.
    slots: whose values are replaced.
  """
  kinds = kinds_of_slots(split.schema)
  draws: dict[str, Draw] = {}
  for service, names in slots.items():
    for slot in names:
      kind = kinds[service, slot]
      draws[kind] = invented(kind, split)
  return NameSource(kinds, draws)


def invented(kind: str, split: Split) -> Draw:
  """Returns a function that draws invented names of a kind of slots; see `name_source`."""
  pool = parse_pool({"kind": kind if kind in VALUE_KINDS else "title"})

  def draw(rng: random.Random) -> tuple[str, Sequence[str]]:
    name = pool.draw(rng, split.name != "train")
    return name, ways_to_say(name)[1:]

  return draw


def listed(names: Sequence[tuple[str, Sequence[str]]]) -> Draw:
  """Returns a function that draws one of the names, each with its other forms."""
  return lambda rng: names[rng.randrange(len(names))]


def values_of_corpus(
  split: Split, slots: Slots
) -> dict[tuple[str, str], list[tuple[str, list[str]]]]:
  """Returns (service, slot) -> its canonical values in the split, each with its other forms."""
  forms_by_slot: dict[tuple[str, str], dict[str, set[str]]] = {}
  for data in split.dialogues():
    canonical = canonical_forms(data, same_values(data))
    for service, slot, value in said_values(data):
      if slot in slots.get(service, ()):
        for plain in canonical.get(value, (value,)):
          forms_by_slot.setdefault((service, slot), {}).setdefault(plain, set()).add(value)
  values: dict[tuple[str, str], list[tuple[str, list[str]]]] = {}
  for place, forms_by_value in forms_by_slot.items():
    pairs = sorted(forms_by_value.items())
    values[place] = [(plain, sorted(forms - {plain})) for plain, forms in pairs]
  return values


def _forms(name: str, other_forms: Sequence[str], is_closed: bool) -> list[str]:
  """All distinct ways to say a name, the plainest first; closed kinds have only those given."""
  words = name.split()
  further = [form.format(name, first=words[0], last=words[-1]) for form in _OTHER_FORMS]
  names = (name, *other_forms, *(() if is_closed else further))
  return list({form.lower(): form for form in reversed(names)}.values())[::-1]
