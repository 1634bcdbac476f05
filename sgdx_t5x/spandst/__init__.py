"""Encoders: BERT for T5X, WordPiece for SeqIO, heads, and the models of encoder trackers.

Importing this loads neither TensorFlow nor JAX; `hidden_states` is imported on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from sgdx_t5x.spandst.states import hidden_states

__all__ = ["hidden_states"]


def __getattr__(name: str) -> Any:
  """Imports a public name when it is first used."""
  if name not in __all__:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  from sgdx_t5x.spandst import states

  return getattr(states, name)
