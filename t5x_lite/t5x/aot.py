"""Compiles the steps of a training run for a TPU slice, on a machine that has none.

  python -m t5x.main --run_mode=aot --aot_topology=v3:4x4 --gin_file=FILE.gin

It takes the gin file of `train` and compiles, with libtpu's compiler, the programs that `train`
would run on that slice: the training step, the step of the teacher-forced evaluation, and the
decode of the inference evaluation. It prints what each needs of a device's memory and what XLA
expects it to cost, and exits with 1 if one does not fit. No data is read and no parameter is made;
nothing is run. Google's T5X has nothing like it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.util
import json
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from t5x._aot import account
from t5x._process.files import replace_text
from t5x._process.log import log
from t5x._script import cli, gin_config
from t5x.errors import T5XError, UsageError, nearest

STEPS = ("train", "eval", "decode")

# Slices by accelerator type (what `gcloud` calls them); numbers are cores of v3 and v4, else chips.
_V5E_SHAPES = {4: "2x2", 8: "2x4", 16: "4x4", 32: "4x8", 64: "8x8", 128: "8x16"}
_SHAPES: Mapping[str, Mapping[int, str]] = {
  "v3": {8: "2x2", 32: "4x4", 64: "4x8", 128: "8x8", 256: "8x16", 512: "16x16", 1024: "16x32"},
  "v4": {8: "2x2x1", 16: "2x2x2", 32: "2x2x4", 64: "2x4x4", 128: "4x4x4"},
  "v5e": _V5E_SHAPES,
  "v6e": _V5E_SHAPES,
}
SLICES = {}
for _generation, _shapes in _SHAPES.items():
  for _number, _shape in _shapes.items():
    SLICES[f"{_generation}-{_number}"] = f"{_generation}:{_shape}"

# Macros that a run requires but compiling does not use.
_UNUSED_MACROS = {
  "MODEL_DIR": "'aot'",
  "TRAIN_STEPS": "1",
  "INITIAL_CHECKPOINT_PATH": "[]",
  "MIXTURE_OR_TASK_NAME": "'aot'",
}

_LEFT_OUT = (
  "estimated ms: the compiler's own cycle counts / clock. They exclude collectives, random bits "
  "and copies outside the computation; nothing was run: compare programs with them, not machines."
)


def run(train: Callable) -> None:
  """Reads the gin configuration of `train` and compiles its steps, as the flags say.

  Args:
    train: the configurable that gin files bind as `train_script.train`.

  Raises:
    T5XError: a step does not fit, or the slice cannot be compiled for.
  """
  flags = cli.FLAGS
  topology = check_topology(flags.aot_topology)
  steps = _check_steps(flags.aot_steps)
  if flags.aot_json and not pathlib.Path(flags.aot_json).absolute().parent.is_dir():
    raise UsageError(f"--aot_json={flags.aot_json}: no such folder.", fix="create it first")
  version = prepare_environment()
  settings = _read_gin(train)
  if flags.dry_run:
    log("the gin configuration is complete (--dry_run: nothing was compiled)")
    return
  from t5x._aot import compile  # only now: it imports JAX and Flax

  devices = topology_devices(topology)
  report = compile.compile_run(settings, devices, steps)
  report = {"format": "t5x-aot/1", "topology": topology, "libtpu": version, **report}
  print(describe(report))
  if flags.aot_json:
    replace_text(flags.aot_json, json.dumps(report, indent=1) + "\n")
  refuse_if_too_large(report)


# ------------------------------------------------------------------------------- settings


def check_topology(name: str | None) -> str:
  """Returns libtpu's name for a slice, given that name or the accelerator type (v3-32).

  Raises:
    UsageError: no name is given.
    T5XError: the slice is not known.
  """
  fix = "python -m t5x.main --run_mode=aot --aot_topology=v3:4x4 --gin_file=FILE.gin"
  if not name:
    raise UsageError(
      "--aot_topology is missing.",
      expected="the TPU slice to compile for",
      available=", ".join(SLICES.values()),
      fix=fix,
    )
  if name in SLICES.values():
    return name
  if name not in SLICES:
    generation = name.replace("-", ":").split(":")[0]
    slices = [f"{generation}:{shape}" for shape in _SHAPES.get(generation, {}).values()]
    close = [*nearest(name, slices, n=1), *slices, "v3:4x4"]
    raise T5XError(
      f"No TPU slice is named {name!r}.",
      expected="GENERATION:SHAPE, for example v3:4x4, or an accelerator type, for example v3-32",
      available=", ".join(slices) or f"generations {', '.join(_SHAPES)}",
      fix=f"--aot_topology={close[0]}",
    )
  return SLICES[name]


def _check_steps(steps: Sequence[str]) -> tuple[str, ...]:
  unknown = [s for s in steps if s not in STEPS]
  if unknown or not steps:
    raise UsageError(
      f"--aot_steps={','.join(steps)}: {unknown[0] if unknown else 'none'} is not a step.",
      available=", ".join(STEPS),
      fix="--aot_steps=train,decode",
    )
  return tuple(s for s in STEPS if s in steps)


def prepare_environment() -> str:
  """Makes JAX use the CPU, with libtpu as a compiler only; returns libtpu's version.

  Raises:
    T5XError: libtpu is not installed.
  """
  import jax

  if importlib.util.find_spec("libtpu") is None:
    raise T5XError(
      "libtpu, the compiler for TPUs, is not installed.",
      found=f"jax {jax.__version__} without it",
      expected="the package libtpu; no TPU is needed",
      fix=f'pip install "jax[tpu]=={jax.__version__}"',
    )
  os.environ["TPU_SKIP_MDS_QUERY"] = "1"  # there is no metadata server to ask
  # Compiling needs no chip, so it need not wait for the process that holds the lock file.
  os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
  os.environ.setdefault("TPU_ACCELERATOR_TYPE", "")
  os.environ["JAX_PLATFORMS"] = "cpu"
  jax.config.update("jax_platforms", "cpu")
  # What is compiled for absent devices cannot be loaded from a cache.
  jax.config.update("jax_enable_compilation_cache", False)
  return importlib.metadata.version("libtpu")


def topology_devices(topology: str) -> list[Any]:
  """Returns the devices of a slice, only for compiling.

  Args:
    topology: libtpu's name of the slice, such as 'v3:4x4'.
  """
  from jax.experimental import topologies

  # One v4 device is a chip, as on a TPU VM; libtpu would offer its two cores.
  options = {"chip_config_name": "megacore"} if topology.startswith("v4:") else {}
  debug = cli.FLAGS.is_parsed() and cli.FLAGS.debug
  with contextlib.nullcontext() if debug else cli._silent_stderr():
    topology_desc = topologies.get_topology_desc(topology, "tpu", **options)
  return list(topology_desc.devices)


def _read_gin(train: Callable) -> Mapping[str, Any]:
  """Returns the arguments that gin binds to `train`, references evaluated."""
  import gin

  from t5x._settings.model import bound_to  # imports JAX

  flags = cli.FLAGS
  if not flags.gin_file and not flags.gin_bindings:
    raise UsageError("No gin file is given.", fix="pass --gin_file=FILE.gin, that of the training.")
  cli.import_libraries()
  gin_config.parse_gin_flags(
    flags.gin_search_paths, flags.gin_file or [], flags.gin_bindings, finalize_config=False
  )
  macros = gin_config.macros()
  for name, value in _UNUSED_MACROS.items():
    if name in macros and gin_config.is_required(macros[name]):
      gin.parse_config(f"{name} = {value}")
  gin_config.finalize()
  settings = bound_to(train)
  required = ("model", "partitioner", "trainer_cls", "train_dataset_cfg")
  missing = [name for name in required if settings.get(name) is None]
  if missing:
    raise T5XError(
      "The gin file does not configure training.",
      found=f"train_script.train without {', '.join(missing)}",
      expected="a gin file for `--run_mode=train`",
      fix="pass that file; models and macros alone do not determine what is compiled.",
    )
  return settings


# --------------------------------------------------------------------------------- output


def refuse_if_too_large(report: Mapping[str, Any]) -> None:
  """Raises T5XError if a step of the report does not fit, with what would make it fit."""
  lines = []
  for name, step in report["steps"].items():
    if not step["fits"]:
      needed, usable = step["needed_bytes"], step["usable_bytes"]
      excess = _gib(needed - usable)
      lines.append(f"{name}: {_gib(needed)} GiB of {_gib(usable)}, {excess} GiB too much")
  if lines:
    advice = report["advice"]
    raise T5XError(
      f"The run does not fit in the memory of a {report['device_kind']} of {report['topology']}.",
      found="\n".join(lines),
      expected="every step within a device's memory",
      fix="any of these, estimated to suffice:\n" + "\n".join(" and ".join(a) for a in advice)
      if advice
      else "a larger slice or a smaller model: no number of partitions, microbatches or rows of "
      "this batch is estimated to be enough",
    )


def _gib(size: float) -> str:
  return f"{size / account.GIB:.2f}"


def _memory(kind: str, step: Mapping[str, Any]) -> str:
  return _gib(step["memory"][kind])


def describe(report: Mapping[str, Any]) -> str:
  """Returns the report as a table: a row for each figure, a column for each step."""
  mesh = report["mesh"]
  steps = report["steps"]
  rows = [["", *steps]]

  def add(label: str, value: Callable[[Mapping[str, Any]], Any]) -> None:
    cells = []
    for step in steps.values():
      try:
        cells.append(value(step))
      except (KeyError, TypeError):  # it did not compile, or is not known
        cells.append("-")
    if any(c != "-" for c in cells):
      rows.append([label, *cells])

  add(
    "batch, rows x inputs / targets", lambda s: "{rows} x {inputs} / {targets}".format(**s["batch"])
  )
  for kind in ("argument", "temporary", "output", "alias", "peak", "code", "optimizer_slots"):
    add(f"{kind.replace('_', ' ')}, GiB", functools.partial(_memory, kind))
  add("needed, GiB", lambda s: _gib(s["needed_bytes"]))
  add("fits", lambda s: "yes" if s["fits"] else "NO")
  add("XLA TFLOP, loops once", lambda s: f"{s['xla_flops'] / 1e12:.3f}")
  add("GB moved, loops once", lambda s: f"{s['xla_bytes_accessed'] / 1e9:.2f}")
  add("estimated ms", lambda s: f"{s['estimated_ms']:.2f}")
  add("  before the first token", lambda s: f"{s['start_ms']:.2f}")
  add("  per token", lambda s: f"{s['token_ms']:.3f}")
  add("bound of the model, ms", lambda s: f"{s['bound_ms']:.2f}")
  add("  per token", lambda s: f"{s['token_bound_ms']:.3f}")
  add("bound / estimated", lambda s: f"{s['bound_over_estimated']:.3f}")
  add("collectives, MB", lambda s: f"{sum(s['collective_bytes'].values()) / 1e6:.1f}")
  add("random bits, MB", lambda s: f"{s['rng_bytes'] / 1e6:.1f}")
  add("compiled in, s", lambda s: f"{s['compile_seconds']:.1f}")
  widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
  table = []
  for label, *figures in rows:
    columns = [label.ljust(widths[0])]
    columns += [figure.rjust(width) for figure, width in zip(figures, widths[1:], strict=True)]
    table.append("  ".join(columns))
  head = (
    f"{report['topology']}: {report['devices']} x {report['device_kind']}, "
    f"{report['memory_bytes'] / account.GIB:.0f} GiB each ({_gib(report['usable_bytes'])} usable); "
    f"mesh data {mesh['data']} x model {mesh['model']}, microbatches {report['num_microbatches']}; "
    f"jax {report['jax']}, libtpu {report['libtpu']}. Figures are per device."
  )
  notes = [_LEFT_OUT]
  unknown = [name for name, s in steps.items() if s.get("unknown_loops")]
  if unknown:
    notes.append(f"loops of unknown length counted once in: {', '.join(unknown)}")
  if left_out := {name: n for name, s in steps.items() if (n := s.get("unestimated_operations"))}:
    of_steps = ", ".join(f"{n} of {name}" for name, n in left_out.items())
    notes.append(f"operations for which the compiler estimates no cycles are excluded: {of_steps}")
  return "\n".join([head, "", *table, "", *notes])
