"""Folders of gin files that installed packages bring."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os

GROUP = "t5x.gin_search_paths"


def installed_search_paths() -> list[str]:
  """Returns the folders in which installed packages want gin files to be looked for.

  A distribution names one by an entry point of the group `t5x.gin_search_paths`: the value is a
  package that holds gin files, and the folder is the one that the package lies in. The files of
  `some_project.gin` are thus found as `gin/FILE.gin`, as from the root of that project.
  """
  folders: dict[str, None] = {}
  for entry in importlib.metadata.entry_points(group=GROUP):
    try:
      spec = importlib.util.find_spec(entry.value)
    except ImportError:  # the distribution is broken: what needs its files will say so
      continue
    for folder in (spec.submodule_search_locations or ()) if spec else ():
      folders[os.path.dirname(folder)] = None
  return list(folders)
