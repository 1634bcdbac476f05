"""What tests of the scripts share."""

import pathlib

SUPPORT = pathlib.Path(__file__).resolve().parent
T5X_LITE = SUPPORT.parent.parent
NO_EVAL = (
  "--gin.train.train_eval_dataset_cfg=None",
  "--gin.train.infer_eval_dataset_cfg=None",
)
EIGHT_DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
