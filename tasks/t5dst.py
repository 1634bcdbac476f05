"""The names of `registration.py` under an earlier path, which task modules of users import."""

from sgdx_t5x.tasks.registration import (
  REGISTERED,
  Registered,
  register,
  register_family,
  register_mixture,
  register_variant,
  register_wording,
)

__all__ = [
  "REGISTERED",
  "Registered",
  "register",
  "register_family",
  "register_mixture",
  "register_variant",
  "register_wording",
]
