"""Shared by the benchmarks: engines, runs in child processes, interleaving, tables."""

from __future__ import annotations

import argparse
import functools
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
OURS, GOOGLE = "ours", "Google's"

# Which T5X an interpreter imports: t5x_lite has a module that Google's has not. (Not by asking for
# t5x._script.cli: with an editable install of t5x_lite, that is found whichever t5x is imported.)
_WHICH = (
  "import importlib.util as u, os; s = u.find_spec('t5x'); "
  "print('none' if s is None else 'ours' if any(os.path.exists(os.path.join(p, 'aot.py')) "
  "for p in s.submodule_search_locations) else 'google')"
)


def make_parser(doc: str, repeats: int, google: bool = False) -> argparse.ArgumentParser:
  """Returns a parser with the options all benchmarks have.

  Args:
    doc: the script's docstring; its first line describes it.
    repeats: default number of rounds.
    google: whether the benchmark compares with Google's T5X (`find_engines`).
  """
  parser = argparse.ArgumentParser(description=doc.strip().splitlines()[0])
  if google:
    parser.add_argument("--google", metavar="PYTHON", help="interpreter with Google's T5X as t5x")
  parser.add_argument("--repeats", type=int, default=repeats, help=f"rounds (default {repeats})")
  parser.add_argument(
    "--work-dir",
    type=lambda path: pathlib.Path(path).absolute(),  # what it starts runs in the checkout's root
    default="runs/benchmarks",
    help="records, checkpoints, outputs, logs (default runs/benchmarks)",
  )
  return parser


def fail(found: str, fix: str) -> None:
  """Ends the benchmark with a message."""
  sys.exit(f"{os.path.basename(sys.argv[0])}: {found}\n  fix: {fix}")


def find_engines(google: str | None) -> dict[str, list[str]]:
  """Returns {engine: interpreter}, after checking which T5X each imports.

  Args:
    google: interpreter with Google's T5X, or None for ours only.
  """
  engines = {OURS: [sys.executable]}
  if google:
    engines[GOOGLE] = [os.path.abspath(google)]
  else:
    print("no --google PYTHON: Google's T5X is left out of the comparison")
  for name, python in engines.items():
    seen = subprocess.run([*python, "-c", _WHICH], cwd=ROOT, capture_output=True, text=True)
    wanted = "ours" if name == OURS else "google"
    if seen.stdout.strip() != wanted:
      fail(
        f"{python[0]} imports {seen.stdout.strip() or seen.stderr.strip()[-200:]!r} as t5x",
        f"give an interpreter that imports {name} T5X (see benchmarks/README.md)",
      )
  return engines


def environment(**changes: str | os.PathLike) -> dict[str, str]:
  """Returns this process's environment without a custom JAX cache, plus `changes`.

  All engines use huge pages, as launch/environment.sh sets.
  """
  left_out = ("JAX_COMPILATION_CACHE_DIR", "PYTHONDONTWRITEBYTECODE")  # would compile at each start
  env = {k: v for k, v in os.environ.items() if k not in left_out}
  env.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  env.setdefault("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
  return env | {k: os.fspath(v) for k, v in changes.items()}


def run(command: Sequence[str], log: pathlib.Path, env: Mapping[str, str]) -> float:
  """Runs a command in the repository's root and returns its seconds; exits if it fails.

  Args:
    command: what to run.
    log: file for its output.
    env: its environment.
  """
  log.parent.mkdir(parents=True, exist_ok=True)
  with log.open("w") as out:
    started = time.perf_counter()
    code = subprocess.call(command, cwd=ROOT, env=env, stdout=out, stderr=subprocess.STDOUT)
    seconds = time.perf_counter() - started
  if code:
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
    fail(f"exit code {code}:\n{tail}", f"see {log}; the command was\n{' '.join(command)}")
  return seconds


def interleave(columns: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
  """Measures the columns in turn (A B C A B C ...), so that drift affects all of them.

  Args:
    columns: {name: function that measures once}.
    repeats: rounds.

  Returns:
    {name: measurements}.
  """
  results: dict[str, list[float]] = {name: [] for name in columns}
  for i in range(repeats):
    for name, measure in columns.items():
      results[name].append(measure())
      print(f"round {i + 1}/{repeats}  {name}: {results[name][-1]:.3g}", flush=True)
  return results


def print_table(
  results: Mapping[str, Sequence[float]], unit: str, reference: str, digits: int = 2
) -> None:
  """Prints medians, ranges and the ratio of each median to that of `reference`."""
  base = statistics.median(results[reference])
  width = max(map(len, results))
  print(f"\n{machine()}; {unit}, ratio to {reference}")
  print(f"{'':{width}}  {'median':>9} {'min':>9} {'max':>9} {'ratio':>7}")
  for name, values in results.items():
    middle = statistics.median(values)
    numbers = "".join(f" {x:9.{digits}f}" for x in (middle, min(values), max(values)))
    print(f"{name:{width}} {numbers} {middle / base:7.2f}")


def parse_official(doc: str, repeats: int, dir_help: str) -> argparse.Namespace:
  """Parses the command line of a benchmark that compares with an official script."""
  parser = make_parser(doc, repeats)
  parser.add_argument("--archive", required=True, type=pathlib.Path, help="the official SGD zip")
  parser.add_argument("--official", metavar="PYTHON", help="interpreter for the official script")
  parser.add_argument("--official-dir", type=pathlib.Path, help=dir_help)
  args = parser.parse_args()
  if bool(args.official) != bool(args.official_dir):
    parser.error("--official and --official-dir go together")
  return args


def time_processes(
  commands: Mapping[str, Sequence[str]], work: pathlib.Path, repeats: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
  """Runs commands in turn and prints a table; returns seconds and peak memory in GB of each."""
  peaks: dict[str, list[float]] = {name: [] for name in commands}
  results = interleave(
    {
      name: functools.partial(_measure, command, work / f"{slug(name)}.log", peaks[name])
      for name, command in commands.items()
    },
    repeats,
  )
  print_table(results, "seconds for the whole process", list(commands)[-1])
  return results, peaks


def _measure(command: Sequence[str], log: pathlib.Path, peaks: list[float]) -> float:
  """Runs a command; returns seconds and appends its peak memory in GB to `peaks`."""
  with log.open("w") as out:
    started = time.perf_counter()
    process = subprocess.Popen(
      command, cwd=ROOT, env=environment(), stdout=out, stderr=subprocess.STDOUT
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
  process.returncode = os.waitstatus_to_exitcode(status)
  if process.returncode:
    fail(f"exit code {process.returncode}: {log.read_text()[-1000:]}", f"see {log}")
  peaks.append(usage.ru_maxrss * 1024 / 1e9)  # Linux counts in KiB
  return seconds


def slug(name: str) -> str:
  """A column's name as a file name."""
  return re.sub("[^a-z0-9]+", "_", name.lower()).strip("_")


def machine() -> str:
  """The class of machine, in words."""
  return f"{os.cpu_count()} cores, CPU, {platform.machine()}"


def sgdx(*args: str) -> list[str]:
  """The command line of `sgdx`, in this interpreter."""
  code = "import sys; from sgdx_t5x.cli import main; sys.exit(main())"
  return [sys.executable, "-c", code, *args]


def real_records(archive: str | None, work_dir: pathlib.Path) -> pathlib.Path:
  """Returns the folder of records of the real corpus, made from `archive` if not there yet."""
  if not os.environ.get("SGDX_VOCAB"):
    fail("SGDX_VOCAB is not set", "name T5's sentencepiece.model with it")
  data = (work_dir / "data").resolve()
  if not (data / "sgd" / "full").is_dir():
    if not archive:
      fail(f"no records of SGD in {data}", "--archive dstc8-schema-guided-dialogue-master.zip")
    print(f"making records in {data} (once)", flush=True)
    command = sgdx("data", "prepare", "--corpus", os.path.abspath(archive), "--data-dir", data)
    run(list(map(str, command)), work_dir.resolve() / "data.log", environment())
  return data
