"""Gold factuality, which no perturbation may lower: whether a state's values were said."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from sgdx_t5x.corpus.schema import DONTCARE
from sgdx_t5x.papers.checkdst.entities import Slots

_WORD = re.compile(r"\w")


class Unsaid(NamedTuple):
  """A value of a state that no utterance up to its turn contains."""

  turn: int
  service: str
  slot: str
  value: str


def gold_factuality(data: Mapping[str, Any], slots: Slots) -> tuple[int, list[Unsaid]]:
  """Looks for the values of states in the utterances up to each state's turn.

  Values match as whole words, in lower case, with spaces collapsed (like the metric `factuality`).

  Args:
    data: a decoded dialogue.
    slots: whose values to look for.

  Returns:
    The number of (frame, slot, value) triples, and those that were never said.
  """
  total, unsaid, text = 0, [], ""
  known: dict[tuple[str, str], tuple[list[str], list[str]]] = {}  # values, unsaid values
  for number, turn in enumerate(data["turns"]):
    text += f"\n{' '.join(turn['utterance'].lower().split())}"
    for frame in turn["frames"]:
      service, state = frame["service"], frame.get("state")
      names = slots.get(service)
      if not (names and state):
        continue
      for slot in sorted(names & state["slot_values"].keys()):
        values = [value for value in state["slot_values"][slot] if value != DONTCARE]
        total += len(values)
        before, lacking = known.get((service, slot), ((), ()))
        if values != before or lacking:
          lacking = [value for value in values if not is_said(value, text)]
          known[service, slot] = values, lacking
        unsaid += [Unsaid(number, service, slot, value) for value in lacking]
  return total, unsaid


def is_said(value: str, text: str) -> bool:
  """Whether a text contains a value as whole words.

  Args:
    value: in any case and spacing.
    text: lower case, with single spaces.
  """
  value = " ".join(value.lower().split())
  start = text.find(value)
  while start >= 0:
    end = start + len(value)
    if not (_WORD.match(text[start - 1 : start]) or _WORD.match(text[end : end + 1])):
      return True
    start = text.find(value, start + 1)
  return False
