"""Names of the numbers for TensorBoard: those of the docs that a run did not write."""

import pathlib
import re

from places import ROOT


def not_written(folder: pathlib.Path, pattern: str) -> set[str]:
  """Returns names in docs/tensorboard.md that match `pattern` but are in no event file of `folder`.

  Args:
    folder: what a run of the sample wrote.
    pattern: regular expression of the start of a name.
  """
  from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

  text = (ROOT / "docs/tensorboard.md").read_text()
  names = re.findall(rf"^({pattern}\S+)(?: |$)", text, re.MULTILINE)
  assert names
  written = {
    f"{file.parent.relative_to(folder)}/{value.tag}"
    for file in folder.rglob("events.*")
    for event in EventFileLoader(str(file)).Load()
    for value in event.summary.value
  }
  return {name.replace("/t5dst", "/sample_t5dst") for name in names} - written
