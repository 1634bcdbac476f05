"""A name that commands a terminal, and a corpus that has it."""

import json
import pathlib

import tiny_corpus

# A window's title (OSC), a colour (CSI, with ESC and with C1), back to the start of the line, a
# right-to-left override, and a line of its own.
HOSTILE = "B\x1b]0;owned\x07\x1b[31m\x9b31m\rx\u202ey\u2066z\nsgdx: fine_1"


def write_hostile_corpus(folder: pathlib.Path) -> pathlib.Path:
  """Writes a corpus with a service and a slot of hostile names. Returns the folder."""
  tiny_corpus.write_corpus(folder)
  for file in folder.rglob("*.json"):
    text = file.read_text()
    for name in ("Banks_1", "kind"):
      text = text.replace(f'"{name}"', json.dumps(HOSTILE + name[:1]))
    file.write_text(text)
  return folder
