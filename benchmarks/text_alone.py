"""Copies SGD's archive without the acts of the system, as a dialogue is on text alone.

  python benchmarks/text_alone.py sgd.zip text.zip

benchmarks/results/shipped/README.md says what it was used for. Gold states stay; trackers do not
see them.
"""

import json
import pathlib
import re
import sys
import zipfile


def main(source: pathlib.Path, target: pathlib.Path) -> None:
  """Writes a new archive. Args: paths of both."""
  with (
    zipfile.ZipFile(source) as archive,
    zipfile.ZipFile(target, "x", zipfile.ZIP_DEFLATED) as copy,
  ):
    for name in archive.namelist():
      data = archive.read(name)
      if re.search(r"/test/dialogues_\d+\.json$", name):
        data = json.dumps([_without_acts(dialogue) for dialogue in json.loads(data)]).encode()
      copy.writestr(name, data)


def _without_acts(dialogue: dict) -> dict:
  """Returns a dialogue whose system turns name their services and nothing else."""
  for turn in dialogue["turns"]:
    if turn["speaker"] == "SYSTEM":
      turn["frames"] = [{"service": frame["service"], "slots": []} for frame in turn["frames"]]
  return dialogue


if __name__ == "__main__":
  main(*map(pathlib.Path, sys.argv[1:]))
