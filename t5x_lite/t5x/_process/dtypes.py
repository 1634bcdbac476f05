"""Array dtypes as gin files name them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from t5x.errors import T5XError, nearest

_KNOWN = ("float32", "bfloat16", "float16", "float64")


def check_dtype(dtype: Any, name: str) -> None:
  """Raises T5XError unless `dtype` is None or a floating-point dtype.

  Args:
      dtype: a dtype or its name.
      name: the setting, for the message.
  """
  if dtype is None:
    return
  try:
    if jnp.issubdtype(jnp.dtype(dtype), jnp.floating):
      return
  except (TypeError, ValueError):
    pass
  close = nearest(str(dtype), _KNOWN, n=1) or ["float32"]
  raise T5XError(
    f"{name} is not a floating-point type.",
    found=repr(dtype),
    expected="a type, or its name",
    available=", ".join(_KNOWN),
    fix=f"{name} = {close[0]!r}",
  )
