"""What a perturbation must not break, checked for each dialogue before anything is written.

A gold value that was said is still said, and the annotation rules of `sgdx data verify` hold
wherever they did.
"""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.annotation import Violation, annotation_violations
from sgdx_t5x.corpus.annotation_rules import ERRORS, WARNINGS
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.checkdst.answerable import SAID, Said, said_state_values
from sgdx_t5x.papers.checkdst.entities import free_slots
from sgdx_t5x.papers.checkdst.values import Place


class Contract:
  """Compares dialogues of a split before and after a perturbation.

  Values of categorical slots are left out, which other words may express.

  Args:
    schema: of the split.
    is_cut: whether the dialogues end with a user turn that has another goal, and that alone is
      compared.
  """

  def __init__(self, schema: Schema, is_cut: bool = False):
    self._free, self._is_cut = free_slots(schema), is_cut
    self._violations = annotation_violations(schema)

  def check(self, data: Mapping[str, Any], original: Mapping[str, Any], file: str) -> None:
    """Raises SgdxError, with turn, slot and value, if a perturbed dialogue breaks the contract.

    Args:
      data: decoded.
      original: the dialogue before.
      file: where it is, for the error.
    """
    values, violations = self._condition(data)
    all_said = all(said == SAID for by_value in values.values() for said in by_value.values())
    if all_said and not violations:
      return  # as most dialogues
    location = f"{file}, dialogue {data['dialogue_id']}"
    old_values, old_violations = self._condition(original)
    for (turn, service, slot), new_wordings in values.items():
      if value := _unsaid(old_values.get((turn, service, slot), {}), new_wordings):
        raise _broken(
          f"{location}, turn {turn}: slot {slot!r} of {service}: {value!r} is said nowhere so far",
          "every gold value that was said before is said after",
        )
    number_before = collections.Counter((v.turn, v.rule) for v in old_violations)
    for violation in violations:
      number_before[violation.turn, violation.rule] -= 1
      if number_before[violation.turn, violation.rule] < 0:
        rule = {**ERRORS, **WARNINGS}.get(violation.rule, "annotation in the form of SGD's")
        raise _broken(
          f"{location}, turn {violation.turn}: {violation.found or 'it differs'}",
          f"{rule} (rule {violation.rule}), as before",
        )

  def _condition(
    self, data: Mapping[str, Any]
  ) -> tuple[Mapping[Place, Mapping[str, Said]], Sequence[Violation]]:
    """Returns the accepted values of each slot, how they are said, and the broken rules."""
    first_turn = len(data["turns"]) - 1 if self._is_cut else 0
    values: dict[Place, dict[str, Said]] = {}
    for place, wording in said_state_values(data, self._free, first_turn).items():
      if place.slot in self._free.get(place.service, ()):
        values.setdefault(place[:3], {})[place.value] = wording
    violations = self._violations(Dialogue.from_json(data))
    return values, [violation for violation in violations if violation.turn >= first_turn]


def _unsaid(original: Mapping[str, Said], perturbed: Mapping[str, Said]) -> str | None:
  """Returns a value that is not said, if fewer are said than before; a goal's were all said."""
  for level in (0, 1):  # in words, literally
    allowed = sum(not wording[level] for wording in original.values())
    unsaid = [value for value, wording in perturbed.items() if not wording[level]]
    if len(unsaid) > allowed:
      return next((v for v in unsaid if v not in original or original[v][level]), unsaid[0])
  return None


def _broken(problem: str, expected: str) -> SgdxError:
  return SgdxError(
    f"the perturbed set breaks its contract: {problem}",
    expected=expected,
    fix="correct the spans and values of the original there (`sgdx data verify` checks them), use "
    "another --seed, or report it with this dialogue",
  )
