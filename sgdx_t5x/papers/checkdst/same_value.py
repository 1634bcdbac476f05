"""Which strings of a dialogue mean the same value: a perturbation treats them alike."""

import collections
import functools
import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Any

from sgdx_t5x.papers.checkdst.texts import span_texts
from sgdx_t5x.papers.checkdst.values import (
  accepted_values,
  known_forms,
  said_values,
  spanned_otherwise,
)
from sgdx_t5x.papers.simulator.variation import forms, is_moment

Groups = Mapping[str, tuple[str, ...]]  # string -> all strings of its value, if there are several
_CLOCK = re.compile(r"(\d{1,2})(?:[:.](\d\d))?(?:o'?clock)?([ap])\.?m\.?", re.IGNORECASE)
_DAY_CLOCK = re.compile(r"(\d{1,2}):(\d\d)")


def plain_text(text: str) -> str:
  """Returns a text without differences of case and white space.

  >>> plain_text("Alder  HOUSE")
  'alder house'
  """
  return " ".join(text.split()).casefold()


def clock_time(text: str) -> str | None:
  """Returns the time of day that a text is, or None.

  >>> clock_time("8 p.m."), clock_time("20:00"), clock_time("8 people")
  ('20:00', '20:00', None)
  """
  compact = "".join(text.split())
  if match := _DAY_CLOCK.fullmatch(compact):
    hour, minute, half = int(match[1]), match[2], ""
  elif match := _CLOCK.fullmatch(compact):
    hour, minute, half = int(match[1]), match[2] or "00", match[3].lower()
    if not 1 <= hour <= 12:
      return None
    hour = hour % 12 + (12 if half == "p" else 0)
  else:
    return _spoken_times().get(plain_text(text))
  return f"{hour:02}:{minute}" if hour < 24 and minute < "60" else None


@functools.cache
def _spoken_times() -> dict[str, str]:
  """Form in which a time of day may be said ("quarter past 8 in the morning") -> the time."""
  spoken = {"midday": "12:00"}
  for hour, minute in itertools.product(range(24), range(60)):
    time = f"{hour:02}:{minute:02}"
    spoken |= dict.fromkeys(map(plain_text, forms(time)), time)
  return spoken


def same_values(data: Mapping[str, Any]) -> Groups:
  """Groups the values of acts, states and calls of a decoded dialogue, and the texts of spans.

  Strings mean the same if one state accepts them for one slot, or has one where the turn says the
  other; if they differ in case or white space only, or if they are the same time of day; so do
  those that are linked through others.
  """
  spans = itertools.chain.from_iterable(map(span_texts, data["turns"]))
  values = sorted({value for *_, value in (*said_values(data), *spans)})
  group_of: dict[str, set[str]] = {value: {value} for value in values}

  def link(text: str, partner: str) -> None:
    group = group_of[text] | group_of[partner]
    group_of.update(dict.fromkeys(group, group))

  first_of: dict[str, str] = {}
  for value in values:
    link(value, first_of.setdefault(plain_text(value), value))
    if time := clock_time(value):
      link(value, first_of.setdefault(time, value))
  for accepted in (*accepted_values(data), *spanned_otherwise(data)):
    for value in accepted[1:]:
      link(value, accepted[0])

  return {value: tuple(sorted(group)) for value, group in group_of.items() if len(group) > 1}


def canonical_forms(data: Mapping[str, Any], groups: Groups) -> dict[str, set[str]]:
  """Returns `known_forms`, with one canonical value for what means the same though acts differ."""
  canonical = known_forms(data)
  for group in set(groups.values()):
    plains = {canonical_value(text, canonical.get(text, ())) for text in group}
    moments = {clock_time(text) or text for text in (*plains, *group) if _is_moment(text)}
    if len(plains) < 2:
      continue
    # Several moments in one group are linked by something ambiguous, as "the 5th", or by mistake:
    # only what means the same by itself has one canonical value then.
    for texts in [group] if len(moments) < 2 else _alike(group):
      plains = {canonical_value(text, canonical.get(text, ())) for text in texts}
      canonical |= {text: {min(plains, key=_plainness)} for text in texts}
  for accepted in accepted_values(data):  # "8 o'clock" beside 08:00, then 20:00, is the first
    if moments_of_state := [text for text in accepted if _is_moment(text)]:
      first = moments_of_state[0]
      for text in accepted:
        canonical.setdefault(text, canonical.get(first, {first}))
  return canonical


def _alike(group: Iterable[str]) -> list[list[str]]:
  """Returns the texts of a group that are one time or one text, where there are several."""
  texts_by_value: dict[str, list[str]] = collections.defaultdict(list)
  for text in group:
    texts_by_value[clock_time(text) or plain_text(text)].append(text)
  return [texts for texts in texts_by_value.values() if len(texts) > 1]


def canonical_value(text: str, canonical: Iterable[str]) -> str:
  """Returns the canonical value of a text, itself if possible."""
  return text if text in canonical else min(canonical, default=text)


def _is_moment(text: str) -> bool:
  return is_moment(text) or clock_time(text) is not None


def _plainness(text: str) -> tuple[bool, bool, str]:
  """Sorts moments first, then texts in mixed case, whose case others can be derived from."""
  return not is_moment(text), text in (text.lower(), text.upper()), text


def leaders(groups: Groups, spanned: Iterable[str], in_states: Iterable[str]) -> dict[str, str]:
  """Returns value -> the one that it differs from in case or white space only, and follows.

  Only the values of states that have no span of their own follow another one.

  Args:
    groups: see `same_values`.
    spanned: texts of spans.
    in_states: values of states.
  """
  spanned, leader_of = set(spanned), {}
  for text in sorted(in_states):
    twins = [x for x in groups.get(text, ()) if plain_text(x) == plain_text(text)]
    if len(twins) > 1 and text not in spanned:
      leader = min(twins, key=lambda twin: (twin not in spanned, *_plainness(twin)))
      if leader != text:
        leader_of[text] = leader
  return leader_of


def whole_groups(strings: Mapping[str, str], groups: Groups) -> dict[str, str]:
  """Returns the replacements of strings whose group is replaced as a whole."""
  return {
    value: text for value, text in strings.items() if strings.keys() >= {*groups.get(value, ())}
  }


def in_case_of(text: str, name: str) -> str:
  """Returns a name in the case of a text, if that is lower, upper or a capital for each word."""
  for case in (str.lower, str.upper, str.title):
    if text == case(text):
      return case(name)
  return name
