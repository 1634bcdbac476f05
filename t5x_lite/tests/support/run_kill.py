"""Kills its own process with SIGKILL at a given point, for the tests of survival.

RUN_KILL='{"events": N}'                 at the Nth change to files below MODEL_DIR (Python's own
                                         audit events: open for writing, mkdir, rename, ...)
RUN_KILL='{"events": N, "delay": S}'     S seconds after it: into what other threads write
RUN_KILL='{"seconds": S}'                S seconds after the gin files are read
RUN_KILL='{"count": "FILE"}'             not at all: FILE gets {"events": N, "seconds": S} at exit
"""

import atexit
import json
import os
import pathlib
import signal
import sys
import threading
import time

_CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree", "os.truncate")


def _die():
  os.kill(os.getpid(), signal.SIGKILL)


def _die_in(seconds):
  def sleep_and_die():
    time.sleep(seconds)
    _die()

  threading.Thread(target=sleep_and_die, daemon=True).start()


def _arm(point, model_dir):
  started, seen = time.time(), 0

  def hook(name, args):
    nonlocal seen
    writes = name == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
    if not writes and name not in _CHANGES:
      return
    if model_dir not in str(args[0]):
      return
    seen += 1
    if seen == point.get("events"):
      if point.get("delay"):
        _die_in(point["delay"])
      else:
        _die()

  sys.addaudithook(hook)
  if "seconds" in point:
    _die_in(point["seconds"])
  if "count" in point:
    report = lambda: {"events": seen, "seconds": time.time() - started}  # noqa: E731
    path = pathlib.Path(point["count"])
    atexit.register(lambda: path.write_text(json.dumps(report())))


if "RUN_KILL" in os.environ:
  _arm(json.loads(os.environ["RUN_KILL"]), os.environ["RUN_KILL_DIR"])
