"""What makes cases unfit to compare wordings: leaks, equal requests, tools that no case calls."""

import collections
import dataclasses
import re
from collections.abc import Mapping, Sequence

from sgdx_t5x.tools.schemas import PROPERTIES
from sgdx_t5x.tools.suite.cases import Case
from sgdx_t5x.tools.suite.rewording import elements
from sgdx_t5x.tools.suite.toolset import ToolSet

INSIDE = re.compile(r"(?<=[a-z\d])(?=[A-Z])")  # between words of camelCase
_WORDS = re.compile(r"[^\W_]+")
_SHORTEST = 3  # letters of a word that can be a leak
_STOP_WORDS = frozenset(
  re.findall(
    r"\w+",
    "all and any are but can could did does for from had has have her here him his how into its "
    "may more not now off one only onto our out over per please she should show some such than "
    "that the them then there these they this those too under use used was were what when where "
    "which who will with would you your",
  )
)


@dataclasses.dataclass(frozen=True)
class Leak:
  """A word of a case, in lower case, that only these wordings of its tools have."""

  case: str
  word: str
  wordings: tuple[str, ...]


def words(text: str) -> set[str]:
  """Returns the words of a text or a name that say something, in lower case, without plural s."""
  stems = set()
  for word in map(str.lower, _WORDS.findall(INSIDE.sub(" ", text))):
    if len(word) >= _SHORTEST and word not in _STOP_WORDS:
      is_plural = word.endswith("s") and word[-2] != "s"
      stems.add(word[:-1] if is_plural else word)
  return stems


def find_leaks(cases: Sequence[Case], wordings: Mapping[str, ToolSet]) -> list[Leak]:
  """Returns the leaks of cases.

  A user's words that one wording shares and another does not make that one easier, whatever its
  quality. Compared are the names and descriptions of the tools that are due.

  Args:
    cases: in the words of the base.
    wordings: name -> the suite's tools in that wording, in one order; the first is the base.
  """
  base = next(iter(wordings.values()))
  words_of_tools: dict[str, dict[str, set[str]]] = {}  # wording -> tool in the base -> words
  for wording, toolset in wordings.items():
    texts = (" ".join(elements(tool).values()) for tool in toolset.tools)
    words_of_tools[wording] = dict(zip(base.by_name, map(words, texts), strict=True))
  leaks = []
  for case in cases:
    request_words = words(case.request)
    wordings_of_word = collections.defaultdict(list)
    for wording, tool_words in words_of_tools.items():
      due_words = set[str]().union(*(tool_words[call.name] for call in case.calls))
      for word in request_words & due_words:
        wordings_of_word[word].append(wording)
    for word, names in sorted(wordings_of_word.items()):
      if len(names) < len(wordings):  # what all have favours none
        leaks.append(Leak(case.id, word, tuple(names)))
  return leaks


def same_requests(cases: Sequence[Case]) -> list[tuple[str, ...]]:
  """Returns ids of cases, two and more, that say the same but for case, spaces and marks."""
  groups: dict[tuple[str, ...], list[str]] = {}
  for case in cases:
    turns = (str(message.get("content")).lower() for message in case.messages)
    key = tuple(" ".join(re.findall(r"\w+", turn)) for turn in turns)
    groups.setdefault(key, []).append(case.id)
  return [tuple(ids) for ids in groups.values() if len(ids) > 1]


@dataclasses.dataclass(frozen=True)
class Coverage:
  """What cases call.

  Attributes:
    cases_of: tool -> number of cases in which it is due.
    no_call: number of cases in which none is due, or a value is to be asked for.
    unused: tool -> arguments that no case gives; only if there are.
  """

  cases_of: Mapping[str, int]
  no_call: int
  unused: Mapping[str, tuple[str, ...]]


def coverage(cases: Sequence[Case], toolset: ToolSet) -> Coverage:
  """Returns what cases call. Args: cases, of these tools."""
  cases_of = dict.fromkeys(toolset.by_name, 0)
  used: dict[str, set[str]] = collections.defaultdict(set)
  for case in cases:
    for name in {call.name for call in case.calls}:
      cases_of[name] += 1
    for call in case.calls:
      used[call.name] |= call.arguments.keys()
  unused = {}
  for tool in toolset.tools:
    arguments = tool.parameters.get(PROPERTIES, {})
    if unused_arguments := tuple(name for name in arguments if name not in used[tool.name]):
      unused[tool.name] = unused_arguments
  return Coverage(cases_of, sum(not case.calls for case in cases), unused)
