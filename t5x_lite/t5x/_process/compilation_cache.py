"""The folder compiled programs are kept in between runs. Re-exported by `t5x.utils`."""

from __future__ import annotations

import os

import gin

from t5x._process.log import log

DEFAULT = "default"


def default_folder() -> str:
  """Returns `t5x_lite/jax` in $XDG_CACHE_HOME or ~/.cache."""
  base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
  return os.path.join(base, "t5x_lite", "jax")


@gin.configurable(module="t5x.utils")
def compilation_cache(folder: str | None = DEFAULT) -> str | None:
  """Makes JAX keep compiled programs, so that the next run need not compile them again.

  The scripts call this before anything is compiled. In a gin file that imports `t5x.utils`
  (Google's T5X has no such function: leave the line out there):

    utils.compilation_cache.folder = '/scratch/jax_cache'   # or 'gs://...', or None: no cache

  The environment variable JAX_COMPILATION_CACHE_DIR wins over it.

  Args:
      folder: where to keep them; 'default' is `default_folder()`, None keeps nothing.

  Returns:
      The folder in use, or None.
  """
  import jax

  from_environment = os.environ.get("JAX_COMPILATION_CACHE_DIR")
  if from_environment:
    folder = from_environment
  elif folder == DEFAULT:
    folder = default_folder()
  if folder and "://" not in folder:
    folder = os.path.expanduser(folder)
    try:
      os.makedirs(folder, exist_ok=True)
    except OSError as e:  # a read-only home only costs compile time
      log(f"no compilation cache: {e}; set utils.compilation_cache.folder")
      folder = None
  jax.config.update("jax_compilation_cache_dir", folder or None)
  jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
  jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
  return folder or None
