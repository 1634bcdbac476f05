"""Finding and describing the devices of a run; errors say which were asked for."""

from __future__ import annotations

from typing import Any

import jax

from t5x.errors import T5XError

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
    # JAX's settings are attributes that its types do not tell.
    platforms = backend or jax.config.jax_platforms or ""  # type: ignore[attr-defined]
    needs = [_NEEDS[name] for name in platforms.split(",") if name in _NEEDS]
    raise T5XError(
      "No device of the requested kind is available.",
      found=f"{platforms or 'no JAX_PLATFORMS'}: {' '.join(str(e).split())}"[:300],
      expected="; ".join(needs) or ", ".join(_NEEDS),
      fix="run it on a machine that has one, or unset JAX_PLATFORMS to use the best available.",
    ) from e


def describe_devices() -> str:
  """Returns for instance `32 x TPU v3 (tpu) of 4 processes`."""
  devices = find_devices()
  kind, platform = devices[0].device_kind, devices[0].platform
  name = kind if kind == platform else f"{kind} ({platform})"
  processes = len({device.process_index for device in devices})
  return f"{len(devices)} x {name}" + (f" of {processes} processes" if processes > 1 else "")
