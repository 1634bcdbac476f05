"""Stand-ins for TensorFlow and SeqIO, so that T5X can be imported on a machine without them.

The modules of T5X and of SpanDST name their classes in signatures, in base classes and in tests of
types. A training step or an answer calls none of them, and a stand-in does nothing when called.
"""

from __future__ import annotations

import importlib.util
import sys
import types


class _StandInType(type):
  def __getattr__(cls, name: str) -> type:
    if name.startswith("__"):
      raise AttributeError(name)
    return _stand_in(name)


def _stand_in(name: str) -> type:
  return _StandInType(name, (), {"__init__": lambda self, *args, **options: None})


class _StandInModule(types.ModuleType):
  def __getattr__(self, name: str) -> type:
    if name.startswith("__"):
      raise AttributeError(name)
    return _stand_in(name)


def stand_in() -> list[str]:
  """Puts stand-ins where the modules are not installed; returns their names."""
  missing = [x for x in ("tensorflow", "seqio") if importlib.util.find_spec(x) is None]
  for name in missing:
    sys.modules[name] = _StandInModule(name)
  return missing
