"""What tests of the scripts share."""

import os
import pathlib

SUPPORT = pathlib.Path(__file__).resolve().parent
T5X_LITE = SUPPORT.parent.parent
NO_EVAL = (
  "--gin.train.train_eval_dataset_cfg=None",
  "--gin.train.infer_eval_dataset_cfg=None",
)
# Compiling is what the time of tests goes to. XLA's newer code generator of the CPU takes twice as
# long as the older one, and 32 modules per program take longer than one.
QUICKLY_COMPILED = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
EIGHT_DEVICES = {"XLA_FLAGS": f"{QUICKLY_COMPILED} --xla_force_host_platform_device_count=8"}


def compile_quickly():
  """Sets XLA's flags for this process, if it has no JAX backend yet, and for those it starts."""
  flags = os.environ.get("XLA_FLAGS", "")
  if QUICKLY_COMPILED not in flags:  # pytest-xdist's workers have them from their parent
    os.environ["XLA_FLAGS"] = f"{flags} {QUICKLY_COMPILED}".strip()
