"""Times `sgdx score` on the real test files: one set of predictions, and six with intervals.

  python benchmarks/score.py --archive dstc8-schema-guided-dialogue-master.zip \\
    [--official PYTHON --official-dir DIR]

Whole processes, as a user starts them, on DSTC8 dialogues in the form of the release: JSON with
all turns, whose user states hold the gold values with one in ten truncated and one in twenty
missing, different ones for each variant. `--official` is an interpreter with TensorFlow and
fuzzywuzzy, `--official-dir` a folder with the official scorer, see _official.py: it scores the one
set too.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import shutil
import statistics
import sys
import zipfile
import zlib

import _common

from sgdx_t5x.corpus.conversion import convert_dialogue, renamings
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import Dialogue, Frame, read_dialogues, write_dialogues
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.variants import ORIGINAL, SGDX_VARIANTS

SPLIT = "test"
ONE, SIX, OFFICIAL = "one set", "six sets", "official scorer, one set"
READ = {ONE: "json.load, one set", SIX: "json.load, six sets"}
TARGET = {ONE: 3.0, SIX: 4.0}  # relative to json.load on the same files
TARGET_GB = 0.255  # 1.5 x the 0.170 GB of Python objects that json.load makes of the largest set
# Only decodes the archive's test dialogues and the files of folders.
LOAD = """
import json, pathlib, sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
for name in archive.namelist():
  if "/test/dialogues_" in name:
    with archive.open(name) as file:
      json.load(file)
for folder in sys.argv[2:]:
  for path in pathlib.Path(folder).glob("*.json"):
    with path.open() as file:
      json.load(file)
"""


def write_predictions(corpus: Corpus, variant: str, folder: pathlib.Path) -> pathlib.Path:
  """Writes the predictions for a variant, one file per file of the split, unless they exist."""
  if folder.is_dir():
    return folder
  print(f"making predictions in {folder} (once)", flush=True)
  names = renamings(corpus.schema(SPLIT), corpus.schema(SPLIT, variant))
  unfinished = folder.with_name(f"{folder.name}.tmp")
  shutil.rmtree(unfinished, ignore_errors=True)
  unfinished.mkdir(parents=True)
  # One file at a time: this process's peak memory would count as its children's.
  for name in corpus.dialogue_files(SPLIT):
    dialogues = read_dialogues(corpus.source.read(name), name)
    text = write_dialogues(convert_dialogue(with_mistakes(d, variant), names) for d in dialogues)
    (unfinished / pathlib.Path(name).name).write_text(text)
  return unfinished.rename(folder)


def with_mistakes(dialogue: Dialogue, salt: str) -> Dialogue:
  """Returns the dialogue with wrong user states, the same for the same salt."""

  def spoil(turn: int, frame: Frame) -> Frame:
    if frame.state is None:
      return frame
    values = {}
    for slot, found in frame.state.slot_values.items():
      key = f"{salt}/{dialogue.dialogue_id}/{turn}/{frame.service}/{slot}"
      draw = zlib.crc32(key.encode()) % 20
      if draw:  # 0: the slot is missing
        values[slot] = (found[0][:-2] if draw < 3 else found[0],)
    return dataclasses.replace(frame, state=dataclasses.replace(frame.state, slot_values=values))

  turns = tuple(
    dataclasses.replace(turn, frames=tuple(spoil(i, frame) for frame in turn.frames))
    for i, turn in enumerate(dialogue.turns)
  )
  return dataclasses.replace(dialogue, turns=turns)


def official_command(args: argparse.Namespace, predictions: pathlib.Path, work: pathlib.Path):
  """Returns the official scorer's command for a copy of predictions: it writes next to them."""
  gold, copy = work / "gold", work / "official"
  with zipfile.ZipFile(args.archive) as archive:
    wanted = (f"/{SPLIT}/", "/train/schema.json")
    archive.extractall(gold, [n for n in archive.namelist() if any(w in n for w in wanted)])
  shutil.rmtree(copy, ignore_errors=True)
  shutil.copytree(predictions, copy)
  root = next(path.parent.parent for path in gold.glob(f"**/{SPLIT}/dialogues_001.json"))
  runner = _common.ROOT / "benchmarks" / "_official.py"
  command = [os.path.abspath(args.official), runner, args.official_dir.resolve(), "difflib"]
  command += ["--prediction_dir", copy, "--dstc8_data_dir", root, "--eval_set", SPLIT]
  return [*map(str, command), "--output_metric_file", str(work / "official.json")]


def main() -> None:
  """Makes the predictions once, measures, prints seconds and peak memory with the targets."""
  args = _common.parse_official(__doc__, 5, "folder of the official scorer")
  corpus = open_corpus(args.archive)
  work = (args.work_dir / "score").resolve()
  folders = {
    variant: write_predictions(corpus, variant, work / corpus.checksum() / variant)
    for variant in (ORIGINAL, *SGDX_VARIANTS)
  }
  sources = [f"{variant}={folder}" for variant, folder in folders.items()]
  score = _common.sgdx("score", "--corpus", str(args.archive.resolve()), "--split", SPLIT)
  commands = {
    ONE: [*score, "--predictions", sources[0]],
    SIX: [*score, "--predictions", *sources],
  }
  for sets, name in READ.items():
    read = list(folders.values())[: 1 if sets == ONE else None]
    commands[name] = [sys.executable, "-c", LOAD, *map(str, (args.archive.resolve(), *read))]
  if args.official:
    commands[OFFICIAL] = official_command(args, folders[ORIGINAL], work)
  results, peaks = _common.time_processes(commands, work, args.repeats)
  for name, values in peaks.items():
    print(f"{name}: peak memory {max(values):.2f} GB")
  ratios = {
    name: statistics.median(results[name]) / statistics.median(results[READ[name]])
    for name in TARGET
  }
  for name, ratio in ratios.items():
    print(f"{name}: {ratio:.2f} x json.load of the same files")
  missed = [name for name, target in TARGET.items() if ratios[name] > target]
  missed += [f"memory of {name}" for name in TARGET if max(peaks[name]) > TARGET_GB]
  goals = ", ".join(f"{name} {target:g} x" for name, target in TARGET.items())
  print(f"targets: {goals}, {TARGET_GB} GB; missed: {', '.join(missed) or 'none'}")


if __name__ == "__main__":
  main()
