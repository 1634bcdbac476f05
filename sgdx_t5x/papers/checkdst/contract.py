"""What a perturbation must not break, checked for each dialogue before anything is written.

A gold value that was said is still said, accepted values of a slot that are one value stay one, and
the annotation rules of `sgdx data verify` hold wherever they did.
"""

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.annotation import Violation, annotation_violations
from sgdx_t5x.corpus.annotation_rules import ERRORS, WARNINGS
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.checkdst.answerable import SAID, Said, said_state_values
from sgdx_t5x.papers.checkdst.same_value import clock_time
from sgdx_t5x.papers.checkdst.values import Place


@dataclasses.dataclass(frozen=True)
class _Condition:
  """The condition of a dialogue.

  Attributes:
    values: (turn, service, slot) -> accepted value -> how it is said.
    violations: of annotation rules.
  """

  values: Mapping[Place, Mapping[str, Said]]
  violations: Sequence[Violation]

  @property
  def is_flawless(self) -> bool:
    """Whether all values are said and no rule is broken."""
    return not self.violations and all(
      said == SAID for accepted in self.values.values() for said in accepted.values()
    )


class Contract:
  """Compares dialogues of a split before and after a perturbation.

  Values of categorical slots are left out, which other words may express.

  Args:
    schema: of the split.
    is_cut: whether the dialogues end with a user turn that has another goal, and that alone is
      compared.
  """

  def __init__(self, schema: Schema, is_cut: bool = False):
    self._schema, self._is_cut = schema, is_cut
    self._violations: Callable[[Dialogue], list[Violation]] = annotation_violations(schema)

  def check(
    self, data: Mapping[str, Any], original: Callable[[], Mapping[str, Any]], where: str
  ) -> None:
    """Raises SgdxError, with turn, slot and value, if a perturbed dialogue breaks the contract.

    Args:
      data: decoded.
      original: returns the dialogue before. Most dialogues are flawless, and need not be compared.
      where: file and id.
    """
    after = self._condition(data)
    if not after.is_flawless:
      _compare(self._condition(original()), after, where)

  def check_accepted(
    self, before: Mapping[Place, Sequence[str]], after: Mapping[Place, Sequence[str]], where: str
  ) -> None:
    """Raises SgdxError if values that a state accepts for a slot are no longer one value.

    Args:
      before, after: see `accepted_values`.
      where: file and id of the dialogue.
    """
    for place, new in after.items():
      old = before.get(place, new)
      if old == new:
        continue
      if stayed := set(old).intersection(new):
        raise _breaks(where, place, f"{min(stayed)!r} stayed, of {', '.join(old)}",
                      "all values that the state accepts for a slot change, or none")  # fmt: skip
      times = [time for value in new if (time := clock_time(value))]
      if len(set(times)) > 1 and len(set(filter(None, map(clock_time, old)))) == 1:
        raise _breaks(where, place, f"{', '.join(old)} became {', '.join(new)}",
                      "forms of one time become forms of one time")  # fmt: skip

  def _condition(self, data: Mapping[str, Any]) -> _Condition:
    first = len(data["turns"]) - 1 if self._is_cut else 0
    values: dict[Place, dict[str, Said]] = {}
    for place, said in said_state_values(data, self._schema, first).items():
      if place.slot in self._schema[place.service].noncategorical_slots:
        values.setdefault(place[:3], {})[place.value] = said
    violations = self._violations(Dialogue.from_json(data))
    return _Condition(values, [each for each in violations if each.turn >= first])


def _compare(before: _Condition, after: _Condition, where: str) -> None:
  for place, new in after.values.items():
    if value := _unsaid(before.values.get(place, {}), new):
      raise _breaks(where, place, f"{value!r} is said nowhere up to this turn",
                    "every gold value that was said before is said after")  # fmt: skip
  number_before = collections.Counter((each.turn, each.rule) for each in before.violations)
  for violation in after.violations:
    number_before[violation.turn, violation.rule] -= 1
    if number_before[violation.turn, violation.rule] < 0:
      rule = {**ERRORS, **WARNINGS}.get(violation.rule, "annotation in the form of SGD's")
      raise _broken(
        f"{where}, turn {violation.turn}: {violation.found or 'it differs'}",
        f"{rule} (rule {violation.rule}), as before",
      )


def _unsaid(old: Mapping[str, Said], new: Mapping[str, Said]) -> str | None:
  """Returns a value that is not said, if fewer are said than before; a goal's were all said."""
  for level in (0, 1):  # in words, literally
    allowed = sum(not said[level] for said in old.values())
    unsaid = [value for value, said in new.items() if not said[level]]
    if len(unsaid) > allowed:
      return next((value for value in unsaid if value not in old or old[value][level]), unsaid[0])
  return None


def _breaks(where: str, place: Place, what: str, expected: str) -> SgdxError:
  turn, service, slot = place
  return _broken(f"{where}, turn {turn}: slot {slot!r} of {service}: {what}", expected)


def _broken(found: str, expected: str) -> SgdxError:
  return SgdxError(
    f"the perturbed set would break its contract: {found}",
    expected=expected,
    available="nothing was written",
    fix="correct the spans and values of the original there (`sgdx data verify` checks them), use "
    "another --seed, or report it with this dialogue",
  )
