"""Opening a corpus: the official archive, a folder of its layout, or the embedded sample."""

import os
import pathlib

from sgdx_t5x.arguments import PATH, checked_arguments
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.sources import DOWNLOAD_HINT, ArchiveSource, DirectorySource, is_archive
from sgdx_t5x.corpus.wrong_file import not_a_corpus
from sgdx_t5x.errors import SgdxError

SAMPLE = "sample"


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
  if path.is_dir():
    return Corpus(DirectorySource(path))
  if not path.exists():
    raise SgdxError(
      f"no archive or folder at {path}",
      expected='the official SGD archive (zip), its unpacked folder, or "sample"',
      fix=f"check the path; {DOWNLOAD_HINT}",
    )
  if not is_archive(path):
    raise not_a_corpus(path)
  return Corpus(ArchiveSource(path))
