"""Lines for the user on stderr."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import textwrap

from absl import flags

_FLAGS = flags.FLAGS


def log(message: str) -> None:
  """Writes one line for the user to stderr (first process only)."""
  jax = sys.modules.get("jax")
  # In a program that is not one of T5X's scripts, there is no such flag.
  is_script = _FLAGS.is_parsed() and "multiprocess_gpu" in _FLAGS
  distributed = is_script and _FLAGS["multiprocess_gpu"].value
  if jax is not None and distributed and jax.process_index() != 0:
    return
  say(f"t5x: {message}")


def say(text: str) -> None:
  """Writes to stderr; on a terminal, wraps between words."""
  if sys.stderr.isatty():
    text = folded(text, terminal_columns())
  with contextlib.suppress(BrokenPipeError):  # nobody reads: no reason to lose a training state
    print(text, file=sys.stderr, flush=True)


def folded(text: str, columns: int) -> str:
  """Wraps lines wider than `columns`; an error's parts get a hanging indent.

  >>> print(folded("  fix:       set BATCH_SIZE to 16", 27))
    fix:       set BATCH_SIZE
               to 16
  """
  lines = []
  for line in text.split("\n"):
    if len(line) <= columns:
      lines.append(line)
      continue
    name = re.findall(r"^(?:  \w+: +|t5x: | *)", line)[0]
    fold = textwrap.TextWrapper(
      columns,
      initial_indent=name,
      subsequent_indent=" " * len(name),
      break_long_words=False,
      break_on_hyphens=False,
    )
    lines += fold.wrap(line[len(name) :])
  return "\n".join(lines)


def terminal_columns() -> int:
  """Columns of the terminal behind stderr, which can change at any time."""
  try:
    columns = os.get_terminal_size(sys.stderr.fileno()).columns
  except (OSError, ValueError, AttributeError):  # no file, or not a terminal
    columns = 0
  return columns or shutil.get_terminal_size().columns  # some terminals say 0: then COLUMNS, or 80
