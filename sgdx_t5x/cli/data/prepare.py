"""`sgdx data prepare`: checks a corpus and writes its records for training.

examples:
  sgdx data prepare --corpus sample --data-dir data
  sgdx data prepare --corpus sgd.zip --data-dir data  # the official archive
  sgdx data prepare --corpus sgd.zip --dialogues dev=100 test=300 --data-dir few
  sgdx data prepare --download --data-dir data  # fetches it, 37 MB

Records are written to DIR/sgd/...; give the same DIR to t5x as --tfds_data_dir
(default: TFDS_DATA_DIR, or ~/tensorflow_datasets). Records of a perturbed
corpus are put beside those of the original, under a name that its tasks know, if
there are any (sgdx ls tasks).
"""

import argparse
import contextlib
import os
import pathlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sgdx_t5x import annexes
from sgdx_t5x.cli.options import CORPUS, add_command
from sgdx_t5x.cli.paths import add_input, add_output, corpus_path
from sgdx_t5x.errors import UsageError, require

if TYPE_CHECKING:
  from sgdx_t5x.corpus.corpus import Corpus
  from sgdx_t5x.corpus.subset import Subset


def add_verb(verbs: Any) -> None:
  """Adds `prepare` to the verbs of `sgdx data`."""
  parser = add_command(verbs, "prepare", __doc__, help="check a corpus and write its records")
  source = parser.add_mutually_exclusive_group(required=True)
  add_input(source, "--corpus", help=CORPUS, path=corpus_path)
  source.add_argument("--download", action="store_true", help="fetch the official archive")
  text = "folder of the records, see below"
  add_output(parser, "--data-dir", metavar="DIR", help=text, folder=True)
  text = "use a random sample of N dialogues of a split, which is then marked PARTIAL"
  parser.add_argument("--dialogues", nargs="+", default=[], metavar="SPLIT=N", help=text)
  text = "name of the records, for tasks of your own (default: full, sample, or what was changed)"
  parser.add_argument("--name", metavar="NAME", help=text)
  parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
  """Runs the command. Returns 0. Raises SgdxError for anything wrong in the input."""
  from sgdx_t5x.cli import output
  from sgdx_t5x.cli.data.verify import splits_table
  from sgdx_t5x.cli.progress import native_stderr_hidden
  from sgdx_t5x.corpus.corpus import PUBLISHED_DIALOGUES, check_schemas
  from sgdx_t5x.corpus.opening import open_corpus

  if args.name is not None and not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", args.name):
    raise UsageError(
      f"--name {args.name}",
      expected="a letter followed by letters, digits and underscores",
      fix="choose a name of this form, or leave it out",
    )
  corpus = None if args.download else open_corpus(args.corpus)
  if args.dialogues:
    corpus = _subset(corpus, args.dialogues)
  if corpus is not None:
    check_schemas(corpus)  # before TensorFlow is loaded and anything is written
  with native_stderr_hidden(args.debug):
    require("tensorflow", extra="train", why="records")  # logs a lot; TFDS would import it later
    require("tensorflow_datasets", extra="train", why="records")
    from sgdx_t5x.records import prepare
  data_dir = args.data_dir or prepare.default_data_dir()
  if args.download:
    import logging

    print(f"fetching {prepare.ARCHIVE_URL} (37 MB)", file=sys.stderr, flush=True)
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # it warns at each of its retries
  totals: Mapping[str, int | None] = PUBLISHED_DIALOGUES  # of a download
  if corpus is not None:
    totals = {split: corpus.expected_dialogues(split) for split in corpus.splits}
  with _split_progress(totals) as (on_dialogue, splits_written):
    builder = prepare.prepare(corpus, data_dir, on_dialogue, args.name)
  if not splits_written:
    print("nothing written: the folder already has the records of this corpus", file=sys.stderr)
  metadata = builder.info.metadata
  notes = (
    f"schema variants: {', '.join(metadata['schemas'])}",
    f"corpus {metadata['corpus']}, checksum {metadata['checksum']}",
    f"records: {builder.data_dir}",
    _next(builder.builder_config.name, data_dir, "train" in metadata["counts"]),
  )
  rows = prepare.summary(builder)
  output.show("text", [splits_table(rows, metadata["corpus"])], {}, notes=notes)
  return 0


def _next(name: str, data_dir: str | os.PathLike[str], can_train: bool = True) -> str:
  """Returns a command that uses the records in `data_dir`, or says that no task does."""
  from sgdx_t5x.cli.output import folded_command

  plain = name.removeprefix("sample_")  # tasks find records by their name
  is_of_sample = plain != name or name == "sample"
  of_core = ("", "gin/{}t5dst.gin", "", "")
  records = {"full": of_core, "sample": of_core, **annexes.table("RECORDS")}
  if plain not in records:
    return f"no built-in task reads records of this name: tasks of yours have data={name!r}"
  _, gin_file, task, module, *environment = records[plain]
  path = gin_file.format("sample/" * is_of_sample)
  is_evaluated = path.endswith("/eval.gin")
  if not (is_evaluated or can_train):
    return "no dialogues of train: these records are for t5x.eval and t5x.infer"
  command = [] if is_of_sample else [*environment]
  command += ["python", "-m", "t5x.eval" if is_evaluated else "t5x.train", f"--gin_file={path}"]
  if task:
    command += [f"--gin.MIXTURE_OR_TASK_NAME='{'sample_' * is_of_sample}{task}'"]
    command += [f"--gin.MIXTURE_OR_TASK_MODULE='{module}'"]
  if is_evaluated:
    command += ["--gin.CHECKPOINT_PATH='CHECKPOINT'", "--gin.EVAL_OUTPUT_DIR='eval'"]
  else:
    command += [f"--gin.MODEL_DIR='runs/{task or pathlib.PurePath(path).stem}'"]
  command.append(f"--tfds_data_dir={data_dir}")
  return folded_command(command)


def _subset(corpus: "Corpus | None", items: Sequence[str]) -> "Subset":
  from sgdx_t5x.corpus.subset import Subset

  if corpus is None:
    raise UsageError(
      "--dialogues with --download",
      expected="a corpus to sample from",
      fix="prepare the complete download, or fetch the archive and pass it with --corpus FILE",
    )
  sizes = {}
  for item in items:
    split, _, number = item.partition("=")
    if not re.fullmatch(r"[0-9]+", number) or split not in corpus.splits or split in sizes:
      raise UsageError(
        f"--dialogues {item}",
        expected="SPLIT=N with a number N, at most once per split",
        available=f"splits {', '.join(corpus.splits)}",
        fix="pass, for example, --dialogues dev=100 test=300",
      )
    sizes[split] = int(number)
  return Subset(corpus, sizes)


@contextlib.contextmanager
def _split_progress(
  totals: Mapping[str, int | None],
) -> Iterator[tuple[Callable[[str, Mapping[str, int]], None], Mapping[str, str]]]:
  """Yields a callback for each dialogue that is written, and split -> its line, if it has one.

  Prints the line when the split is done. Args: totals, split -> its dialogues, None if unknown.
  """
  from sgdx_t5x.cli.progress import progress

  texts: dict[str, str] = {}  # split -> how much of it is written; the last one grows

  def print_last() -> None:
    for text in list(texts.values())[-1:]:
      print(f"{text} written", file=sys.stderr, flush=True)

  with progress("dialogues") as update:

    def on_dialogue(split: str, counts: Mapping[str, int]) -> None:
      if split not in texts:
        print_last()
      texts[split] = f"{split}: {counts['dialogues']:,} dialogues, {counts['frames']:,} frames"
      update(f"writing {split}", counts["dialogues"], totals.get(split))

    yield on_dialogue, texts
  print_last()
