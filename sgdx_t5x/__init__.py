"""Robustness of schema-guided dialogue state tracking: SGD-X, scores, T5DST with T5X and SeqIO."""

import pathlib

_HERE = pathlib.Path(__file__).resolve().parent

# An installed package holds tasks/ and metrics/ itself. In a checkout they lie beside it, and must
# also be found when the repository's root comes first on the path and hides an installed package.
if not (_HERE / "tasks").is_dir():
  __path__.append(str(_HERE.parent))
