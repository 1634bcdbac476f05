"""The result of a check: for a terminal, a pull request's comment, programs, and test reports."""

import dataclasses
import math
import operator
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from typing import Any

from sgdx_t5x.errors import printable
from sgdx_t5x.tables import Table, count, interval, markdown, p_value, percent, points
from sgdx_t5x.tools.check.blame import Finding
from sgdx_t5x.tools.check.differences import Change, Differences, Kind, counts_of
from sgdx_t5x.tools.check.fragility import Retained
from sgdx_t5x.tools.check.measuring import Comparison, Measurements
from sgdx_t5x.tools.check.statistics import (
  FEW_FLIPS,
  PairedOutcomes,
  detectable_drop,
  wilson_interval,
)
from sgdx_t5x.tools.check.verdict import Decision
from sgdx_t5x.tools.suite.cases import Case
from sgdx_t5x.tools.suite.leaks import find_leaks

FORMAT = "sgdx-tools-check/1"  # raise the number when a reader of the JSON must change
_CASES_IN_COMMENT = 5
_LONGEST = 60  # characters of a text in a cell


@dataclasses.dataclass(frozen=True)
class Report:
  """What a check found.

  Attributes:
    differences: of two versions; None for rewordings.
    decision: the verdict; None if nothing was compared.
    comparisons: with other words; () if there are none, or no calls.
    findings: what broke cases.
    kinds, fragility: what rewordings retain, by kind of change and of each tool.
  """

  model: str
  measurements: Measurements
  differences: Differences | None = None
  decision: Decision | None = None
  comparisons: Sequence[Comparison] = ()
  findings: Sequence[Finding] = ()
  kinds: Sequence[Retained] = ()
  fragility: Sequence[Retained] = ()

  # --- text --------------------------------------------------------------------------------

  def heading(self) -> list[str]:
    """Returns the lines above the tables."""
    cases = self.measurements.cases
    reviewed = sum(case.reviewed is not None for case in cases)
    lines = [f"{len(cases):,} cases ({reviewed:,} reviewed), model {self.model}"]
    if self.differences:
      lines.insert(0, f"old -> new: {counts_of(self.differences.changes)}")
    return lines

  def tables(self) -> list[Table]:
    """Returns the tables, the most important first."""
    tables = [_comparison_table(self.comparisons)] if self.comparisons else []
    if self.findings:
      tables.append(_findings_table(self.findings))
    if self.fragility:
      tables.append(_retained_table("Right before and still right (%)", self.kinds))
      tables.append(_retained_table("The same by tool, the most fragile first", self.fragility))
    elif self.comparisons:
      tables += _flipped_tools(self.comparisons[0])
    if not self.comparisons:
      tables.append(self._scores())
    return tables

  def notes(self) -> list[str]:
    """Returns the lines below the tables."""
    lines = list(self._notes_on_cases())
    noise, number = self.measurements.noise(), len(self.measurements.cases)
    detectable = 100 * detectable_drop(number, noise.churn)
    if noise.outcomes:
      lines.append(
        f"noise: harmless changes ({', '.join(noise.outcomes)}) flip {100 * noise.churn:.1f}% each "
        f"way; a drop of {detectable:.0f} points would be found 4 times in 5"
      )
    else:
      lines.append(f"noise: not measured; without any, a drop of {detectable:.0f} points is found")
    if any(comparison.outcomes.flips < FEW_FLIPS for comparison in self.comparisons):
      lines.append("p: McNemar's exact test, since few cases flip; the interval is a bootstrap's")
    if self.comparisons:
      lines.append(
        "p of a tool: that it was broken, beside what harmless changes did to the same cases; "
        "adjusted for all tools (Holm, edited ones and others apart)"
      )
    return lines

  def _notes_on_cases(self) -> Iterator[str]:
    plan = self.measurements.plan
    if plan.dropped_cases:
      yield f"cases of dropped tools, not asked: {_ids(plan.dropped_cases)}"
    if plan.new_cases:
      share = f"{self.measurements.new_cases_right()} of {len(plan.new_cases)} right"
      yield f"cases of new tools or arguments, no baseline: {share}"
    # A case that says a word of one wording only is easier with it, so what changed may be that.
    leaking = {leak.case for leak in find_leaks(self.measurements.cases, plan.wordings)}
    if leaking and self.comparisons:
      broken = fixed = 0
      for comparison in self.comparisons:
        broken += sum(case.id not in leaking for case in comparison.broken)
        fixed += sum(case.id not in leaking for case in comparison.fixed)
      yield (
        f"cases with words that only some wordings have: {len(leaking)}; of the others, "
        f"{broken} broke and {fixed} were fixed"
      )
    if self.measurements.unanswered:
      yield f"left out, the service refused them: {_ids(self.measurements.unanswered)}"
    for dropped, added in self.differences.possible_renames if self.differences else ():
      renamed = f'{{"/{dropped}": "{added}"}}'
      yield f"if {dropped} was renamed to {added}: --renames FILE with {renamed}"

  def _scores(self) -> Table:
    """Returns the share of right cases per tool, where nothing is compared."""
    words, rows = self.measurements.plan.before, []
    groups = {"all": list(self.measurements.cases), **self.measurements.cases_by_tool()}
    for name, cases in groups.items():
      num_right = int(self.measurements.right(words, cases).sum())
      low, high = wilson_interval(num_right, len(cases))
      share = percent(num_right / len(cases))
      rows.append((name, count(len(cases)), share, f"[{percent(low)}, {percent(high)}]"))
    return Table(
      "Tool and arguments right (%)", ("", "cases", "right", "95% interval"), tuple(rows)
    )

  # --- other forms -------------------------------------------------------------------------

  def comment(self) -> str:
    """Returns the report as one comment of a pull request, in Markdown."""
    verdict = f"**{self.decision.verdict}**: {self.decision.reason}" if self.decision else ""
    main_table, *further_tables = self.tables()
    blocks = ["### sgdx tools check", verdict, markdown(main_table).rstrip()]
    if rows := self._broken_rows():
      cells = tuple(map(operator.itemgetter("request", "was", "now", "because"), rows))
      cells = cells[:_CASES_IN_COMMENT]
      title = f"{len(cells)} of {len(rows)} broken cases"
      table = Table(title, ("request", "was", "now", "because of"), cells, left=4)
      blocks.append(markdown(table).rstrip())
    blocks.append("  \n".join((*self.heading(), *self.notes())))
    if further_tables:
      inside = "\n\n".join(markdown(table).rstrip() for table in further_tables)
      blocks.append(f"<details><summary>more</summary>\n\n{inside}\n\n</details>")
    return "\n\n".join(filter(None, blocks)) + "\n"

  def _broken_rows(self) -> list[dict[str, str]]:
    """Returns the broken cases: id, request, what was called before and now, and why."""
    because: dict[str, str] = {}
    for finding in self.findings:
      pointers = " + ".join(change.pointer for change in finding.changes)
      because |= dict.fromkeys((case.id for case in finding.cases), pointers or "not found")
    rows = []
    for comparison in self.comparisons:
      for case in comparison.broken:
        tools_before = self.measurements.response(self.measurements.plan.before, case).tools
        response = self.measurements.response(comparison.words, case)
        rows.append(
          {
            "words": comparison.words.name,
            "case": case.id,
            "request": _short(case.request),
            "was": ", ".join(tools_before) or "no call",
            "now": f"{', '.join(response.tools) or 'no call'} ({response.judgement.reason})",
            "because": because.get(case.id, ""),
          }
        )
    return rows

  def data(self) -> dict[str, Any]:
    """Returns the report as JSON: fractions, not percent."""
    noise, cases = self.measurements.noise(), self.measurements.cases
    decision, changes = self.decision, self.differences.changes if self.differences else ()
    return {
      "format": FORMAT,
      "model": self.model,
      "verdict": decision.verdict.value if decision else None,
      "reason": decision.reason if decision else None,
      "cases": len(cases),
      "unanswered": [case.id for case in self.measurements.unanswered],
      "dropped": [case.id for case in self.measurements.plan.dropped_cases],
      "changes": list(map(dataclasses.asdict, changes)),
      "noise": {
        "churn": noise.churn,
        "floor": noise.floor,
        "outcomes": {name: _outcomes(x) for name, x in noise.outcomes.items()},
      },
      "detectable_drop": detectable_drop(len(cases), noise.churn),
      "comparisons": list(map(_comparison_data, self.comparisons)),
      "broken": self._broken_rows(),
      "causes": list(map(_finding_data, self.findings)),
      "retained": {
        "kinds": list(map(_retained_data, self.kinds)),
        "tools": list(map(_retained_data, self.fragility)),
      },
      "printed": {
        "lines": [str(decision or "nothing was compared"), *self.heading(), *self.notes()],
        "tables": list(map(dataclasses.asdict, self.tables())),
      },
    }

  def junit(self) -> str:
    """Returns a JUnit report: a test per case and wording, which fails if the case is broken.

    Without other words, it fails if the case is wrong.
    """
    suites = ElementTree.Element("testsuites")
    broken = {(row["words"], row["case"]): row for row in self._broken_rows()}
    words_before = self.measurements.plan.before
    for words in self.measurements.plan.after or (words_before,):
      suite = ElementTree.SubElement(suites, "testsuite", name=f"sgdx tools check, {words.name}")
      failures = 0
      cases = self.measurements.cases
      for case, is_right in zip(cases, self.measurements.right(words, cases), strict=True):
        tool = case.calls[0].name if case.calls else "no tool"
        test = ElementTree.SubElement(suite, "testcase", name=case.id, classname=tool)
        if (words.name, case.id) in broken or (words is words_before and not is_right):
          judgement = self.measurements.response(words, case).judgement
          text = f"{judgement.reason}: {judgement.detail}"
          ElementTree.SubElement(test, "failure", message=printable(text))
          failures += 1
        elif not is_right:
          ElementTree.SubElement(test, "skipped", message="wrong before, too")
      suite.set("tests", str(len(cases)))
      suite.set("failures", str(failures))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


# --- JSON ----------------------------------------------------------------------------------


def _comparison_data(comparison: Comparison) -> dict[str, Any]:
  return {
    "words": comparison.words.name,
    "verdict": comparison.decision.verdict.value,
    "reason": comparison.decision.reason,
    "right": _outcomes(comparison.outcomes),
    "right_tool": _outcomes(comparison.tool_outcomes),
    "tools": {tool.name: {**_outcomes(tool.outcomes), "p": tool.p} for tool in comparison.tools},
    "changed_calls": comparison.changed_calls,
    "fixed": [case.id for case in comparison.fixed],
  }


def _finding_data(finding: Finding) -> dict[str, Any]:
  return {
    "changes": list(map(dataclasses.asdict, finding.changes)),
    "cases": [case.id for case in finding.cases],
    "only_these": finding.only_these,
    "called_instead": finding.called_instead,
  }


def _retained_data(row: Retained) -> dict[str, Any]:
  return {**dataclasses.asdict(row), "interval": _ends(row.interval)}


def _outcomes(outcomes: PairedOutcomes) -> dict[str, Any]:
  row = {**dataclasses.asdict(outcomes), "difference": outcomes.difference}
  if math.isnan(outcomes.bootstrap_p):
    row["bootstrap_p"] = None
  return {**row, "interval": _ends(outcomes.interval)}


def _ends(interval: tuple[float, float]) -> list[float] | None:
  return None if math.isnan(interval[0]) else list(interval)


# --- tables --------------------------------------------------------------------------------


def _comparison_table(comparisons: Sequence[Comparison]) -> Table:
  header = ("", "before", "after", "after-before", "95% interval", "p", "broken", "fixed")
  if len(comparisons) == 1:
    outcomes, of_tool = comparisons[0].outcomes, comparisons[0].tool_outcomes
    rows = (("tool and arguments", *_cells(outcomes)), ("tool", *_cells(of_tool)))
    return Table("Right (%)", header, rows)
  lines = tuple((x.words.name, *_cells(x.outcomes)) for x in comparisons)
  return Table("Tool and arguments right (%)", header, lines)


def _cells(outcomes: PairedOutcomes) -> tuple[Any, ...]:
  return (
    percent(outcomes.before),
    percent(outcomes.after),
    points(outcomes.difference),
    *interval(_ends(outcomes.interval), False),
    p_value(outcomes.p),
    count(outcomes.broken),
    count(outcomes.fixed),
  )


def _flipped_tools(comparison: Comparison) -> list[Table]:
  """Returns a table of the tools whose cases flipped, the greatest losses first; [] for none."""
  rows = []
  by_loss = sorted(comparison.tools, key=lambda tool: tool.outcomes.fixed - tool.outcomes.broken)
  for tool in by_loss:
    outcomes = tool.outcomes
    if outcomes.flips:
      shares = percent(outcomes.before), percent(outcomes.after), p_value(tool.p)
      flips = count(outcomes.broken), count(outcomes.fixed)
      rows.append((tool.name, count(outcomes.cases), *shares, *flips))
  header = ("", "cases", "before", "after", "p", "broken", "fixed")
  return [Table("By tool that is due, right (%)", header, tuple(rows))] if rows else []


def _findings_table(findings: Sequence[Finding]) -> Table:
  rows = []
  for finding in findings:
    cause = " + ".join(map(_change_text, finding.changes)) or "not found: chance, or many changes"
    if finding.changes and finding.only_these < len(finding.cases):
      cause += " (not the only one)"
    instead = f"{finding.called_instead}: " if finding.called_instead else ""
    example = f"{instead}{_short(finding.cases[0].request)!r}"
    rows.append((cause, example, count(len(finding.cases))))
  header = ("change", "called instead, for example", "cases")
  return Table("What hurts", header, tuple(rows), left=2)


def _change_text(change: Change) -> str:
  place = change.pointer.removeprefix("/") or "tools"
  if change.kind in (Kind.TEXT, Kind.RENAMED):
    return f"{place}: {_short(change.old)!r} -> {_short(change.new)!r}"
  return f"{place}: {change.kind} {change.new}".rstrip()


def _retained_table(title: str, rows: Sequence[Retained]) -> Table:
  header = ("", "cases", "still right", "95% interval", "worst", "goes to")
  cells = []
  for row in rows:
    ends = "-" if math.isnan(row.interval[0]) else "[{}, {}]".format(*map(percent, row.interval))
    shares = (percent(row.share), ends, percent(row.worst))
    cells.append((row.name, count(row.cases), *shares, row.called_instead or "-"))
  return Table(title, header, tuple(cells))


def _ids(cases: Sequence[Case]) -> str:
  ids = ", ".join(case.id for case in cases[:5])
  return f"{len(cases):,} ({ids}{', ...' if len(cases) > 5 else ''})"


def _short(text: str) -> str:
  text = " ".join(text.split())
  return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
