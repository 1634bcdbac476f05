"""How tests compile: quickly, as compiling takes most of their time, or as for users.

JAX reads the variable when it is imported, after this; so do the processes that tests start.
"""

import os

os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")

import pytest


@pytest.fixture(scope="module")  # before the module's other fixtures, which compile, too
def compiled_as_for_users():
  """Compiles with XLA's optimizations: for comparisons with recorded numbers."""
  import jax

  quickly = os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] == "1"
  jax.config.update("jax_disable_most_optimizations", False)
  yield
  jax.config.update("jax_disable_most_optimizations", quickly)
