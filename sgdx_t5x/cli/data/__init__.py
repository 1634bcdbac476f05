"""`sgdx data`: check a corpus, write it as records for training, or as files of its variants."""

import argparse
import contextlib
import dataclasses
import logging
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.cli import output
from sgdx_t5x.cli.data import export, stats, vocabulary
from sgdx_t5x.data.annotation import ERRORS, REMARKS, Remark, deep_check
from sgdx_t5x.data.corpus import SAMPLE, Corpus, check_schemas, count, open_corpus
from sgdx_t5x.data.subset import Subset
from sgdx_t5x.errors import UsageError
from sgdx_t5x.tables import Table
from sgdx_t5x.tables import count as number

_FORMAT = "sgdx-data/1"  # of `--format json`; raise the number when a reader must change

_EPILOG = """\
examples:
  sgdx data prepare --sample --data-dir data
  sgdx data prepare --archive dstc8-schema-guided-dialogue-master.zip --data-dir data
  sgdx data prepare --archive FILE --dialogues dev=100 test=300 --data-dir small
  sgdx data prepare --download --data-dir data     # fetches the official archive, 37 MB
  sgdx data verify --archive unpacked/folder
  sgdx data stats --corpus sample
  sgdx data export --corpus unpacked/folder --variant v3 --split test --out sgdx

Records lie in DIR/sgd/...; give the same DIR to t5x as --tfds_data_dir (default: TFDS_DATA_DIR,
or ~/tensorflow_datasets).
"""


def add_parser(subparsers: Any) -> None:
  """Adds `data prepare`, `verify`, `export`, `stats` and `vocabulary`."""
  text = {"epilog": _EPILOG, "formatter_class": argparse.RawDescriptionHelpFormatter}
  parser = subparsers.add_parser(
    "data", help="check a corpus, write it as records or files", description=__doc__, **text
  )
  parser.set_defaults(run=lambda args: parser.print_help() or 0)
  verbs = parser.add_subparsers(metavar="VERB")

  prepare = verbs.add_parser("prepare", help="check a corpus and write its records", **text)
  where = prepare.add_mutually_exclusive_group(required=True)
  where.add_argument("--archive", metavar="FILE", help="the official archive (zip), or its folder")
  where.add_argument("--sample", action="store_true", help="the embedded sample corpus")
  where.add_argument("--download", action="store_true", help="fetch the official archive")
  prepare.add_argument("--data-dir", metavar="DIR", help="where records go; see below")
  prepare.add_argument(
    "--dialogues",
    nargs="+",
    default=[],
    metavar="SPLIT=N",
    help="of these splits, N dialogues drawn at random (marked PARTIAL)",
  )
  prepare.add_argument("--seed", type=int, default=0, help="of --dialogues (default: 0)")
  prepare.add_argument("--overwrite", action="store_true", help="replace records of other data")
  output.add_format(prepare)
  prepare.set_defaults(run=_prepare)

  verify = verbs.add_parser("verify", help="read everything, report what is there", **text)
  where = verify.add_mutually_exclusive_group(required=True)
  where.add_argument("--archive", metavar="FILE", help="the official archive (zip), or its folder")
  where.add_argument("--sample", action="store_true", help="the embedded sample corpus")
  output.add_format(verify)
  verify.set_defaults(run=_verify)

  export.add_verb(verbs)
  stats.add_verb(verbs)
  vocabulary.add_verb(verbs)


def _prepare(args: argparse.Namespace) -> int:
  corpus = None if args.download else open_corpus(SAMPLE if args.sample else args.archive)
  if args.dialogues:
    corpus = _subset(corpus, args.dialogues, args.seed)
  if corpus is not None:
    check_schemas(corpus)  # before TensorFlow is loaded and anything is written
  with native_stderr_hidden(args.debug):
    import tensorflow  # noqa: F401  # takes seconds, and talks; TFDS would import it later

    from sgdx_t5x.records import prepare
  data_dir = args.data_dir or prepare.default_data_dir()
  if args.download:
    print(f"fetching {prepare.ARCHIVE_URL}", file=sys.stderr, flush=True)
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # it warns at each of its retries
  progress = _Progress()
  builder = prepare.prepare(corpus, data_dir, overwrite=args.overwrite, on_dialogue=progress)
  progress.done()
  rows = prepare.summary(builder)
  metadata = builder.info.metadata
  report = _report(metadata["corpus"], metadata["checksum"], metadata["schemas"], rows)
  output.show(
    args.format,
    [_splits_table(rows, metadata["corpus"])],
    {**report, "records": os.fspath(builder.data_dir)},
    notes=(
      f"schema versions: {', '.join(metadata['schemas'])}",
      f"corpus {metadata['corpus']}, checksum {metadata['checksum']}",
      f"records: {builder.data_dir}",
      f"next: python -m t5x.train ... --tfds_data_dir={data_dir}",
    ),
  )
  return 0


def _subset(corpus: Corpus | None, items: Sequence[str], seed: int) -> Subset:
  if corpus is None:
    raise UsageError(
      "--dialogues with --download",
      expected="an archive to draw from",
      fix="prepare the download whole, or fetch the archive and give it: --archive FILE",
    )
  wanted = {}
  for item in items:
    split, _, number = item.partition("=")
    if not re.fullmatch(r"[0-9]+", number) or split not in corpus.splits or split in wanted:
      raise UsageError(
        f"--dialogues {item}",
        expected="SPLIT=N, each split once, N a number",
        available=f"splits {', '.join(corpus.splits)}",
        fix="for instance: --dialogues dev=100 test=300",
      )
    wanted[split] = int(number)
  return Subset(corpus, wanted, seed)


@contextlib.contextmanager
def native_stderr_hidden(debug: bool) -> Iterator[None]:
  """Hides what C++ code writes to stderr, which no Python setting silences, unless `debug`."""
  if debug:
    yield
    return
  sys.stderr.flush()
  saved = os.dup(2)
  with open(os.devnull, "w") as null:
    os.dup2(null.fileno(), 2)
  try:
    yield
  finally:
    os.dup2(saved, 2)
    os.close(saved)


def _verify(args: argparse.Namespace) -> int:
  corpus = open_corpus(SAMPLE if args.sample else args.archive)
  services = check_schemas(corpus)
  remarks: dict[str, dict[str, Remark]] = {split: {} for split in corpus.splits}
  rows = [_split_row(corpus, split, remarks[split]) for split in corpus.splits]
  rules = [rule for rule in REMARKS if any(rule in found for found in remarks.values())]
  report = _report(corpus.name, corpus.checksum(), services, rows)
  report["remarks"] = {
    rule: {s: dataclasses.asdict(found[rule]) for s, found in remarks.items() if rule in found}
    for rule in rules
  }
  output.show(
    args.format,
    [_splits_table(rows, corpus.name), *([_remarks_table(remarks, rules)] if rules else [])],
    report,
    notes=(
      *(f"{rule}: {REMARKS[rule]}" for rule in rules),
      f"annotation: {len(ERRORS)} rules kept (docs/dialogue-checks.md)",
      *(() if rules else (f"remarks: none of {len(REMARKS)}",)),
      f"schema versions, all aligned by position: {', '.join(services)}",
      f"corpus {corpus.name}, checksum {corpus.checksum()}",
    ),
  )
  return 0


def _split_row(corpus: Corpus, split: str, remarks: dict[str, Remark]) -> dict[str, Any]:
  found = count(corpus, split, deep_check(corpus.schema(split), remarks))
  return {
    "split": split,
    "dialogues": found.dialogues,
    "user_turns": found.user_turns,
    "frames": found.frames,
    "services": len(corpus.schema(split)),
    "complete": corpus.is_complete(split, found.dialogues),
  }


def _splits_table(rows: Sequence[Mapping[str, Any]], corpus: str) -> Table:
  columns = {
    key: key.replace("_", " ") for key in ("dialogues", "user_turns", "frames", "services")
  }
  cells = {row["split"]: [number(row[key]) for key in columns] for row in rows}
  partial = [row["split"] for row in rows if not row["complete"]]
  return export.splits_table(tuple(columns.values()), cells, partial, corpus == "sgd")


def _report(
  name: str, checksum: str, schemas: Iterable[str], rows: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
  """What `--format json` prints of a corpus."""
  return {
    "format": _FORMAT,
    "corpus": name,
    "checksum": checksum,
    "complete": all(row["complete"] for row in rows),
    "schemas": list(schemas),
    "splits": {row["split"]: {k: row[k] for k in row if k != "split"} for row in rows},
  }


def _remarks_table(remarks: Mapping[str, Mapping[str, Remark]], rules: Sequence[str]) -> Table:
  """How often each split breaks a rule that real SGD breaks too."""
  rows = []
  for rule in rules:
    numbers = (number(found[rule].count if rule in found else None) for found in remarks.values())
    first = next(f"{split} {r[rule].first}" for split, r in remarks.items() if rule in r)
    rows.append((rule, *numbers, first))
  title = "remarks: how often these rules are broken, as in real SGD too"
  return Table(title, ("", *remarks, "first"), tuple(rows))


class _Progress:
  """One line that grows on a terminal; elsewhere a line when a split is done."""

  def __init__(self):
    self._split, self._text, self._last = "", "", 0.0

  def __call__(self, split: str, counts: dict[str, int]) -> None:
    if split != self._split:
      self.done()
      self._split = split
    self._text = f"{split}: {counts['dialogues']:,} dialogues, {counts['frames']:,} frames"
    if sys.stderr.isatty() and time.monotonic() - self._last > 0.2:
      self._last = time.monotonic()
      print(f"\r{self._text} ", end="", file=sys.stderr, flush=True)

  def done(self) -> None:
    """Ends the line of the current split."""
    if self._text:
      start = "\r" if sys.stderr.isatty() else ""
      print(f"{start}{self._text} written", file=sys.stderr, flush=True)
    self._text = ""
