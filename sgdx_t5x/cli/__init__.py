"""The command `sgdx`: a file per command with `add_parser`, `run` and, as its docstring, the help.

It imports next to nothing, so that interrupts are handled before the commands are imported.
"""

from collections.abc import Sequence

from sgdx_t5x.cli.interrupts import ended, termination_raises


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command line.

  Returns:
    The exit code: 0 success, 1 failure, 2 wrong usage, 130 after Ctrl-C, 143 after SIGTERM.
  """
  try:
    with termination_raises():
      from sgdx_t5x.cli.commands import run

      return run(argv)
  except KeyboardInterrupt as stop:
    return ended(stop, "no partial output is left")
