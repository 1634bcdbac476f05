"""The cases of a suite in several words: which questions that takes, and what the answers say."""

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sgdx_t5x.metrics import BootstrapSamples
from sgdx_t5x.metrics.bootstrap import mean_interval
from sgdx_t5x.tools.check.asking import Question, Response, Words
from sgdx_t5x.tools.check.statistics import (
  TOOL_ALPHA,
  Noise,
  PairedOutcomes,
  broken_p,
  holm,
  paired_outcomes,
)
from sgdx_t5x.tools.check.verdict import Decision, Verdict, decide
from sgdx_t5x.tools.suite.cases import Case
from sgdx_t5x.tools.suite.rewording import Rewording
from sgdx_t5x.tools.suite.toolset import ToolSet

NO_TOOL = "(no tool)"  # of cases in which no call is due


@dataclasses.dataclass(frozen=True)
class Plan:
  """What is asked.

  Attributes:
    before: the words to compare with.
    after: those to compare: the new version, or rewordings; () to compare nothing.
    placebos: words that differ from `before` in what means nothing.
    cases: that are asked in all words.
    new_cases: of tools that `before` does not have, asked in `after` only.
    dropped_cases: of tools that `after` does not have, not asked.
    runs: how often each case is asked in `before` and `after`.
  """

  before: Words
  after: tuple[Words, ...]
  placebos: tuple[Words, ...]
  cases: tuple[Case, ...]
  new_cases: tuple[Case, ...] = ()
  dropped_cases: tuple[Case, ...] = ()
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


def placebos(tools: ToolSet, rewording: Rewording, number: int) -> tuple[Words, ...]:
  """Returns the first of the harmless changes of tools: their order, white space."""
  backwards = ToolSet(tools.tools[::-1])
  spaced = [
    dataclasses.replace(tool, description=f"{tool.description}\n") if tool.description else tool
    for tool in tools.tools
  ]
  harmless = (("order of tools", backwards), ("white space", ToolSet(tuple(spaced))))
  return tuple(Words(name, shown, rewording) for name, shown in harmless[:number])


def by_kind(rewordings: Sequence[Rewording]) -> list[Rewording]:
  """Returns each rewording, and what it is with its names alone, and with its texts alone."""
  result = []
  for rewording in rewordings:
    result.append(rewording)
    names = {p: text for p, text in rewording.replaced.items() if _is_name(p)}
    texts = {p: text for p, text in rewording.replaced.items() if not _is_name(p)}
    if names and texts:
      result.append(Rewording(f"{rewording.name}, names only", names))
      result.append(Rewording(f"{rewording.name}, texts only", texts))
  return result


def _is_name(pointer: str) -> bool:
  """Whether a pointer is to a tool or a property, and not to a description or title."""
  keys = pointer.split("/")[1:]  # the first is a tool's name
  is_property = len(keys) > 2 and keys[-2] == "properties"
  return len(keys) == 1 or is_property or keys[-1] not in ("description", "title")


# --- results -------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class ToolOutcomes:
  """The cases of one tool.

  Attributes:
    name: in the words of the base.
    outcomes: of its cases.
    p: that it was broken, see `broken_p`; adjusted for the number of tools and wordings.
  """

  name: str
  outcomes: PairedOutcomes
  p: float


@dataclasses.dataclass(frozen=True)
class Comparison:
  """Cases before and in other words.

  Attributes:
    words: the other words.
    outcomes: of tool and arguments; p is Holm's if there are several comparisons.
    tool_outcomes: of the tool alone.
    tools: outcomes by tool that is due.
    decision: the verdict.
    broken, fixed: the cases that flipped.
    changed_calls: share of cases whose calls differ at all, right or wrong.
  """

  words: Words
  outcomes: PairedOutcomes
  tool_outcomes: PairedOutcomes
  tools: tuple[ToolOutcomes, ...]
  decision: Decision
  broken: tuple[Case, ...]
  fixed: tuple[Case, ...]
  changed_calls: float


@dataclasses.dataclass(frozen=True)
class ToolFragility:
  """How a tool's cases do in other words.

  Attributes:
    name: of the tool, in the words of the base.
    cases: right before.
    retained: share of these that are still right, mean over the words.
    worst: the same in the worst words.
    called_instead: the tool that got most of the lost calls; "" if none did.
  """

  name: str
  cases: int
  retained: float
  worst: float
  called_instead: str


class Measurements:
  """The responses to the questions of a plan.

  Attributes:
    plan: what was asked.
    unanswered: cases that the service refused to answer in some of the words.
  """

  def __init__(self, plan: Plan, responses: Mapping[Question, Response]):
    """Args: plan; responses to its questions."""
    self.plan = plan
    self._responses = {(q.words, q.case.id, q.run): response for q, response in responses.items()}
    missing = {q.case.id for q in plan.questions() if (q.words, q.case.id, q.run) not in self}
    self.unanswered = tuple(case for case in plan.cases if case.id in missing)
    self._cases = tuple(case for case in plan.cases if case.id not in missing)

  def __contains__(self, key: tuple[Words, str, int]) -> bool:
    return key in self._responses

  @property
  def cases(self) -> tuple[Case, ...]:
    """The cases that were answered in all words."""
    return self._cases

  def response(self, words: Words, case: Case, run: int = 0) -> Response:
    """Returns what was answered to a case."""
    return self._responses[words, case.id, run]

  def is_right(self, words: Words, case: Case) -> bool:
    """Whether a case is right in more than half of the runs."""
    right = sum(self.response(words, case, run).judgement.right for run in range(self.plan.runs))
    return 2 * right > self.plan.runs

  def noise(self) -> Noise:
    """What harmless changes and further runs do to a single run in the words before."""
    before = self.plan.before
    first = self._right(self.cases, before)
    outcomes = {
      words.name: paired_outcomes(first, self._right(self.cases, words))
      for words in self.plan.placebos
    }
    for run in range(1, self.plan.runs):
      outcomes[f"run {run + 1}"] = paired_outcomes(first, self._right(self.cases, before, run))
    return Noise(outcomes)

  def _right(self, cases: Sequence[Case], words: Words, run: int = 0) -> list[bool]:
    """Returns which cases are right in one run."""
    return [self.response(words, case, run).judgement.right for case in cases]

  def no_calls(self) -> Decision | None:
    """Returns the verdict for answers without any call, where some are due; else None."""
    responses = [self._responses[key] for key in self._responses]
    if any(response.calls for response in responses) or not any(case.calls for case in self.cases):
      return None
    texts = [response.text_call for response in responses if response.text_call]
    reason = f"{len(responses):,} answers without a call"
    if texts:
      first = " ".join(texts[0].split())[:60]
      reason += f", {len(texts):,} with one in their text (--calls-from-text), as {first}"
    return Decision(Verdict.NO_CALLS, reason)

  def new_cases_right(self) -> int:
    """Returns how many cases of new tools are right."""
    words = self.plan.after[0]
    keys = ((words, case.id, 0) for case in self.plan.new_cases)
    return sum(self._responses[key].judgement.right for key in keys if key in self)

  def comparisons(self, largest_drop: float) -> list[Comparison]:
    """Returns how the other words do. Args: largest_drop, see `verdict.decide`."""
    noise, all_outcomes = self.noise(), []
    before = [self.is_right(self.plan.before, case) for case in self.cases]
    for words in self.plan.after:
      after = [self.is_right(words, case) for case in self.cases]
      all_outcomes.append(paired_outcomes(before, after))
    adjusted = holm([outcomes.p for outcomes in all_outcomes])
    result = []
    for words, outcomes, p in zip(self.plan.after, all_outcomes, adjusted, strict=True):
      outcomes = dataclasses.replace(outcomes, p=p)
      broken = [c for c, right in zip(self.cases, before, strict=True) if right]
      fixed = [c for c, right in zip(self.cases, before, strict=True) if not right]
      tools = self._by_tool(words)
      broken_tools = [tool.name for tool in tools if tool.p <= TOOL_ALPHA]
      changed = [
        self.response(self.plan.before, case).calls != self.response(words, case).calls
        for case in self.cases
      ]
      result.append(
        Comparison(
          words,
          outcomes,
          self._tool_outcomes(words),
          tools,
          decide(outcomes, noise, broken_tools, largest_drop),
          tuple(case for case in broken if not self.is_right(words, case)),
          tuple(case for case in fixed if self.is_right(words, case)),
          sum(changed) / len(changed),
        )
      )
    return result

  def _tool_outcomes(self, words: Words) -> PairedOutcomes:
    """Compares whether the tool is right, in the first run."""
    first, second = (
      [self.response(x, case).judgement.right_tool for case in self.cases]
      for x in (self.plan.before, words)
    )
    return paired_outcomes(first, second)

  def _by_tool(self, words: Words) -> tuple[ToolOutcomes, ...]:
    before, outcomes, p_values = self.plan.before, [], []
    groups = self.cases_by_tool()
    for cases in groups.values():
      first, second = ([self.is_right(x, case) for case in cases] for x in (before, words))
      outcomes.append(paired_outcomes(first, second))
      controls = [self._right(cases, x) for x in self.plan.placebos]
      controls += [self._right(cases, before, run) for run in range(1, self.plan.runs)]
      p_values.append(broken_p(self._right(cases, before), self._right(cases, words), controls))
    wordings = len(self.plan.after)
    adjusted = [min(1.0, wordings * p) for p in holm(p_values)]
    return tuple(map(ToolOutcomes, groups, outcomes, adjusted))

  def cases_by_tool(self) -> dict[str, list[Case]]:
    """Returns tool -> the cases in which a call of it is due; a case may have several."""
    cases: dict[str, list[Case]] = collections.defaultdict(list)
    for case in self.cases:
      for name in dict.fromkeys(call.name for call in case.calls) or (NO_TOOL,):
        cases[name].append(case)
    return dict(cases)

  # --- fragility ---------------------------------------------------------------------------

  def retained(self, words: Sequence[Words]) -> tuple[float, tuple[float, float]]:
    """Returns the share of cases right before that are still right, and its 95% interval.

    A case counts with the mean over the words; the bootstrap draws cases.
    """
    rows = [row for _, row in self._still_right(self.cases, words)]
    if not rows:
      return float("nan"), (float("nan"), float("nan"))
    means = np.asarray(rows, float).mean(axis=1)
    ids = np.arange(len(means)).astype(str)
    return float(means.mean()), mean_interval(means, ids, BootstrapSamples.draw(ids))

  def fragility(self, words: Sequence[Words]) -> list[ToolFragility]:
    """Returns the tools, the most fragile first. Args: words to look at."""
    result = []
    for name, cases in self.cases_by_tool().items():
      rows = list(self._still_right(cases, words))
      if not rows:
        continue
      still_right = np.asarray([row for _, row in rows], float)
      lost = collections.Counter(
        self.instead(x, case)
        for case, row in rows
        for x, right in zip(words, row, strict=True)
        if not right
      )
      del lost[""]
      instead = lost.most_common(1)
      by_words = still_right.mean(axis=0)
      result.append(
        ToolFragility(
          name,
          len(rows),
          float(by_words.mean()),
          float(by_words.min()),
          instead[0][0] if instead else "",
        )
      )
    return sorted(result, key=lambda tool: (tool.retained, tool.worst))

  def _still_right(
    self, cases: Sequence[Case], words: Sequence[Words]
  ) -> Iterator[tuple[Case, list[bool]]]:
    """Yields the cases right before, and whether they are right in each of the words."""
    for case in cases:
      if self.is_right(self.plan.before, case):
        yield case, [self.is_right(x, case) for x in words]

  def instead(self, words: Words, case: Case) -> str:
    """Returns what was called for a case in the place of what is due; "" if the tool is right."""
    return called_instead(self.response(words, case))


def called_instead(response: Response) -> str:
  """Returns what a response with a wrong tool calls; "" if its tool is right."""
  if response.judgement.right_tool:
    return ""
  return ", ".join(response.tools) or "no tool"
