"""What the names of a family's tasks and mixtures end in, as tasks/README.md lists them."""

from sgdx_t5x.tasks import REGISTERED

VARIANTS = ["v1", "v2", "v3", "v4", "v5"]
SUFFIXES = [
  "sgd", *(f"sgdx_{v}" for v in VARIANTS), "sgdx", "sgd_sgdx",
  "sgd_bt_zh", "sgd_bt_ja", "sgd_bt_ko", "sgd_corrupt_1", "sgd_corrupt_2", "sgd_corrupt_3",
  "backtrans", "oracle", "corrupt", "all_variants",
]  # fmt: skip
# Of SGD, not of the sample.
PARAPHRASED = [
  *(f"sgd_para_{k}" for k in range(1, 16)),
  "paraphrase", "paraphrase_3", "paraphrase_15", "reworded",
]  # fmt: skip
# Families of the core, each also of the sample.
FAMILIES = ["t5dst", "d3st", "sdt", "state", "spandst"]


def unregistered(families: list[str], suffixes: list[str]) -> set[str]:
  """The names that are not registered, of families and of their counterparts on the sample."""
  names = {f"{prefix}{f}_{s}" for prefix in ("", "sample_") for f in families for s in suffixes}
  return names - REGISTERED.keys()
