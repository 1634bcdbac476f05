"""Copies an archive without the acts of the system in a split, as a dialogue is on text alone.

  python benchmarks/text_alone.py sgd.zip text.zip

benchmarks/results/shipped/README.md says what it was used for. Gold states stay; trackers do not
see them.
"""

import argparse
import json
import pathlib
import re
import zipfile


def main() -> None:
  """Writes a new archive."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("source", type=pathlib.Path, help="SGD's archive, or one in its layout")
  parser.add_argument("target", type=pathlib.Path, help="a new file")
  parser.add_argument("--split", choices=("dev", "test"), default="test")
  args = parser.parse_args()
  with (
    zipfile.ZipFile(args.source) as archive,
    zipfile.ZipFile(args.target, "x", zipfile.ZIP_DEFLATED) as copy,
  ):
    for name in archive.namelist():
      data = archive.read(name)
      if re.search(rf"/{args.split}/dialogues_\d+\.json$", name):
        data = json.dumps([_without_acts(dialogue) for dialogue in json.loads(data)]).encode()
      copy.writestr(name, data)


def _without_acts(dialogue: dict) -> dict:
  """Returns a dialogue whose system turns name their services and nothing else."""
  for turn in dialogue["turns"]:
    if turn["speaker"] == "SYSTEM":
      turn["frames"] = [{"service": frame["service"], "slots": []} for frame in turn["frames"]]
  return dialogue


if __name__ == "__main__":
  main()
