"""Writes dialogues to files in the official layout: streamed, in parallel, atomically."""

import collections
import contextlib
import functools
import importlib
import json
import os
import pathlib
import sys
from collections.abc import Callable, Iterator

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.locks import lock
from sgdx_t5x.files.writing import atomic_folder, check_folder
from sgdx_t5x.papers.simulator.generate import Simulation, simulate
from sgdx_t5x.papers.simulator.parallel import worker_processes
from sgdx_t5x.papers.simulator.surface import Paraphrase
from sgdx_t5x.signature import package_version

DIALOGUES_PER_FILE = 500
SIMULATION_FORMAT = "sgdx-simulation/1"


def write_split(
  simulation: Simulation,
  folder: pathlib.Path,
  *,
  num_dialogues: int,
  seed: str,
  processes: int = 1,
  paraphrase: str | None = None,
  on_progress: Callable[[int], None] = lambda done: None,
) -> collections.Counter:
  """Writes `schema.json`, `simulation.json` and `dialogues_001.json`, ... into a new folder.

  Args:
    simulation: what dialogues are made from.
    folder: must be new or empty; missing parent folders are created.
    num_dialogues: number of dialogues.
    seed: any text; determines the files, whatever the number of processes.
    processes: number of parallel processes.
    paraphrase: `package.module:function`, see `load_paraphrase`.
    on_progress: called with the number of dialogues written so far.

  Returns:
    How many dialogues, turns and user frames were written.

  Raises:
    SgdxError: the folder is not empty or cannot be written, or a paraphrase fails; nothing is
      written then.
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
      "paraphrase": paraphrase,
    }
    (temporary / "simulation.json").write_text(json.dumps(origin, indent=2) + "\n", "utf-8")
    parts = [
      (str(temporary / f"dialogues_{i:0{digits}}.json"),
       range(start, min(start + DIALOGUES_PER_FILE, num_dialogues)), seed)
      for i, start in enumerate(starts, start=1)
    ]  # fmt: skip
    with _workers(simulation, paraphrase, min(processes, len(parts))) as run:
      for found in run(_write_part, parts):
        totals.update(found)
        on_progress(totals["dialogues"])
  return totals


def load_paraphrase(name: str) -> Paraphrase:
  """Imports `package.module:function`; modules of the working folder are found too.

  Raises:
    SgdxError: there is no such module or function.
  """
  module, _, function = name.partition(":")
  if os.getcwd() not in sys.path:
    sys.path.insert(0, os.getcwd())
  try:
    found = getattr(importlib.import_module(module), function)
    if not callable(found):
      raise TypeError(f"{function} is of type {type(found).__name__}, not a function")
    return found
  except Exception as e:  # anything that the module does when it is imported
    raise SgdxError(
      f"--paraphrase {name}: {e}",
      expected="package.module:function, importable from this folder",
      fix="check the name, or run the command in the folder that contains the module",
    ) from None


@contextlib.contextmanager
def _workers(simulation: Simulation, paraphrase: str | None, processes: int) -> Iterator[Callable]:
  """Yields a `map` function, for this process or for a pool of processes with the simulation."""
  if processes <= 1:
    _start(simulation, paraphrase)
    yield map
    return
  with worker_processes(processes, "simulating dialogues", _start, simulation, paraphrase) as run:
    yield run


_work: functools.partial  # this process' `simulate`, without the arguments that differ by file


def _start(simulation: Simulation, paraphrase: str | None) -> None:
  global _work
  hook = load_paraphrase(paraphrase) if paraphrase else None
  _work = functools.partial(simulate, simulation, paraphrase=hook)


def _write_part(part: tuple[str, range, str]) -> dict[str, int]:
  """Writes one file, a dialogue per line, and returns counts."""
  path, numbers, seed = part
  turns = frames = 0
  encode = json.JSONEncoder(sort_keys=True).encode
  with open(path, "w", encoding="utf-8", newline="\n") as file:
    for i, dialogue in enumerate(_work(numbers=numbers, seed=seed)):
      file.write(",\n" if i else "[\n")
      file.write(encode(dialogue.to_json()))
      turns += len(dialogue.turns)
      frames += sum(1 for _ in dialogue.user_frames())
    file.write("\n]\n")
  return {"dialogues": len(numbers), "turns": turns, "user_frames": frames}
