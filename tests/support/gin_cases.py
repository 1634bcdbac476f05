"""Parses gin files as `t5x` does, without running anything; what core and annexes try them with."""

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fork_server import fork_server
from places import ROOT, SUPPORT

from sgdx_t5x.weights import gin_files

# Flags that a user has to give.
TRAIN = ["--gin.MODEL_DIR='/nowhere'"]
START = "--gin.INITIAL_CHECKPOINT_PATH='/c'"
EVAL = ["--gin.CHECKPOINT_PATH='/c'", "--gin.EVAL_OUTPUT_DIR='/o'"]
INFER = ["--gin.CHECKPOINT_PATH='/c'", "--gin.INFER_OUTPUT_DIR='/o'"]

MACROS = ("MIXTURE_OR_TASK_NAME", "BATCH_SIZE", "TRAIN_STEPS", "INITIAL_CHECKPOINT_PATH")
ENCODERS = sorted(name.removeprefix("gin/models/")[:-4] for name in gin_files.ENCODERS)

# Gin files and flags, in the order of the command line.
Cases = Mapping[str, tuple[list[str], list[str]]]


def names(folder: str) -> list[str]:
  """Names of the gin files in a folder of gin/; of gin/models, without those of encoders."""
  found = sorted(p.stem for p in (ROOT / "gin" / folder).glob("*.gin"))
  return [name for name in found if folder != "models" or name not in ENCODERS]


def files_below(folder: str) -> set[str]:
  """All gin files below a folder of the repository."""
  return {p.relative_to(ROOT).as_posix() for p in (ROOT / folder).rglob("*.gin")}


def parse(
  cases: Cases, others: Iterable[tuple[str, list[str], Sequence[str], Mapping[str, str]]] = ()
) -> dict[str, Any]:
  """Returns what each case resolves to, parsed in one process; an error's text if it does not.

  Macros that nothing uses, which `t5x` names in a line, count as an error.

  Args:
    cases: name -> files and flags; its values are those of MACROS.
    others: further ones: name, files, flags, key -> parameter to look up.
  """
  macros = {macro: f"{macro}/macro.value" for macro in MACROS}
  every = [(name, files, flags, macros) for name, (files, flags) in cases.items()]
  every = [
    (name, files, [b.removeprefix("--gin.").replace("=", " = ", 1) for b in flags], parameters)
    for name, files, flags, parameters in (*every, *others)
  ]
  printed = fork_server().run_file(SUPPORT / "gin_parsing.py", json.dumps(every), cwd=ROOT)
  return json.loads(printed.splitlines()[-1])


def tried_files(cases: Cases) -> set[str]:
  """The gin files that cases name."""
  return {file for files, _ in cases.values() for file in files}


def tracker_cases(folder: str, name: str, *, start: bool) -> dict[str, tuple[list[str], list[str]]]:
  """Cases of an encoder tracker's experiment, its evaluation and its inference.

  Args:
    folder: of its gin files.
    name: of the tracker, with which its tasks' names begin.
    start: whether training must be told a checkpoint to start from.
  """
  task = f"--gin.MIXTURE_OR_TASK_NAME='{name}_sgdx_v3'"
  files = f"{folder}/{name}"
  return {
    files: ([f"{files}.gin"], [*TRAIN, START] if start else TRAIN),
    f"{files}_eval": ([f"{files}_eval.gin"], [*EVAL, task]),
    f"{files}_infer": ([f"{files}_infer.gin"], [*INFER, task]),
  }


def encoder_cases(file: str) -> dict[str, tuple[list[str], list[str]]]:
  """Cases of an encoder tracker's experiment with every encoder and every machine."""
  others = [f"gin/models/{name}.gin" for name in ENCODERS]
  others += [f"gin/scale/encoders/{name}.gin" for name in names("scale/encoders")]
  return {f"{file} {other}": ([file, other], [*TRAIN, START]) for other in others}


def added_scale(file: str) -> str:
  """Returns the gin file that the launch scripts add on a CPU to a training of `file`, or ""."""
  steps = (
    f"source launch/common.sh; choose_scale '' gin/scale/cpu.gin python -m t5x.train "
    f"--gin_file={file}; echo ${{scale[0]-}}"
  )
  done = subprocess.run(
    ["bash", "-euc", steps], cwd=ROOT, capture_output=True, text=True, check=True
  )
  return done.stdout.strip().removeprefix("--gin_file=")
