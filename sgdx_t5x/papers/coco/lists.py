"""Lists of names or values that a user gives for each kind of slot."""

import pathlib

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import decode_json, is_text, read_input


def read_lists(
  path: pathlib.Path, kinds: set[str], what: str, instead: str, whose: str
) -> dict[str, list[str]]:
  """Reads a JSON object: kind of slot -> texts; the file is then protected from being written.

  Args:
    path: of the file.
    kinds: those that it must have.
    what: what the texts are, for messages: "names".
    instead: alternatives to a file, for messages.
    whose: whose kinds these are, for messages.

  Raises:
    SgdxError: no such file, or it does not contain such lists.
  """
  expected = f'{{"city": ["Elmport", ...], ...}}: {what} for each kind of slot'
  text = read_input(path, f"{instead}, or a JSON file of {what}")
  data = decode_json(text, str(path), expected, "correct the file")
  is_lists = isinstance(data, dict) and all(
    isinstance(texts, list) and all(is_text(x) and x.strip() == x != "" for x in texts)
    for texts in data.values()
  )
  if not is_lists or any(not data.get(kind) for kind in kinds):
    raise SgdxError(
      f"{path}: {what} for {', '.join(data) if isinstance(data, dict) and data else 'no kind'}",
      expected=expected,
      available=f"kinds of {whose}: {', '.join(sorted(kinds))}",
      fix=f"list {what}, without surrounding whitespace, for each of these kinds",
    )
  return data
