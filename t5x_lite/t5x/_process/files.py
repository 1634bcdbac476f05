"""Writing small files, which several processes of a machine or a cluster may do at once."""

from __future__ import annotations

import os
import socket

from etils import epath


def replace_text(path: epath.PathLike, text: str) -> None:
  """Writes a file, whose folder is created, or replaces it; readers never see a part of it."""
  path = epath.Path(path)
  path.parent.mkdir(parents=True, exist_ok=True)
  part = path.with_name(f"{path.name}.{socket.gethostname()}-{os.getpid()}.tmp")
  part.write_text(text)
  part.replace(path)
