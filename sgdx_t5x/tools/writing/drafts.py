"""Cases by a program: the call first, then a sentence from the purpose that a person wrote."""

import itertools
import random
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.errors import quoted
from sgdx_t5x.tools.schemas import PROPERTIES
from sgdx_t5x.tools.suite.cases import ASK, Call, Case, Expected
from sgdx_t5x.tools.suite.toolset import ToolSet
from sgdx_t5x.tools.writing.purposes import Purpose, arguments, check_distinct, says
from sgdx_t5x.tools.writing.values import Pool, allowed, lists, pool

WRITTEN = "written"  # tag
NO_TOOL = "no-tool"  # in ids


def draft_cases(
  purposes: Sequence[Purpose], toolset: ToolSet, number: int, seed: int
) -> tuple[list[Case], list[str]]:
  """Returns cases, the same ones for the same arguments, and why tools have none or fewer.

  The cases of a tool do not depend on the other tools. Optional parts of its purpose that have
  words are given in turn: none in the first case, then each in one of the others.

  Args:
    purposes: of which those without words are left out.
    number: cases per tool, besides those in which a value is missing.
    seed: of the values.

  Raises SgdxError: two tools have one request.
  """
  drafts: list[Case] = []
  reasons: list[str] = []
  skeletons: list[tuple[str, str]] = []
  for purpose in purposes:
    if not purpose.is_written:
      continue
    if purpose.tool is None:
      id = f"{NO_TOOL}-{zlib.crc32(purpose.purpose.encode()):08x}"  # the same if lines are added
      drafts.append(_case(id, purpose.purpose, ()))
      skeletons.append((NO_TOOL, purpose.purpose))
      continue
    tool = _OfTool(purpose, toolset, seed)
    drafts += tool.drafts(number)
    reasons += tool.reasons
    skeletons += ((purpose.tool, skeleton) for skeleton in tool.skeletons)
  check_distinct(skeletons)
  return drafts, reasons


def _case(id: str, request: str, expect: Expected) -> Case:
  return Case(id, ({"role": "user", "content": request},), expect, tags=(WRITTEN,))


class _OfTool:
  """Writes the cases of one tool.

  Attributes:
    reasons: why some arguments are not given, or there are no cases.
    skeletons: the sentences without values.
  """

  def __init__(self, purpose: Purpose, toolset: ToolSet, seed: int):
    """Finds the values. Args: as of `draft_cases`."""
    self._purpose, self._toolset = purpose, toolset
    self._tool = toolset.by_name[purpose.tool or ""]
    self.reasons: list[str] = []
    self.skeletons: list[str] = []
    self._always = purpose.always_given
    self._pools: dict[str, list[tuple[str, Any]]] = {}  # argument -> (what is said, value)
    required = self._tool.parameters.get("required", ())
    without: list[str] = []
    for name in self._tool.parameters.get(PROPERTIES, {}):
      if name in arguments(purpose.purpose):
        values = list(self._values_of(name).items())
        random.Random(f"{seed} {self._tool.name} {name}").shuffle(values)
        self._pools[name] = values
        without += [] if values else [name]
    self._can_call = not set(required) & set(without)
    for name in without:
      effect = "is left out" if self._can_call else "no cases"
      self.reasons.append(f"no values for {self._tool.name}.{name}: {effect}")

  def _values_of(self, name: str) -> Pool:
    own_values = self._purpose.pool_of(name)
    fitting = allowed(self._tool, name, own_values, self._toolset)
    if not fitting:  # maybe items of lists
      own_values = lists(own_values)
      fitting = allowed(self._tool, name, own_values, self._toolset)
    for phrase, value in own_values.items():
      if phrase not in fitting:
        self.reasons.append(f"{self._tool.name}.{name} does not allow {quoted(value)}")
    if fitting:
      return fitting
    # What is always given has to be said: a boolean needs words of the person's.
    values = pool(self._tool, name, self._toolset)
    return {phrase: value for phrase, value in values.items() if phrase or name not in self._always}

  def drafts(self, number: int) -> list[Case]:
    """Returns `number` cases with a call, and one per required value that can be missing."""
    if not self._can_call:
      return []
    optional = []
    for part, is_optional in self._purpose.parts:
      if is_optional and says(part) and all(self._pools[name] for name in arguments(part)):
        optional.append(part)
    drafts: dict[str, Case] = {}  # by request: a tool with few values has fewer cases
    for turn in range(number):
      mentioned = set(self._always)
      for place, part in enumerate(optional):
        if number > 1 and turn == 1 + place % (number - 1):
          mentioned |= arguments(part)
      if error := self._add_call(drafts, turn, mentioned):
        self.reasons.append(f"{self._tool.name}: a call that its schema forbids: {error}")
    phrases, _ = self._draw(0, self._always)
    for name, words in self._purpose.missing_words.items():
      if name in self._always:
        self._add(drafts, {**phrases, name: words}, ASK)
    wanted = number + sum(not case.calls for case in drafts.values())
    for turn, part in itertools.product(range(number), optional):  # in place of repeated ones
      if len(drafts) < wanted:
        self._add_call(drafts, turn, self._always | arguments(part))
    if lacking := wanted - len(drafts):
      share = f"{number - lacking} of {number}"
      self.reasons.append(f"{self._tool.name}: {share}, its values allow no more")
    return list(drafts.values())

  def _add_call(self, drafts: dict[str, Case], turn: int, mentioned: set[str]) -> str:
    """Adds a case with a call. Args: as of `_draw`. Returns why the schema forbids it, or ""."""
    phrases, values = self._draw(turn, mentioned)
    if error := next(self._toolset.validator(self._tool.name).iter_errors(values), None):
      return str(error.message)
    self._add(drafts, phrases, (Call(self._tool.name, values),))
    return ""

  def _add(self, drafts: dict[str, Case], phrases: Mapping[str, str], expect: Expected) -> None:
    """Adds a case if its request is new."""
    self.skeletons.append(self._purpose.sentence(dict.fromkeys(phrases, "{}")))
    case = _case(f"{self._tool.name}-{len(drafts) + 1}", self._purpose.sentence(phrases), expect)
    drafts.setdefault(case.request, case)

  def _draw(self, turn: int, mentioned: set[str]) -> tuple[dict[str, str], dict[str, Any]]:
    """Returns what is said and what is meant. Values take turns; two arguments have none in common.

    Args: turn, number of the case; mentioned, arguments to give, if there are values.
    """
    phrases: dict[str, str] = {}
    values: dict[str, Any] = {}
    for name, pairs in self._pools.items():
      if name not in mentioned or not pairs:
        continue
      start = turn % len(pairs)
      turned = pairs[start:] + pairs[:start]
      fresh = [pair for pair in turned if pair[0] not in phrases.values()]
      phrases[name], values[name] = (fresh or turned)[0]
    return phrases, values
