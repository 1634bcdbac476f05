"""Times `sgdx data export` of all variants and splits, and compares its files.

  python benchmarks/export.py --archive dstc8-schema-guided-dialogue-master.zip \\
    [--official PYTHON --official-dir DIR]

Whole processes, as a user starts them. `--official` is an interpreter with
TensorFlow, `--official-dir` a checkout of github.com/google-research-datasets/
dstc8-schema-guided-dialogue with its `sgd_x/generate_sgdx_dialogues.py`, which is not part of this
project: it converts the unpacked archive too, and all files must be equal. Needs 6 GB of disk.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import pathlib
import statistics
import sys
import zipfile

import _common

OURS, OFFICIAL = "sgdx data export", "official converter"
TARGET_SECONDS = 45.0


def official_command(args: argparse.Namespace, work: pathlib.Path, out: pathlib.Path) -> list[str]:
  """Returns the official converter's command line, after unpacking the archive."""
  with zipfile.ZipFile(args.archive) as archive:
    archive.extractall(work / "unpacked")
  root = next((work / "unpacked").glob("**/train/dialogues_001.json")).parent.parent
  code = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
  code += "runpy.run_module('sgd_x.generate_sgdx_dialogues', run_name='__main__', alter_sys=True)"
  folders = {"original": root, "variant": root / "sgd_x" / "data", "output": out}
  flags = [f"--{name}_data_dir={folder}" for name, folder in folders.items()]
  return [os.path.abspath(args.official), "-c", code, str(args.official_dir.resolve()), *flags]


def main() -> None:
  """Measures in turn, compares files, prints seconds and peak memory with the target."""
  args = _common.parse_official(__doc__, 3, "folder that holds sgd_x/")
  work = (args.work_dir / "export").resolve()
  work.mkdir(parents=True, exist_ok=True)
  archive = ["--corpus", str(args.archive.resolve()), "--variant", "all", "--split", "all"]
  outputs = {name: work / _common.slug(name) for name in (OURS, OFFICIAL)}
  ours = _common.sgdx("data", "export", *archive, "--out", str(outputs[OURS]))
  commands = {OURS: ours}
  if args.official:
    commands[OFFICIAL] = official_command(args, work, outputs[OFFICIAL])
  results, peaks = _common.time_processes(commands, work, args.repeats)
  for name, values in peaks.items():
    print(f"{name}: peak memory of a process {max(values):.2f} GB")
  if args.official:
    compare(outputs[OURS], outputs[OFFICIAL])
  missed = statistics.median(results[OURS]) > TARGET_SECONDS
  print(f"target: {TARGET_SECONDS:g} s; {'missed' if missed else 'met'}")


def compare(ours: pathlib.Path, official: pathlib.Path) -> None:
  """Prints how many files are equal; exits if one is not."""
  names = {p.relative_to(root) for root in (ours, official) for p in root.rglob("*.json")}
  _, differ, missing = filecmp.cmpfiles(ours, official, map(str, names), shallow=False)
  if differ or missing:
    sys.exit(f"not equal: {sorted(differ + missing)[:5]}, {len(differ + missing)} in all")
  print(f"all {len(names):,} files are equal")


if __name__ == "__main__":
  main()
