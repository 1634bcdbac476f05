"""Runs a function of a script as gin files configure it, as T5X's own scripts do theirs."""

import os
import sys
from collections.abc import Callable

import gin
import seqio

from t5x import gin_utils, utils


def run(function: Callable[..., None]) -> None:
  """Runs it with the gin files and bindings of the command line: DATA_DIR FILE... -- BINDING..."""
  divider = sys.argv.index("--")
  gin_files, bindings = sys.argv[2:divider], sys.argv[divider + 1 :]
  seqio.set_tfds_data_dir_override(sys.argv[1])
  configured = gin.configurable(function)
  paths = [".", os.path.dirname(os.path.dirname(utils.__file__))]
  gin_utils.parse_gin_flags(paths, gin_files, bindings)
  configured()
