"""Opening a corpus: the official archive, a folder of its layout, or the embedded sample."""

import os
import pathlib
import re

from sgdx_t5x.arguments import PATH, checked_arguments
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.sources import DOWNLOAD_HINT, ArchiveSource, DirectorySource, is_archive
from sgdx_t5x.corpus.variants import SPLITS
from sgdx_t5x.errors import SgdxError

SAMPLE = "sample"
_VARIANT = re.compile(r"/(?:sgd_x/data|back_translations)/[^/]+$")
_EXPECTED = 'the official SGD archive (zip), a folder with its layout, or "sample"'


@checked_arguments(where=PATH)
def open_corpus(where: str | os.PathLike) -> Corpus:
  """Opens the official archive (zip), a folder with its layout, or "sample".

  Raises:
    SgdxError: nothing exists there, it is another kind of file, or the zip is truncated.
  """
  if str(where) == SAMPLE:
    from sgdx_t5x.corpus.sample import SampleSource

    return Corpus(SampleSource())
  path = pathlib.Path(where)
  if os.path.isdir(path):
    return Corpus(DirectorySource(path))
  if is_archive(path):
    return Corpus(ArchiveSource(path))
  if not os.path.exists(path):
    problem, fix = f"no archive or folder at {path}", f"check the path; {DOWNLOAD_HINT}"
    raise SgdxError(problem, expected=_EXPECTED, fix=fix)
  fix = f"pass such a folder, with SPLIT/schema.json and SPLIT/dialogues_*.json; {DOWNLOAD_HINT}"
  if root := _corpus_around(path.resolve()):
    fix = f"pass the folder of the whole corpus: {root}"
  raise SgdxError(f"{path} is neither a zip archive nor a folder", expected=_EXPECTED, fix=fix)


def _corpus_around(path: pathlib.Path) -> pathlib.Path | None:
  """Returns the corpus that a file lies in, if it does: not that of a variant within a corpus."""
  for folder in path.parents:
    is_variant = _VARIANT.search(folder.as_posix())
    if not is_variant and any((folder / split / "schema.json").is_file() for split in SPLITS):
      return folder
  return None
