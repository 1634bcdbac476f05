"""What annexes add to the core, read from the tables in each annex's `register.py`.

An annex is a folder in `papers/`, or a package of its own beside the core's, with a `register.py`.
The core names none of them: it lists the folders. A table is a dictionary of that module; what it
lacks counts as empty. Values are "module:attribute", imported when they are used:

  COMMANDS         name of a command of `sgdx` -> its module, which has `add_parser`
  SUMMARIES        name of a command, or "command verb" -> a line for `sgdx --help`
  FORMATS          name of a prompt format -> its class
  TRACKERS         format of a checkpoint's task -> function that loads the tracker
  PERTURBATIONS    kind of perturbation of a corpus' dialogues -> what it does
  COUNTERFACTUALS  those of them that give users other goals -> kind of their control
  RECORDS          name of records, without "sample_" -> (command that writes their corpus, gin
                   file, {} for the folder of the sample's; if it names no task: task or mixture,
                   module), for errors and `sgdx data prepare`, with environment variables
                   NAME=VALUE for the full corpus
  REWORDINGS       name of a variant -> (command that writes its schemas, subfolder of --out)
  USUAL_FIELDS     field of a signature -> its value in scores that compare with those without it
  OTHER_ROWS       key of a row of JSONL that is no prediction -> (what the row is, what scores it)
  OTHER_SCHEMAS    key of JSON that is no schema -> (what the file is, what makes a schema of it)
  SCORE_TABLES     key of a score report -> module: `tables`, `notes`, `problem`
  REPORT_SECTIONS  name -> module with `sections(runs)`, see `report.sections`
  REPORT_OPTIONS   name -> module with `add_options(parser)`, for `sgdx report`
"""

import functools
import importlib
import pathlib
import types
from typing import Any

_ROOT = pathlib.Path(__file__).parent


def table(name: str) -> dict[str, Any]:
  """Returns the entries of one table in all annexes, in alphabetical order of the annexes.

  Args:
    name: of the table, as listed above.
  """
  entries: dict[str, Any] = {}
  for register in _registers():
    entries |= getattr(register, name, {})
  return entries


def load(reference: str) -> Any:
  """Imports what a table names. Args: reference, "module" or "module:attribute"."""
  module, _, attribute = reference.partition(":")
  imported = importlib.import_module(module)
  return getattr(imported, attribute) if attribute else imported


@functools.cache
def _registers() -> tuple[types.ModuleType, ...]:
  """The `register` modules of all annexes; they import nothing themselves."""
  registers = []
  # Sorted, as file systems list folders in any order.
  for file in sorted([*_ROOT.glob("papers/*/register.py"), *_ROOT.glob("*/register.py")]):
    names = file.relative_to(_ROOT.parent).with_suffix("").parts
    registers.append(importlib.import_module(".".join(names)))
  return tuple(registers)
