"""Encodes dialogue files in the layout that they had: SGD's, or one dialogue per line."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

_LIKE_SGD = json.JSONEncoder(indent=2, sort_keys=True).encode
_ON_A_LINE = json.JSONEncoder(sort_keys=True).encode


def encode_like(original: bytes, dialogues: list[dict[str, Any]]) -> bytes:
  """Encodes dialogues in the layout of the file that they are from.

  SGD indents by two and sorts keys; `sgdx simulate` writes one dialogue per line. Other layouts
  become SGD's: their content is the same, their bytes are not.
  """
  if original.startswith(b"[\n{") and dialogues:
    return encode_on_lines(dialogues)
  end = "\n" if original.endswith(b"\n") else ""
  return f"{_LIKE_SGD(dialogues)}{end}".encode()


def encode_on_lines(dialogues: Sequence[Mapping[str, Any]]) -> bytes:
  """Encodes dialogues as a list, one per line."""
  return ("[\n" + ",\n".join(map(_ON_A_LINE, dialogues)) + "\n]\n").encode()
