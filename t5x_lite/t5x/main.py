"""Runs any of the scripts by --run_mode.

  python -m t5x.main --run_mode=train --gin_file=FILE.gin --dry_run
  python -m t5x.main --run_mode=aot --aot_topology=v3:4x4 --gin_file=FILE.gin

With --dry_run it only reads and checks the gin configuration. The mode aot
compiles the steps of a training run for a TPU slice without having one, and
reports whether they fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from absl import flags

from t5x import aot
from t5x._script import cli
from t5x.errors import UsageError, not_in_lite
from t5x.eval import evaluate
from t5x.infer import create_task_from_tfexample_file, infer, write_inferences_to_file
from t5x.infer import define_flags as define_infer_flags
from t5x.train import train

# Gin files find these as attributes of __main__.
__all__ = [
  "create_task_from_tfexample_file",
  "evaluate",
  "infer",
  "main",
  "train",
  "write_inferences_to_file",
]

_ENTRY_POINTS: Mapping[str, Callable[..., Any]] = {"train": train, "eval": evaluate, "infer": infer}


def main(argv) -> None:
  """Runs the entry point of --run_mode."""
  del argv
  mode = flags.FLAGS.run_mode
  if mode in ("precompile", "export"):
    raise not_in_lite(f"--run_mode={mode}")
  if mode == "aot":
    aot.run(train)
    return
  modes = [*_ENTRY_POINTS, "aot"]
  if mode not in _ENTRY_POINTS:
    raise UsageError(
      "--run_mode is missing." if mode is None else f"--run_mode={mode} is unknown.",
      available=", ".join(modes),
      fix="python -m t5x.main --run_mode=train --gin_file=FILE.gin",
    )
  cli.run_configured(_ENTRY_POINTS[mode])


if __name__ == "__main__":
  cli.define_flags()
  define_infer_flags()
  flags.DEFINE_string("run_mode", None, "train, eval, infer or aot.")
  flags.DEFINE_string("aot_topology", None, "TPU slice to compile for: v3:4x4, v3-32, v5e:4x8, ...")
  flags.DEFINE_list("aot_steps", list(aot.STEPS), "Steps to compile: train,eval,decode.")
  flags.DEFINE_string("aot_json", None, "Also write the figures of --run_mode=aot to this file.")
  cli.run(main, __doc__)
