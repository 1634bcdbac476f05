"""Fills a data directory from a corpus, whole or not at all."""

import contextlib
import io
import os
import pathlib
import shutil
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_datasets as tfds
from google.protobuf import json_format

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.variants import SPLITS
from sgdx_t5x.errors import SgdxError, UsageError, first_line
from sgdx_t5x.files.locks import lock
from sgdx_t5x.files.writing import writing_fix
from sgdx_t5x.records.builder import ARCHIVE_URL, Sgd, config_name


def default_data_dir() -> str:
  """TFDS_DATA_DIR, or TFDS's own default; what tasks read where no --tfds_data_dir is given."""
  return os.environ.get("TFDS_DATA_DIR") or os.path.expanduser("~/tensorflow_datasets")


def prepare(
  corpus: Corpus | None,
  data_dir: str | pathlib.Path,
  on_dialogue: Callable[[str, dict[str, int]], None] | None = None,
  name: str | None = None,
) -> Sgd:
  """Writes the records of a corpus under `data_dir`.

  Args:
    corpus: what to write, or None to download the official archive.
    data_dir: the folder later given as --tfds_data_dir.
    on_dialogue: called with (split, counts so far) after each dialogue.
    name: config of the records, for tasks; default: see `builder.config_name`.

  Returns:
    The builder; its `info.metadata` has checksum, counts and schemas.

  Raises:
    SgdxError: the folder is not local, the corpus is broken, other data are there already, another
      process is writing there, or the records cannot be written. Nothing is left half-built: TFDS
      writes to a temporary folder and renames it.
  """
  if "://" in str(data_dir):
    raise UsageError(
      f"--data-dir {data_dir}",
      expected="a local folder",
      fix="write to a local folder and copy it, e.g. with `gcloud storage cp -r`",
    )
  name = name or config_name(corpus)
  try:
    folder = pathlib.Path(_builder(corpus, data_dir, on_dialogue, name).data_dir)
  except (ValueError, KeyError, TypeError, AttributeError, json_format.Error) as e:
    raise SgdxError(
      f"--data-dir {data_dir}: the records of {name} are damaged ({first_line(e)})",
      expected="no records, or those that `sgdx data prepare` wrote",
      fix=f"remove {pathlib.Path(data_dir) / 'sgd' / name}, or pass another --data-dir",
    ) from None
  with lock(folder.parent, "--data-dir"):
    # Anew, since another process may have written the records while this one waited.
    return _prepare(_builder(corpus, data_dir, on_dialogue, name), pathlib.Path(data_dir))


def _prepare(builder: Sgd, root: pathlib.Path) -> Sgd:
  folder = pathlib.Path(builder.data_dir)
  _remove_unfinished(folder.parent)
  if folder.exists():
    _check_same(builder.info.metadata or {}, builder.corpus, folder)
    return builder
  names = ("downloads", "downloads/extracted", "sgd/.config", f"sgd/{folder.parent.name}")
  created = [root / name for name in names if not (root / name).exists()]
  try:
    _write(builder, root)
  except BaseException:
    _remove_unfinished(folder.parent)
    for path in reversed(created):  # TFDS creates them first and never removes them
      with contextlib.suppress(OSError):
        (path / "metadata.json").unlink(missing_ok=True)
        path.rmdir()
    raise
  return builder


def _check_same(metadata, corpus: Corpus | None, folder: pathlib.Path) -> None:
  """Refuses records of another corpus; without one, those that no download would give."""
  checksum = metadata.get("checksum")
  if corpus is not None:
    expected_records = f"{corpus.origin} (checksum {corpus.checksum()})"
    is_same = checksum == corpus.checksum()
  else:
    expected_records = "the official archive, complete"
    complete = [*metadata.get("complete", {}).values()]
    is_same = metadata.get("corpus") == "sgd" and complete == [True] * len(SPLITS)
  if not is_same:
    raise SgdxError(
      f"{folder} contains records of another corpus (checksum {checksum})",
      expected=f"no records, or those of {expected_records}",
      fix="pass another --data-dir, or delete this folder",
    )


def _remove_unfinished(folder: pathlib.Path) -> None:
  """Removes TFDS's temporary folders, also a killed run's: no other process is writing here."""
  for leftover in folder.glob("incomplete.*"):
    shutil.rmtree(leftover, ignore_errors=True)


def _write(builder: Sgd, data_dir: pathlib.Path) -> None:
  tfds.disable_progress_bar()
  with contextlib.redirect_stdout(io.StringIO()):  # hides TFDS's output; the caller prints ours
    try:
      builder.download_and_prepare()
    except SgdxError:  # about the corpus
      raise
    except Exception as e:
      if builder.corpus is None:
        raise _download_failed(e) from e
      raise _not_written(e, data_dir) from e


def _not_written(error: Exception, data_dir: pathlib.Path) -> Exception:
  """Returns what to raise for a TFDS error, among whose causes may be a failed write."""
  cause: BaseException | None = error
  while cause is not None and not isinstance(cause, OSError | tf.errors.OpError):
    cause = cause.__cause__
  if cause is None:
    return error
  name = getattr(cause, "filename", None)
  if name and not pathlib.Path(os.fsdecode(name)).resolve().is_relative_to(data_dir.resolve()):
    return cause if isinstance(cause, Exception) else error  # a file being read
  reason = getattr(cause, "strerror", None) or first_line(cause)
  return SgdxError(
    f"--data-dir {data_dir}: {reason[:200]}",
    expected="a folder that can be created and written to, on a disk with space for the records",
    fix=writing_fix(cause, "pass another --data-dir"),
  )


def _download_failed(error: Exception) -> SgdxError:
  return SgdxError(
    f"could not fetch {ARCHIVE_URL}: {first_line(error)[:200]}",
    expected="the archive whose checksum is in sgdx_t5x/records/checksums.tsv",
    fix="retry, or download it with a browser and run: sgdx data prepare --corpus FILE",
  )


def _builder(corpus, data_dir, on_dialogue, name) -> Sgd:
  config = name
  if name not in Sgd.builder_configs:
    config = tfds.core.BuilderConfig(name=name, description="Records of a corpus of one's own.")
  builder = Sgd(data_dir=os.fspath(data_dir), config=config)
  builder.corpus, builder.on_dialogue = corpus, on_dialogue
  return builder


def summary(builder: Sgd) -> list[dict[str, Any]]:
  """Returns a row per split: counts, services, completeness."""
  metadata = builder.info.metadata
  rows = []
  for split, counts in metadata["counts"].items():
    services = len(metadata["schemas"]["original"][split])
    complete = metadata["complete"][split]
    rows.append({"split": split, **counts, "services": services, "complete": complete})
  return rows
