"""Cases of a suite: what users say, and the calls that are due."""

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import Any

from sgdx_t5x.tools.suite.toolset import ToolSet

CASES = "cases.jsonl"  # in a suite's folder
ASK = "ask"


@dataclasses.dataclass(frozen=True)
class Call:
  """A call of a tool, in the words of the base."""

  name: str
  arguments: Mapping[str, Any]


# Calls, in any order; () for none; "ask" where a required value is missing, so that none is due.
Expected = tuple[Call, ...] | str


@dataclasses.dataclass(frozen=True)
class Case:
  """A request and what is due.

  Attributes:
    id: unique in a suite.
    messages: of chat completions, up to the one to answer; may have calls and their results.
    expect: the calls that are due; see `Expected`.
    accept: further answers that are right.
    tags: of its author.
    reviewed: who has read it; None: nobody, a candidate.
  """

  id: str
  messages: tuple[Mapping[str, Any], ...]
  expect: Expected
  accept: tuple[Expected, ...] = ()
  tags: tuple[str, ...] = ()
  reviewed: str | None = None


def read_cases(path: str | pathlib.Path, toolset: ToolSet) -> list[Case]:
  """Returns the cases of a file, checked against the tools."""
  raise NotImplementedError
