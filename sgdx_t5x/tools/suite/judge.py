"""Strict judgement of a model's calls: the tool first, then each argument."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from sgdx_t5x.tools.suite.cases import Case
from sgdx_t5x.tools.suite.rewording import Rewording
from sgdx_t5x.tools.suite.toolset import ToolSet


@dataclasses.dataclass(frozen=True)
class Judgement:
  """Whether an answer is right.

  Attributes:
    right: tools and arguments.
    right_tool: exactly the tools that are due are called, or none if none is.
    right_arguments: and their arguments are valid, and those that are due; False with a wrong tool.
    reason: kind of the first fault: "no call", "call", "unknown tool", "wrong tool", "malformed",
      "mistyped", "missing", "invented", "format", "invalid", "wrong value"; "" if right.
    detail: what is wrong, in the words that were shown where possible.
    invented: arguments that tools do not have and allow all the same.
  """

  right: bool
  right_tool: bool
  right_arguments: bool
  reason: str = ""
  detail: str = ""
  invented: int = 0


def judge(
  calls: Sequence[Any] | None, case: Case, base: ToolSet, shown: ToolSet, rewording: Rewording
) -> Judgement:
  """Judges the calls of an answer.

  Args:
    calls: of `messages.Answer`: [{"name", "arguments": object or its JSON text}]; None, and an item
      None, are malformed.
    case: what is due, in the words of the base.
    base: the tools as they are.
    shown: the tools that the model saw.
    rewording: the words in which it saw them; `rewording.BASE` if they are the base.
  """
  raise NotImplementedError
