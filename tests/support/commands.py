"""Runs `sgdx`, in this process or in a child process, and checks the errors it prints."""

import shlex
import subprocess
import sys
from typing import Any

from sgdx_t5x.cli import main

SGDX = (sys.executable, "-m", "sgdx_t5x.cli")


def sgdx(*args: Any) -> int:
  """Runs the command in this process; returns the exit code, returned or raised by `main`."""
  try:
    return main([str(arg) for arg in args])
  except SystemExit as e:
    return e.code


def sgdx_process(*args: Any, **kwargs: Any) -> subprocess.CompletedProcess[str]:
  """Runs the command in a child process. Args: kwargs, those of `subprocess.run`."""
  return _run([*SGDX, *map(str, args)], kwargs)


def python_code(code: str, *args: Any, **kwargs: Any) -> subprocess.CompletedProcess[str]:
  """Runs code in a child Python. Args: args, for sys.argv; kwargs, those of `subprocess.run`."""
  return _run([sys.executable, "-c", code, *map(str, args)], kwargs)


def _run(command: list[str], kwargs: dict[str, Any]) -> subprocess.CompletedProcess[str]:
  return subprocess.run(command, **{"capture_output": True, "text": True, "check": False, **kwargs})


def next_command(printed: str) -> list[str]:
  """Returns the words of the command printed after "next: ", which may span several lines."""
  return shlex.split(printed.partition("next: ")[2].replace("\\\n", " ").split("\n")[0])


def assert_four_parts(error: str, *words: str) -> None:
  """Asserts that an error contains these words, what was expected and how to fix it."""
  for word in (*words, "expected:", "fix:"):
    assert word in error
  assert "Traceback" not in error
