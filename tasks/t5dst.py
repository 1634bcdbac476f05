"""Former path of `registration.py`, kept for users' task modules that import it."""

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
