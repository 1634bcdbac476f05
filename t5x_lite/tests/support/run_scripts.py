"""What tests of the scripts share."""

import pathlib

SUPPORT = pathlib.Path(__file__).resolve().parent
T5X_LITE = SUPPORT.parent.parent
NO_EVAL = (
  "--gin.train.train_eval_dataset_cfg=None",
  "--gin.train.infer_eval_dataset_cfg=None",
)
# XLA's newer code generator of the CPU takes twice as long as the older one, and 32 modules per
# program take longer than one.
QUICKLY_COMPILED = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
EIGHT_DEVICES = {"XLA_FLAGS": f"{QUICKLY_COMPILED} --xla_force_host_platform_device_count=8"}
