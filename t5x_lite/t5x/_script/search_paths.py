"""Folders of gin files that installed packages provide."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os

GROUP = "t5x.gin_search_paths"


def installed_search_paths() -> list[str]:
  """Returns the folders that installed packages add to the search path for gin files.

  A distribution names one by an entry point of the group `t5x.gin_search_paths`: the value is a
  package that holds gin files, and the folder is the parent of that package. The files of
  `some_project.gin` are thus found as `gin/FILE.gin`, as from the root of that project.
  """
  folders: dict[str, None] = {}
  for entry in importlib.metadata.entry_points(group=GROUP):
    try:
      spec = importlib.util.find_spec(entry.value)
    except ImportError:  # the distribution is broken: whatever needs its files will report it
      continue
    for folder in (spec.submodule_search_locations or ()) if spec else ():
      folders[os.path.dirname(folder)] = None
  return list(folders)
