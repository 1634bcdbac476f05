"""Names of the numbers for TensorBoard: those of the docs that a run did not write."""

import pathlib
import re
from collections.abc import Iterable

from places import ROOT


def names_of_page(pattern: str) -> list[str]:
  """Returns names in docs/tensorboard.md. Args: regular expression of the start of a name."""
  text = (ROOT / "docs/tensorboard.md").read_text()
  names = re.findall(rf"^({pattern}\S+)(?: |$)", text, re.MULTILINE)
  assert names
  return names


def not_written(folder: pathlib.Path, names: Iterable[str]) -> set[str]:
  """Returns the names that are in no event file of `folder`, which a run of the sample wrote."""
  from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

  written = {
    f"{file.parent.relative_to(folder)}/{value.tag}"
    for file in folder.rglob("events.*")
    for event in EventFileLoader(str(file)).Load()
    for value in event.summary.value
  }
  return {name.replace("/t5dst", "/sample_t5dst") for name in names} - written
