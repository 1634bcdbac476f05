"""Small test cases for scorers of tool calls. See README.md."""

import gzip
import importlib.resources
import json
from collections.abc import Iterator
from typing import Any


def cases() -> Iterator[dict[str, Any]]:
  """Yields the cases described in the README."""
  file = importlib.resources.files(__package__) / "cases.jsonl.gz"
  yield from map(json.loads, gzip.decompress(file.read_bytes()).splitlines())
