"""The command `sgdx`: one file per subcommand, each with `add_parser` and `run`.

It imports next to nothing, so that interrupts are handled before the commands are imported.
"""

import sys

from sgdx_t5x.cli.interrupts import Terminated, interrupts

TYPE_CHECKING = False  # like typing's, which takes longer to import than all of this
if TYPE_CHECKING:
  from collections.abc import Sequence


def main(argv: "Sequence[str] | None" = None) -> int:
  """Runs the command line.

  Returns:
    The exit code: 0 success, 1 failure, 2 wrong usage, 130 after Ctrl-C, 143 after SIGTERM.
  """
  try:
    with interrupts():
      from sgdx_t5x.cli.commands import run

      return run(argv)
  except Terminated:
    print("sgdx: terminated; no partial output is left", file=sys.stderr)
    return 143
  except KeyboardInterrupt:
    print("sgdx: interrupted; no partial output is left", file=sys.stderr)
    return 130
