"""`sgdx data demos`: demonstrations of services for "Show, Don't Tell" prompts."""

import argparse
import collections
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.options import add_command, add_corpus, add_group, check_least
from sgdx_t5x.cli.paths import add_input, add_output, corpus_path
from sgdx_t5x.cli.progress import progress, track
from sgdx_t5x.corpus.variants import SPLITS
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.tables import Table

if TYPE_CHECKING:
  from sgdx_t5x.corpus.corpus import Corpus
  from sgdx_t5x.prompts.sdt.demonstrations import Demonstration, Demonstrations

_EPILOG = """\
examples:
  From a corpus's own dialogues, for the services of train:
    sgdx data demos make --corpus sgd.zip --split train --out demos.jsonl

  For all services; scores are then marked LEAK for those of test:
    sgdx data demos make --corpus sgd.zip --split train dev test --out all.jsonl

  Google's, from your copy of sdt_prompts.py (they are not part of sgdx_t5x):
    sgdx data demos import --from sdt_prompts.py --out google.jsonl

  What a file contains, and how many of its utterances occur in each split:
    sgdx data demos check --corpus sgd.zip --demos google.jsonl

  sgdx prompts --corpus sgd.zip --variant v3 --out prompts.jsonl \\
    --prompt-style format=sdt demos=all.jsonl

docs/demonstrations.md describes the file, and how to write your own.
"""


def add_parser(subparsers: Any) -> None:
  """Adds `demos import`, `demos make` and `demos check`."""
  summary = "demonstrations for Show, Don't Tell prompts"
  verbs = add_group(subparsers, "demos", __doc__, _EPILOG, summary)
  _add_import(verbs)
  _add_make(verbs)
  _add_check(verbs)


def _add_import(verbs: Any) -> None:
  doc = "`sgdx data demos import`: reads Google's demonstrations, without running their file."
  command = add_command(verbs, "import", doc, _EPILOG, "read Google's demonstrations")
  text = "your copy of Google's sdt_prompts.py"
  settings: dict[str, Any] = {"required": True, "metavar": "FILE"}
  add_input(command, "--from", dest="source", help=text, **settings)
  add_output(command, "--out", help="JSONL to write", **settings)
  command.set_defaults(run=_import)


def _add_make(verbs: Any) -> None:
  doc = "`sgdx data demos make`: makes demonstrations from a corpus' dialogues."
  command = add_command(verbs, "make", doc, _EPILOG, "make demonstrations from a corpus")
  add_corpus(command)
  command.add_argument(
    "--split",
    nargs="+",
    default=["train"],
    choices=SPLITS,
    help="splits whose dialogues to use; each service uses the first split that has it "
    "(default: train)",
  )
  command.add_argument(
    "--per-service",
    type=int,
    default=5,
    metavar="N",
    help="at most N demonstrations per service (default: 5)",
  )
  add_output(command, "--out", required=True, metavar="FILE", help="JSONL to write")
  command.set_defaults(run=_make)


def _add_check(verbs: Any) -> None:
  doc = "`sgdx data demos check`: checks demonstrations against a corpus."
  command = add_command(verbs, "check", doc, _EPILOG, "check demonstrations against a corpus")
  add_corpus(command)
  add_input(
    command,
    "--demos",
    required=True,
    metavar="FILE",
    help='JSONL of demonstrations, or "sample"',
    path=corpus_path,
  )
  output.add_format(command)
  command.set_defaults(run=_check)


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
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.prompts.sdt.make import make_demonstrations

  check_least(args, "per-service", 1, "omit --per-service to use the default, 5")
  corpus = open_corpus(args.corpus)
  made: dict[str, list[Demonstration]] = {}
  for split in args.split:
    schema = corpus.schema(split)
    wanted = [name for name in schema.names if name not in made]
    total = corpus.expected_dialogues(split)
    dialogues = track(corpus.dialogues(split), f"reading {split}", "dialogues", total)
    source = f"{corpus.name}-{split}"
    made |= make_demonstrations(dialogues, schema, args.per_service, source, wanted)
  if not made:
    raise SgdxError(
      f"{corpus.origin}: no dialogues in {', '.join(args.split)}",
      expected="dialogues to make demonstrations from",
      available=corpus.file_counts(),
      fix="choose a split with dialogues",
    )
  _write([demo for demos in made.values() for demo in demos], args.out)
  for split in corpus.splits:
    if missing := [name for name in corpus.schema(split).names if name not in made]:
      print(f"         none for {', '.join(missing)} of {split}", file=sys.stderr)
  return 0


def _write(demos: "Sequence[Demonstration]", path: str) -> None:
  from sgdx_t5x.files.writing import atomic_write
  from sgdx_t5x.prompts.sdt.demonstrations import demonstrations_text

  text = demonstrations_text(demos)
  old = pathlib.Path(path)
  if old.is_file() and old.stat().st_size and _content(old) != text.encode():
    raise SgdxError(
      f"--out {path} already contains other demonstrations, perhaps your own",
      expected="a new file",
      fix="name another file, or remove this one",
    )
  with atomic_write(path, "--out") as file:
    file.write(text)
  services = len({demo.service for demo in demos})
  print(f"written: {path}: {len(demos)} demonstrations of {services} services", file=sys.stderr)


def _content(path: pathlib.Path) -> bytes:
  from sgdx_t5x.files.reading import opened

  with opened(path, "a file of demonstrations") as file:
    return file.read()


def _check(args: argparse.Namespace) -> int:
  """Checks, and counts utterances per split. Returns 0. Raises SgdxError for a mismatch."""
  from sgdx_t5x.corpus.opening import open_corpus
  from sgdx_t5x.prompts.sdt.demonstrations import check_services, load_demonstrations

  demos, corpus = load_demonstrations(args.demos), open_corpus(args.corpus)
  check_services(demos, [corpus.schema(split) for split in corpus.splits])
  for split in corpus.splits:
    for service in corpus.schema(split):
      if service.name in demos.by_service:
        demos.of(service)
  with progress("splits") as update:
    found = {}
    for number, split in enumerate(corpus.splits):
      update(f"reading {split}", number, len(corpus.splits))
      found[split] = _split_facts(demos, corpus, split)
  report = {"source": demos.source, "crc": demos.crc, "splits": found}
  title = f"demonstrations of {args.demos} ({demos.source}:{demos.crc})"
  keys = ("services", "demonstrations", "utterances", "standing_in_the_split")
  rows = tuple((split, *(str(facts[key]) for key in keys)) for split, facts in found.items())
  output.show(
    args.format,
    [Table(title, ("", "services", "demos", "utterances", "in its dialogues"), rows)],
    report,
    notes=("utterances: distinct ones with at least seven words", *_missing(found)),
  )
  return 0


def _split_facts(demos: "Demonstrations", corpus: "Corpus", split: str) -> dict[str, Any]:
  """Counts a split's services with demonstrations, and the utterances that occur in it."""
  from sgdx_t5x.prompts.sdt.provenance import count_leak, said_in

  schema = corpus.schema(split)
  shown = [demo for name in schema.names for demo in demos.by_service.get(name, ())]
  leak = count_leak(shown, frozenset(said_in(corpus, split)))
  counts = collections.Counter(demo.service for demo in shown)
  return {
    "services": len(counts),
    "missing": [name for name in schema.names if name not in counts],
    "demonstrations": len(shown),
    "utterances": leak.of,
    "standing_in_the_split": leak.found,
  }


def _missing(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
  return [
    f"{split}: none for {', '.join(facts['missing'])}"
    for split, facts in found.items()
    if facts["missing"]
  ]
