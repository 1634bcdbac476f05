"""`sgdx tools frozen`: the requests that all language models of the table are asked.

examples:
  sgdx tools frozen --corpus sgd.zip --out requests.jsonl
  sgdx tools run requests.jsonl --endpoint http://localhost:8000/v1 \\
    --model NAME --param temperature=0 --out answers.jsonl --corpus sgd.zip

315 frames, 15 of each service of SGD's test split, in six wordings: 1,890
requests, whose SHA-256 is compared with that of the frozen set. --frames N
takes the first N frames; 21 have one of each service.

docs/tools/language-models.md has the table.
"""

import argparse
import sys
from typing import Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.options import add_command, add_corpus
from sgdx_t5x.cli.paths import add_output
from sgdx_t5x.errors import UsageError


def add_parser(verbs: Any) -> None:
  """Adds the subcommand to those of `sgdx tools`."""
  parser = add_command(verbs, "frozen", __doc__)
  add_corpus(parser)
  add_output(parser, "--out", required=True, metavar="FILE", help="JSONL to write")
  parser.add_argument("--frames", type=int, metavar="N", help="only the first N frames")
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Writes the requests. Returns 0. Raises SgdxError: another corpus, or a file not writable."""
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.files.writing import atomic_write
  from sgdx_t5x.tools.frozen import frozen_requests, frozen_set

  frames = frozen_set().frames
  number = len(frames) if args.frames is None else args.frames
  if not 1 <= number <= len(frames):
    raise UsageError(
      f"--frames {number}", expected=f"1 to {len(frames)}", fix="omit it for all frames"
    )
  text = frozen_requests(open_corpus(args.corpus), frames[:number])
  with atomic_write(args.out, "--out") as file:
    file.write(text)
  output.say_written(args.out)
  command = ["sgdx", "tools", "run", args.out, "--endpoint", "URL", "--model", "NAME"]
  command += ["--param", "temperature=0", "--out", "answers.jsonl", "--corpus", args.corpus]
  print(output.folded_command(command), file=sys.stderr)
  return 0
