"""What the answers to a plan say: outcomes of cases, of tools, and what changed calls."""

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sgdx_t5x.tools.check.asking import Question, Response, Words
from sgdx_t5x.tools.check.plan import Plan
from sgdx_t5x.tools.check.statistics import (
  TOOL_ALPHA,
  Noise,
  PairedOutcomes,
  broken_p,
  holm,
  holm_in_halves,
  paired_outcomes,
)
from sgdx_t5x.tools.check.verdict import Decision, Verdict, decide
from sgdx_t5x.tools.suite.cases import Case

NO_TOOL = "(no tool)"  # of cases in which no call is due


@dataclasses.dataclass(frozen=True)
class ToolOutcomes:
  """The cases of one tool, named in the words of the base.

  Attributes: p, that it was broken, see `broken_p`; adjusted for the number of tools and wordings.
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


class Measurements:
  """The responses to the questions of a plan.

  Attributes:
    cases: those that were answered in all words.
    unanswered: the others: the service refused to answer them in some.
  """

  def __init__(self, plan: Plan, responses: Mapping[Question, Response]):
    """Args: plan; responses to its questions."""
    self.plan = plan
    self._responses = {(q.words, q.case.id, q.run): response for q, response in responses.items()}
    keys = {(q.words, q.case.id, q.run) for q in plan.questions()}
    missing = {case_id for _, case_id, _ in keys - self._responses.keys()}
    self.cases = tuple(case for case in plan.cases if case.id not in missing)
    self.unanswered = tuple(case for case in plan.cases if case.id in missing)

  def response(self, words: Words, case: Case, run: int = 0) -> Response:
    """Returns what was answered to a case."""
    return self._responses[words, case.id, run]

  def right(self, words: Words, cases: Sequence[Case], run: int | None = None) -> np.ndarray:
    """Returns which cases are right in a run; None: in more than half of the runs. [N] bool."""
    if run is not None:
      return np.array([self.response(words, case, run).judgement.right for case in cases], bool)
    outcomes = [self.right(words, cases, run) for run in range(self.plan.runs)]
    return 2 * np.sum(outcomes, axis=0) > self.plan.runs

  def controls(self, cases: Sequence[Case]) -> dict[str, np.ndarray]:
    """Returns what was asked besides, with harmless changes: name -> [N] bool, which are right."""
    controls = {words.name: self.right(words, cases, 0) for words in self.plan.placebos}
    for run in range(1, self.plan.runs):
      controls[f"run {run + 1}"] = self.right(self.plan.before, cases, run)
    return controls

  def noise(self) -> Noise:
    """Returns what harmless changes and further runs do to a single run in the words before."""
    baseline = self.right(self.plan.before, self.cases, 0)
    controls = self.controls(self.cases).items()
    return Noise({name: paired_outcomes(baseline, outcomes) for name, outcomes in controls})

  def no_calls(self) -> Decision | None:
    """Returns the verdict for answers without any call, where some are due; else None."""
    responses = list(self._responses.values())
    if any(response.calls for response in responses) or not any(case.calls for case in self.cases):
      return None
    texts = [response.text_call for response in responses if response.text_call]
    reason = f"{len(responses):,} answers without a call"
    if texts:
      example = " ".join(texts[0].split())[:60]
      reason += f", {len(texts):,} with one in their text (--calls-from-text), as {example}"
    return Decision(Verdict.NO_CALLS, reason)

  def new_cases_right(self) -> int:
    """Returns how many cases of new tools are right."""
    keys = [(self.plan.after[0], case.id, 0) for case in self.plan.new_cases]
    return sum(self._responses[key].judgement.right for key in keys if key in self._responses)

  def comparisons(self, largest_drop: float) -> list[Comparison]:
    """Returns how the other words do. Args: largest_drop, see `verdict.decide`."""
    noise, outcomes_before = self.noise(), self.right(self.plan.before, self.cases)
    outcomes_of_words = [
      paired_outcomes(outcomes_before, self.right(words, self.cases)) for words in self.plan.after
    ]
    adjusted = holm([outcomes.p for outcomes in outcomes_of_words])
    result = []
    for words, outcomes, p in zip(self.plan.after, outcomes_of_words, adjusted, strict=True):
      outcomes = dataclasses.replace(outcomes, p=p)
      tools = self._by_tool(words)
      broken_tools = [tool.name for tool in tools if tool.p <= TOOL_ALPHA]
      decision = decide(outcomes, noise, broken_tools, largest_drop)
      result.append(self._comparison(words, outcomes_before, outcomes, tools, decision))
    return result

  def _comparison(
    self, words: Words, outcomes_before: np.ndarray, outcomes: PairedOutcomes,
    tools: tuple[ToolOutcomes, ...], decision: Decision,
  ) -> Comparison:  # fmt: skip
    broken, fixed, right_tool, changed = [], [], [], 0
    outcomes_after = self.right(words, self.cases)
    for case, was_right, is_right in zip(self.cases, outcomes_before, outcomes_after, strict=True):
      if was_right and not is_right:
        broken.append(case)
      if is_right and not was_right:
        fixed.append(case)
      responses = self.response(self.plan.before, case), self.response(words, case)
      right_tool.append([response.judgement.right_tool for response in responses])
      changed += responses[0].calls != responses[1].calls
    tool_outcomes = paired_outcomes(*zip(*right_tool, strict=True))
    share = changed / len(self.cases)
    return Comparison(
      words, outcomes, tool_outcomes, tools, decision, tuple(broken), tuple(fixed), share
    )

  def _by_tool(self, words: Words) -> tuple[ToolOutcomes, ...]:
    baseline, groups = self.plan.before, self.cases_by_tool()
    outcomes, p_values = [], []
    for cases in groups.values():
      outcomes.append(paired_outcomes(self.right(baseline, cases), self.right(words, cases)))
      first_runs = self.right(baseline, cases, 0), self.right(words, cases, 0)
      p_values.append(broken_p(*first_runs, list(self.controls(cases).values())))
    # What was edited is likelier to break than what may only have lost calls to it.
    changed = {tool.name for tool in baseline.toolset.tools if tool not in words.toolset.tools}
    adjusted = holm_in_halves(p_values, [name in changed for name in groups])
    adjusted = [min(1.0, len(self.plan.after) * p) for p in adjusted]
    return tuple(map(ToolOutcomes, groups, outcomes, adjusted))

  def cases_by_tool(self) -> dict[str, list[Case]]:
    """Returns tool -> the cases in which a call of it is due; a case may have several."""
    cases: dict[str, list[Case]] = collections.defaultdict(list)
    for case in self.cases:
      for name in dict.fromkeys(call.name for call in case.calls) or (NO_TOOL,):
        cases[name].append(case)
    return dict(cases)


def most_called_instead(responses: Iterable[Response]) -> str:
  """Returns what wrong responses call most often in the place of what is due; "" if nothing."""
  instead: collections.Counter[str] = collections.Counter()
  for response in responses:
    if not response.judgement.right_tool:
      instead[", ".join(response.tools) or "no tool"] += 1
  return instead.most_common(1)[0][0] if instead else ""
