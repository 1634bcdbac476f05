"""Writes dialogues to files in the official layout."""

import collections
import json
import pathlib
from collections.abc import Callable

from sgdx_t5x.files.locks import lock
from sgdx_t5x.files.writing import atomic_folder, check_folder
from sgdx_t5x.papers.simulator.generate import Simulation, simulate
from sgdx_t5x.signature import package_version

DIALOGUES_PER_FILE = 500
SIMULATION_FORMAT = "sgdx-simulation/1"


def write_split(
  simulation: Simulation,
  folder: pathlib.Path,
  *,
  num_dialogues: int,
  seed: str,
  on_progress: Callable[[int], None] = lambda dialogues_done: None,
) -> collections.Counter:
  """Writes `schema.json`, `simulation.json` and `dialogues_001.json`, ... into a new folder.

  Args:
    simulation: what dialogues are made from.
    folder: must be new or empty; missing parent folders are created.
    num_dialogues: number of dialogues.
    seed: any text; determines the files.
    on_progress: called with the number of dialogues written so far.

  Returns:
    How many dialogues, turns and user frames were written.

  Raises:
    SgdxError: the folder is not empty or cannot be written; nothing is written then.
  """
  starts = range(0, num_dialogues, DIALOGUES_PER_FILE)
  digits = max(3, len(str(len(starts))))
  totals: collections.Counter = collections.Counter()
  expected = "a new or empty folder for the split of --split"
  with lock(folder), atomic_folder(check_folder(folder, expected=expected)) as temporary:
    temporary.mkdir()
    text = json.dumps(simulation.schema.to_json(), indent=2) + "\n"
    (temporary / "schema.json").write_text(text, "utf-8")
    origin = {
      "format": SIMULATION_FORMAT,
      "version": package_version(),
      "seed": seed,
      "num_dialogues": num_dialogues,
      "paraphrase": None,  # part of the format
    }
    (temporary / "simulation.json").write_text(json.dumps(origin, indent=2) + "\n", "utf-8")
    for i, start in enumerate(starts, start=1):
      numbers = range(start, min(start + DIALOGUES_PER_FILE, num_dialogues))
      path = temporary / f"dialogues_{i:0{digits}}.json"
      totals += _write_file(path, simulation, numbers, seed)
      on_progress(totals["dialogues"])
  return totals


def _write_file(
  path: pathlib.Path, simulation: Simulation, numbers: range, seed: str
) -> collections.Counter:
  """Writes one file, a dialogue per line, and returns counts."""
  counts: collections.Counter = collections.Counter()
  encode = json.JSONEncoder(sort_keys=True).encode
  with open(path, "w", encoding="utf-8", newline="\n") as file:
    for i, dialogue in enumerate(simulate(simulation, numbers=numbers, seed=seed)):
      file.write(",\n" if i else "[\n")
      file.write(encode(dialogue.to_json()))
      counts["dialogues"] += 1
      counts["turns"] += len(dialogue.turns)
      counts["user_frames"] += sum(1 for _ in dialogue.user_frames())
    file.write("\n]\n")
  return counts
