"""`sgdx data demos`: demonstrations of services for "Show, Don't Tell" prompts.

examples:
  From a corpus's own dialogues, for the services of train:
    sgdx data demos make --corpus sgd.zip --split train --out demos.jsonl

  For all services; scores are then marked LEAK for those of test:
    sgdx data demos make --corpus sgd.zip --split train dev test --out all.jsonl

  Google's, from your copy of sdt_prompts.py (they are not part of sgdx_t5x):
    sgdx data demos import --from sdt_prompts.py --out google.jsonl

  sgdx prompts --corpus sgd.zip --variant v3 --out prompts.jsonl \\
    --prompt-style format=sdt demos=all.jsonl

docs/demonstrations.md describes the file, and how to write your own.
"""

import argparse
import itertools
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli.options import add_command, add_corpus, add_group
from sgdx_t5x.cli.paths import add_input, add_output
from sgdx_t5x.errors import SgdxError

if TYPE_CHECKING:
  from sgdx_t5x.prompts.sdt.demonstrations import Demonstration

_PER_SERVICE = 5
_EXAMPLES = __doc__.partition("\n\n")[2]  # which the help of both verbs shows, too


def add_verb(data_verbs: Any) -> None:
  """Adds `demos`, with `import` and `make`, to `sgdx data`."""
  summary = "demonstrations for Show, Don't Tell prompts"
  verbs = add_group(data_verbs, "demos", __doc__, help=summary)

  doc = "`sgdx data demos import`: reads Google's demonstrations, without running their file."
  command = add_command(verbs, "import", doc, _EXAMPLES, "read Google's demonstrations")
  text = "your copy of Google's sdt_prompts.py"
  add_input(command, "--from", dest="source", help=text, required=True, metavar="FILE")
  add_output(command, "--out", help="JSONL to write", required=True, metavar="FILE")
  command.set_defaults(run=_import)

  doc = "`sgdx data demos make`: makes demonstrations from a corpus' dialogues."
  command = add_command(verbs, "make", doc, _EXAMPLES, "make demonstrations from a corpus")
  add_corpus(command)
  text = (
    "splits whose dialogues to use; each service uses the first split that has it (default: train)"
  )
  command.add_argument(
    "--split", nargs="+", default=["train"], choices=("train", "dev", "test"), help=text
  )
  add_output(command, "--out", required=True, metavar="FILE", help="JSONL to write")
  command.set_defaults(run=_make)


def _import(args: argparse.Namespace) -> int:
  """Writes Google's demonstrations as JSONL. Returns 0. Raises SgdxError for another file."""
  from sgdx_t5x.files.reading import read_input
  from sgdx_t5x.prompts.sdt.google_prompts import read_google_prompts

  text = read_input(args.source, "Google's sdt_prompts.py")
  demos = read_google_prompts(text, args.source)
  _write(demos, args.out)
  print("         their texts are from Google and SGD: docs/demonstrations.md", file=sys.stderr)
  return 0


def _make(args: argparse.Namespace) -> int:
  """Writes demonstrations from dialogues. Returns 0. Raises SgdxError if there are none."""
  from sgdx_t5x.cli.progress import track
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.prompts.sdt.make import make_demonstrations

  corpus = open_corpus(args.corpus)
  by_service: dict[str, list[Demonstration]] = {}
  for split in args.split:
    schema = corpus.schema(split)
    # A service keeps the demonstrations of an earlier split: those of train are no leak.
    missing = [name for name in schema.names if name not in by_service]
    total = corpus.expected_dialogues(split)
    dialogues = track(corpus.dialogues(split), f"reading {split}", "dialogues", total)
    source = f"{corpus.name}-{split}"
    by_service |= make_demonstrations(dialogues, schema, _PER_SERVICE, source, missing)
  if not by_service:
    raise SgdxError(
      f"{corpus.origin}: no dialogues in {', '.join(args.split)}",
      expected="dialogues to make demonstrations from",
      available=corpus.file_counts(),
      fix="choose a split with dialogues",
    )
  _write(list(itertools.chain.from_iterable(by_service.values())), args.out)
  for split in corpus.splits:
    if missing := [name for name in corpus.schema(split).names if name not in by_service]:
      print(f"         none for {', '.join(missing)} of {split}", file=sys.stderr)
  return 0


def _write(demos: "Sequence[Demonstration]", path: str) -> None:
  from sgdx_t5x.files.reading import read_input
  from sgdx_t5x.files.writing import atomic_write
  from sgdx_t5x.prompts.sdt.demonstrations import demonstrations_text

  text = demonstrations_text(demos)
  # People edit demonstrations: only a file that would not change is replaced.
  earlier = read_input(path, "a file of demonstrations") if os.path.isfile(path) else b""
  if earlier not in (b"", text.encode()):
    raise SgdxError(
      f"--out {path} already contains other demonstrations, perhaps your own",
      expected="a new file",
      fix="name another file, or remove this one",
    )
  with atomic_write(path, "--out") as file:
    file.write(text)
  services = len({demo.service for demo in demos})
  print(f"written: {path}: {len(demos)} demonstrations of {services} services", file=sys.stderr)
