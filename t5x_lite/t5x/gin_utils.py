"""Gin for T5X scripts, under T5X's names: parsing, config.gin, helpers of gin files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import gin
from absl import app
from etils import epath

from t5x._process.files import replace_text
from t5x._script import cli
from t5x._script.gin_config import parse_gin_flags, rewrite_gin_args

__all__ = [
  "bool_fn",
  "get_gin_config_str",
  "parse_gin_flags",
  "rewrite_gin_args",
  "run",
  "string_split_fn",
  "sum_fn",
  "summarize_gin_config",
]


def get_gin_config_str() -> str:
  """Returns the parsed configuration as gin text."""
  return gin.config_str()


def summarize_gin_config(model_dir: str, summary_writer=None, step: int = 0) -> None:
  """Writes the parsed configuration to MODEL_DIR/config.gin (first process only).

  Args:
      model_dir: folder; it is created.
      summary_writer: a clu metric writer that also gets the text, or None.
      step: step for the writer.
  """
  import jax

  if jax.process_index() != 0:
    return
  text = gin.config_str()
  replace_text(epath.Path(model_dir) / "config.gin", text)
  if summary_writer is not None:
    summary_writer.write_texts(step, {"config": gin.markdown(text)})
    summary_writer.flush()


def run(main: Callable[[Sequence[str]], Any]) -> None:
  """Runs `main(argv)` of a script with flags of its own and exits, as T5X's `gin_utils.run` does.

  `--gin.NAME=VALUE` goes to the flag `gin_bindings`, which the script defines; argv has the
  program's name and the positional arguments. Errors and exit codes: `cli.run_script`.
  """

  def parse_and_run() -> None:
    app.define_help_flags()
    main(app.parse_flags_with_usage([sys.argv[0], *rewrite_gin_args(sys.argv[1:])]))

  cli.run_script(parse_and_run)


@gin.configurable(module="t5x.gin_utils")
def sum_fn(var1=gin.REQUIRED, var2=gin.REQUIRED):
  """Returns var1 + var2, for sums in gin files: `TRAIN_STEPS = @gin_utils.sum_fn()`."""
  return var1 + var2


@gin.configurable(module="t5x.gin_utils")
def bool_fn(var1=gin.REQUIRED) -> bool:
  """Returns bool(var1)."""
  return bool(var1)


@gin.configurable(module="t5x.gin_utils")
def string_split_fn(
  text: str = gin.REQUIRED, separator: str = gin.REQUIRED, maxsplit: int = -1, index=None
) -> Iterable[str] | str:
  """Splits `text` at `separator`; with `index`, returns that part only."""
  pieces = text.split(separator, maxsplit)
  return pieces if index is None else pieces[index]
