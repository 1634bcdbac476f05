"""Lines for the user on stderr."""

from __future__ import annotations

import sys

from absl import flags

_FLAGS = flags.FLAGS


def log(message: str) -> None:
  """Writes one line for the user to stderr (first process only)."""
  jax = sys.modules.get("jax")
  # In a program that is not one of T5X's scripts, there is no such flag.
  known = _FLAGS.is_parsed() and "multiprocess_gpu" in _FLAGS
  distributed = known and _FLAGS["multiprocess_gpu"].value
  if jax is not None and distributed and jax.process_index() != 0:
    return
  print(f"t5x: {message}", file=sys.stderr, flush=True)
