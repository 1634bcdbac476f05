"""Which dimensions of a parameter Adafactor's second moment is averaged over."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

import numpy as np

from t5x.errors import T5XError


class FactorDim(enum.Enum):
  """Role of a dimension when a second moment is factored."""

  NONE = None
  BATCH = 1  # one independent matrix per index, e.g. stacked layers
  ROW = 2
  COLUMN = 3


_ROLES = {
  "row": FactorDim.ROW,
  "col": FactorDim.COLUMN,
  "column": FactorDim.COLUMN,
  "batch": FactorDim.BATCH,
  "none": FactorDim.NONE,
  "unfactorized": FactorDim.NONE,
}


def role_of(axis: str, role: Any) -> FactorDim:
  """Returns the role of an axis, which T5X lets gin files name. Raises T5XError for other names."""
  if isinstance(role, FactorDim):
    return role
  if not isinstance(role, str) or role.lower() not in _ROLES:
    raise T5XError(
      f"adafactor.Adafactor.logical_factor_rules has an unknown role for axis {axis!r}.",
      found=repr(role),
      expected="an adafactor.FactorDim, or its name",
      available=", ".join(_ROLES),
      fix="set adafactor.Adafactor.logical_factor_rules",
    )
  return _ROLES[role.lower()]


@dataclasses.dataclass(frozen=True)
class Factoring:
  """Dimensions of one parameter: means over `columns` make v_row, over `rows` v_col.

  `averaged` are the dimensions over which root mean squares of updates and parameters run.
  """

  rows: tuple[int, ...]
  columns: tuple[int, ...]
  averaged: tuple[int, ...]

  @property
  def factored(self) -> bool:
    return bool(self.rows and self.columns)


def factoring_of(settings: Any, path: str, shape: tuple[int, ...]) -> Factoring:
  """Decides how the second moment of a parameter is kept.

  Args:
    settings: an `Adafactor`.
    path: of the parameter, joined by "/".
    shape: of the parameter.

  Raises:
    T5XError: no rule covers the parameter, or a rule does not fit it.
  """
  roles = _roles(settings, path, shape) if settings.factored else None
  averaged = tuple(range(len(shape)))
  if roles is not None:
    averaged = tuple(i for i in averaged if roles[i] is not FactorDim.BATCH)
  rows, columns = (), ()
  if roles is not None and (len(shape) > 2 or FactorDim.BATCH in roles):
    rows = tuple(i for i, role in enumerate(roles) if role is FactorDim.ROW)
    columns = tuple(i for i, role in enumerate(roles) if role is FactorDim.COLUMN)
  elif settings.factored and len(shape) >= 2:
    # Without rules, T5X factors the two largest dimensions, if both are large enough to pay.
    second, largest = (int(i) for i in np.argsort(shape, kind="stable")[-2:])
    if shape[second] >= settings.min_dim_size_to_factor:
      rows, columns = (second,), (largest,)
  if not (rows and columns):
    rows = columns = ()
  return Factoring(rows, columns, averaged)


def _roles(settings: Any, path: str, shape: tuple[int, ...]) -> list[FactorDim] | None:
  """Returns the role of each dimension by the rules; None without rules or axes."""
  if settings.logical_factor_rules is None:
    return None
  rules = dict(settings.logical_factor_rules)
  axes = dict(settings.axes_by_param).get(path)
  # A matrix without axes can be factored by size; of more dimensions it would be a guess.
  unknown = [name for name in axes or () if name is not None and name not in rules]
  if len(shape) > 2 and (axes is None or unknown):
    raise T5XError(
      found=f"parameter {path} of shape {shape} with logical axes {axes}",
      expected="a factor rule for each logical axis of a parameter of rank 3 or more",
      available=", ".join(sorted(rules)),
      fix="add the axis to adafactor.Adafactor.logical_factor_rules, or set that to None",
    )
  if axes is None:
    return None
  roles = [rules.get(name, FactorDim.NONE) for name in axes]
  if {FactorDim.ROW, FactorDim.COLUMN, FactorDim.NONE} <= set(roles):
    raise T5XError(
      found=f"parameter {path} with logical axes {axes}, which are {[r.name for r in roles]}",
      expected="no NONE beside ROW and COLUMN: batch for an axis that is not factored",
      fix="set adafactor.Adafactor.logical_factor_rules",
    )
  return roles
