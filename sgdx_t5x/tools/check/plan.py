"""What a check asks: the cases, in the words before and after, and with harmless changes."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.tools.check.asking import Question, Words
from sgdx_t5x.tools.check.differences import NOW, Differences, Kind
from sgdx_t5x.tools.suite.cases import CASES, Case, faults, read_cases
from sgdx_t5x.tools.suite.rewording import (
  BASE,
  REWORDINGS,
  Rewording,
  apply,
  is_name,
  read_rewordings,
)
from sgdx_t5x.tools.suite.toolset import ToolSet

_FIX = (
  "correct these lines; of names that only the new tools have, give the old ones: "
  '--renames FILE with {"/TOOL/parameters/properties/OLD": "NEW"}'
)
NAMES, TEXTS = "names only", "texts only"  # parts of a rewording


@dataclasses.dataclass(frozen=True)
class Plan:
  """What is asked.

  Attributes:
    before: the words to compare with.
    after: those to compare: the new version, or rewordings; () to compare nothing.
    cases: that are asked in all words.
    new_cases: of tools or arguments that `before` does not have, asked in `after` only.
    dropped_cases: of tools that `after` does not have, not asked.
    wordings: name -> the tools before and after, each in the order before, to look for leaks.
    placebos: words that differ from `before` in what means nothing.
    runs: how often each case is asked in `before` and `after`.
  """

  before: Words
  after: tuple[Words, ...]
  cases: tuple[Case, ...]
  new_cases: tuple[Case, ...] = ()
  dropped_cases: tuple[Case, ...] = ()
  wordings: Mapping[str, ToolSet] = dataclasses.field(default_factory=dict)
  placebos: tuple[Words, ...] = ()
  runs: int = 1

  def questions(self) -> list[Question]:
    """Returns all questions; those of one wording together, for the prompt caches of servers."""
    questions = []
    for words in (self.before, *self.after):
      for run in range(self.runs):
        questions += [Question(words, case, run) for case in self.cases]
    for words in self.after:
      questions += [Question(words, case) for case in self.new_cases]
    for words in self.placebos:
      questions += [Question(words, case) for case in self.cases]
    return questions


def with_noise(plan: Plan, placebos: int, runs: int) -> Plan:
  """Returns a plan with the first of the harmless changes, order and white space, and more runs."""
  tools = plan.before.toolset.tools
  spaced = [
    dataclasses.replace(tool, description=f"{tool.description}\n") if tool.description else tool
    for tool in tools
  ]
  harmless = (("order of tools", tools[::-1]), ("white space", tuple(spaced)))
  words = [Words(name, ToolSet(placebo), plan.before.rewording) for name, placebo in harmless]
  return dataclasses.replace(plan, placebos=tuple(words[:placebos]), runs=runs)


def _with_parts(rewordings: Sequence[Rewording]) -> list[Rewording]:
  """Returns each rewording, followed by its names alone and its texts alone if it has both."""
  result = []
  for rewording in rewordings:
    result.append(rewording)
    names, texts = dict[str, str](), dict[str, str]()
    for pointer, text in rewording.replaced.items():
      (names if is_name(pointer) else texts)[pointer] = text
    if names and texts:
      result.append(Rewording(f"{rewording.name}, {NAMES}", names))
      result.append(Rewording(f"{rewording.name}, {TEXTS}", texts))
  return result


def plan_versions(folder: pathlib.Path, differences: Differences) -> Plan:
  """Returns the plan for two versions of tools, without placebos.

  The cases may be in the words of either version: `sgdx tools cases` checks those of the new one.
  Cases of tools that were dropped are not asked, those of tools or arguments that were added only
  now.
  """
  base = differences.base
  cases: list[Case] = []
  dropped: list[Case] = []
  added: list[Case] = []
  for case in read_cases(folder / CASES, base, differences.to_base, _FIX, differences.grown):
    due = {call.name for call in case.calls}
    if due.intersection(differences.tools_of(Kind.DROPPED)):
      dropped.append(case)
    elif due.intersection(differences.tools_of(Kind.ADDED)) or any(faults(case, base)):
      added.append(case)
    else:
      cases.append(case)
  words_before = Words("old", *differences.with_changes(()))
  words_after = Words(NOW, *differences.with_changes(differences.changes))
  # To look for leaks, both must have the same tools in one order.
  in_place = (Kind.TEXT, Kind.RENAMED, Kind.SCHEMA)
  reworded = differences.with_changes([x for x in differences.changes if x.kind in in_place])[0]
  wordings = {words_before.name: words_before.toolset, words_after.name: reworded}
  return Plan(words_before, (words_after,), tuple(cases), tuple(added), tuple(dropped), wordings)


def plan_rewordings(folder: pathlib.Path, tools: ToolSet, number: int, split: bool) -> Plan:
  """Returns the plan for the first rewordings of a suite, without placebos.

  Args:
    folder, tools: of the suite.
    number: how many rewordings; 0 to ask in the base's words only.
    split: whether each is also asked with its names alone, and with its texts alone.
  """
  rewordings = read_rewordings(folder / REWORDINGS)[:number] if number else []
  if len(rewordings) < number:
    raise SgdxError(
      f"--reword {number}: {folder / REWORDINGS} has {len(rewordings)} rewordings",
      expected="as many, or more",
      fix=f"--reword {len(rewordings)}" if rewordings else "write some",
    )
  if split:
    rewordings = _with_parts(rewordings)
  words_after = tuple(Words(x.name, apply(tools, x), x) for x in rewordings)
  cases = read_cases(folder / CASES, tools)
  words_before = Words(BASE.name, tools, BASE)
  wordings = {words.name: words.toolset for words in (words_before, *words_after)}
  return Plan(words_before, words_after, tuple(cases), wordings=wordings)
