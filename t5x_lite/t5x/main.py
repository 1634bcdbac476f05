"""Runs any of the scripts by --run_mode.

  python -m t5x.main --run_mode=train --gin_file=FILE.gin --dry_run

With --dry_run it only reads and checks the gin configuration.
"""

from __future__ import annotations

from absl import flags

from t5x import _cli
from t5x.errors import UsageError, nearest, not_in_lite
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

_ENTRY_POINTS = {"train": train, "eval": evaluate, "infer": infer}
_ELSEWHERE = ("precompile", "export")


def main(argv) -> None:
  """Runs the entry point of --run_mode."""
  del argv
  mode = flags.FLAGS.run_mode
  if mode in _ELSEWHERE:
    raise not_in_lite(f"--run_mode={mode}")
  if mode not in _ENTRY_POINTS:
    raise UsageError(
      "--run_mode is missing." if mode is None else f"--run_mode={mode} is unknown.",
      available=", ".join(nearest(mode or "", _ENTRY_POINTS) or _ENTRY_POINTS),
      fix="python -m t5x.main --run_mode=train --gin_file=FILE.gin",
    )
  _cli.run_configured(_ENTRY_POINTS[mode])


if __name__ == "__main__":
  _cli.define_flags()
  define_infer_flags()
  flags.DEFINE_string("run_mode", None, "train, eval or infer.")
  _cli.run(main, __doc__)
