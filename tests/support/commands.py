"""Runs `sgdx`, in this process or in one of its own, and checks the errors it prints."""

import shlex
import subprocess
import sys
from typing import Any

from sgdx_t5x.cli import main

SGDX = (sys.executable, "-m", "sgdx_t5x.cli")


def sgdx(*args: Any) -> int:
  """Runs the command in this process; returns the exit code, whichever way `main` gives it."""
  try:
    return main([str(arg) for arg in args])
  except SystemExit as e:
    return e.code


def sgdx_process(*args: Any, **kwargs: Any) -> subprocess.CompletedProcess[str]:
  """Runs the command in a process of its own. Args: kwargs, of `subprocess.run`."""
  return _run([*SGDX, *map(str, args)], kwargs)


def python_code(code: str, *args: Any, **kwargs: Any) -> subprocess.CompletedProcess[str]:
  """Runs code in a Python of its own. Args: args, in sys.argv; kwargs, of `subprocess.run`."""
  return _run([sys.executable, "-c", code, *map(str, args)], kwargs)


def _run(command: list[str], kwargs: dict[str, Any]) -> subprocess.CompletedProcess[str]:
  return subprocess.run(command, **{"capture_output": True, "text": True, "check": False, **kwargs})


def next_command(printed: str) -> list[str]:
  """Returns the words of the command that a command says is next, which may be folded."""
  return shlex.split(printed.partition("next: ")[2].replace("\\\n", " ").split("\n")[0])


def assert_four_parts(error: str, *words: str) -> None:
  """Asserts that an error says these words, what was expected and how to fix it."""
  for word in (*words, "expected:", "fix:"):
    assert word in error
  assert "Traceback" not in error
