"""Finding and describing the devices of a run; errors say which were asked for."""

from __future__ import annotations

from typing import Any

import jax

from t5x.errors import T5XError, nearest

_NVIDIA = "an NVIDIA GPU that nvidia-smi shows, and JAX for it: pip install 'jax[cuda13]'"
# What JAX needs for the platforms it knows by name.
_NEEDS = {
  "cpu": "a CPU",
  "tpu": "a TPU that no other process uses, and JAX for it: pip install 'jax[tpu]'",
  "cuda": _NVIDIA,
  "gpu": _NVIDIA,
  "rocm": "an AMD GPU, and AMD's JAX plugin for it",
}


def find_devices(backend: str | None = None) -> list[Any]:
  """Returns the devices of all processes; starts JAX's backend.

  Args:
    backend: platform; None is the one JAX_PLATFORMS names, or the best available.

  Raises:
    T5XError: there is no device of that kind.
  """
  try:
    return jax.devices(backend)
  # JAX asserts where JAX_PLATFORMS names cuda and there is no NVIDIA GPU.
  except (RuntimeError, AssertionError) as e:
    raise _no_device(backend, e) from e


def describe_devices() -> str:
  """Returns for instance `32 x TPU v3 (tpu) of 4 processes`."""
  devices = find_devices()
  kind, platform = devices[0].device_kind, devices[0].platform
  name = kind if kind == platform else f"{kind} ({platform})"
  processes = len({device.process_index for device in devices})
  return f"{len(devices)} x {name}" + (f" of {processes} processes" if processes > 1 else "")


def _no_device(backend: str | None, error: Exception) -> T5XError:
  variable = jax.config.jax_platforms
  asked = backend or variable or ""
  said = " ".join(str(error).split()).partition(" (set JAX_PLATFORMS")[0]
  where = f"backend {backend!r}" if backend else f"JAX_PLATFORMS={asked}" if asked else "none"
  wanted = [name for name in asked.split(",") if name]
  unknown = [name for name in wanted if name not in _NEEDS and f"'{name}' is not in" in said]
  present = "" if backend else _present()
  if unknown:
    close = nearest(unknown[0], _NEEDS) or list(_NEEDS)
    return T5XError(
      f"JAX has no platform {unknown[0]!r}.",
      found=where,
      expected=", ".join(_NEEDS),
      available=present or None,
      fix=f"set JAX_PLATFORMS={close[0]}, or leave it unset to use the best available one.",
    )
  return T5XError(
    "No device of the requested kind is available.",
    found=f"{where}: {said or 'JAX finds no such device'}"[:300],
    expected="; ".join(_NEEDS[name] for name in wanted if name in _NEEDS) or None,
    available=present or None,
    fix="run it on a machine that has one, or unset JAX_PLATFORMS to use the best available."
    if asked
    else "set JAX_PLATFORMS=cpu to run without it.",
  )


def _present() -> str:
  """What JAX finds if it may choose; "" if that fails too, or other processes take part."""
  if not jax.config.jax_platforms or jax.distributed.is_initialized():
    return ""
  jax.config.update("jax_platforms", None)
  try:
    return describe_devices()
  except T5XError:
    return ""
