"""Encoders: BERT for T5X, WordPiece for SeqIO, heads, and the models of encoder trackers.

Importing this loads neither TensorFlow nor JAX; `hidden_states` is imported on first use.
"""

from typing import Any


def __getattr__(name: str) -> Any:
  if name != "hidden_states":
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  from sgdx_t5x.spandst.states import hidden_states

  return hidden_states
