"""How tests compile: quickly, as compiling takes most of their time, or as for users.

pytest's workers and the processes that tests start share compiled programs, apart from the user's
cache: the first process of a session creates the folder, the others inherit its name.

JAX and XLA read the variables when JAX is imported, after this; so do the processes that tests
start.
"""

import atexit
import os
import shutil
import tempfile

from run_scripts import QUICKLY_COMPILED

os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
if QUICKLY_COMPILED not in os.environ.get("XLA_FLAGS", ""):  # as pytest's workers inherit it
  os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICKLY_COMPILED}".strip()
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
  os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="t5x_jax_cache_")
  atexit.register(shutil.rmtree, os.environ["JAX_COMPILATION_CACHE_DIR"], ignore_errors=True)
# By default, JAX keeps only programs that take a second to compile.
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import pytest

# XLA's own values of what QUICKLY_COMPILED sets.
_AS_FOR_USERS = {
  "xla_cpu_use_fusion_emitters": True,
  "xla_cpu_parallel_codegen_split_count": 32,
}


@pytest.fixture(scope="module")  # before the module's other fixtures, which compile, too
def compiled_as_for_users():
  """Compiles with XLA's optimizations: for comparisons with recorded numbers."""
  import jax
  from jax._src import compiler

  options = compiler.get_compile_options  # JAX has no setting: XLA reads its flags once a process

  def users_options(*args, env_options_overrides=None, **kwargs):
    overrides = _AS_FOR_USERS | (env_options_overrides or {})
    return options(*args, env_options_overrides=overrides, **kwargs)

  quickly = os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] == "1"
  jax.config.update("jax_disable_most_optimizations", False)
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(compiler, "get_compile_options", users_options)
    yield
  jax.config.update("jax_disable_most_optimizations", quickly)
