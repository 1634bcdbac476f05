"""The command `sgdx`: one file per subcommand, each with `add_parser` and `run`."""

import argparse
import os
import sys
from collections.abc import Sequence

from sgdx_t5x.cli import (
  backtranslate,
  compose,
  data,
  diff,
  ls,
  prompts,
  report,
  score,
  simulate,
  stats,
  weights,
)
from sgdx_t5x.errors import SgdxError, with_document_paths
from sgdx_t5x.signature import package_version

_COMMANDS = (
  data,
  ls,
  prompts,
  score,
  diff,
  report,
  stats,
  backtranslate,
  compose,
  simulate,
  weights,
)
_EPILOG = """\
examples:
  sgdx data prepare --corpus sample --data-dir data
  sgdx data verify --corpus dstc8-schema-guided-dialogue-master.zip
  sgdx score --corpus sample --predictions all=runs/quickstart/eval/inference_eval
  sgdx diff scores_a.json scores_b.json
  sgdx report scores_a.json scores_b.json --out report
  sgdx prompts --corpus sample --variant v3 --out prompts.jsonl
  sgdx backtranslate --corpus sgd.zip --provider table --out back_translations
  sgdx stats --corpus dstc8-schema-guided-dialogue-master.zip
  sgdx simulate --init schema.json --out start
  sgdx weights import --hf flan-t5-base --out weights/flan-t5-base

exit codes: 0 done, 1 failed, 2 wrong usage. `sgdx COMMAND --help` has more examples.
"""


class _Parser(argparse.ArgumentParser):
  """Names files of documentation by where they are; its subcommands' parsers do, too."""

  def format_help(self) -> str:
    return with_document_paths(super().format_help())


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the command line. Returns the exit code: 0 done, 1 failed, 2 wrong usage."""
  parser = _Parser(
    prog="sgdx",
    description="Robustness of schema-guided dialogue state tracking: data, scores, weights.",
    epilog=_EPILOG,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument("--version", action="version", version=f"sgdx_t5x {package_version()}")
  parser.add_argument("--debug", action="store_true", help="show tracebacks and library messages")
  subparsers = parser.add_subparsers(metavar="COMMAND")
  for command in _COMMANDS:
    command.add_parser(subparsers)
  args = parser.parse_args(argv)
  if not hasattr(args, "run"):
    parser.print_help()
    return 0
  if not args.debug:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  try:
    return args.run(args)
  except SgdxError as e:
    if args.debug:
      raise
    print(f"sgdx: {e}", file=sys.stderr)
    return e.exit_code
  except BrokenPipeError:  # `sgdx ... | head`
    sys.stderr.close()
    return 0
  except OSError as e:
    if args.debug:
      raise
    lines = (
      f"{e.filename or 'a file'}: {e.strerror or e}",
      "  expected:  a file that can be read, or written",
      "  fix:       check its name and its permissions; --debug shows where it was needed",
    )
    print("sgdx: " + "\n".join(lines), file=sys.stderr)
    return 1
  except KeyboardInterrupt:
    print("sgdx: interrupted; nothing half-written is left", file=sys.stderr)
    return 130
