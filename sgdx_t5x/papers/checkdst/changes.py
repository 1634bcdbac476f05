"""changes.jsonl: one line per changed dialogue or turn, with all that is needed to undo it."""

from collections.abc import Iterable

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import decode_lines
from sgdx_t5x.files.writing import json_line
from sgdx_t5x.papers.checkdst.split import Line

_EXPECTED = 'a line {"dialogue_id": ..., ...} written by `sgdx checkdst perturb`'


def changes_name(split: str, step: int | None = None) -> str:
  """Returns the file's name, for the last step or an earlier one (counted from 1)."""
  return f"{split}/changes.jsonl" if step is None else f"{split}/changes_{step}.jsonl"


def encode_lines(lines: Iterable[Line]) -> str:
  """Returns the lines as JSON Lines text."""
  return "".join(map(json_line, lines))


def read_changes(corpus: Corpus, split: str, step: int | None = None) -> dict[str, list[Line]]:
  """Returns dialogue id -> its lines, for the last step or an earlier one.

  Raises:
    SgdxError: no such file, or a line that is not from `sgdx checkdst perturb`.
  """
  name = changes_name(split, step)
  origin = f"{corpus.origin}: {name}"
  try:
    raw = corpus.source.read(name)
  except (OSError, KeyError):
    raise SgdxError(
      f"no {origin}",
      expected="the changes, next to perturbation.json",
      fix="copy the whole folder that `sgdx checkdst perturb` wrote, or perturb the original again",
    ) from None
  found: dict[str, list[Line]] = {}
  for where, line in decode_lines(raw, origin, _EXPECTED, "perturb the original again"):
    if not isinstance(line, dict) or not isinstance(line.get("dialogue_id"), str):
      raise SgdxError(f"{where}: no change", expected=_EXPECTED, fix="perturb the original again")
    found.setdefault(line["dialogue_id"], []).append(line)
  return found
