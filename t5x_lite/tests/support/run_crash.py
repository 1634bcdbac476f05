"""Saves checkpoints in child processes that are killed, or whose disk is full, on the way.

  python run_crash.py FOLDER

Prints {case: {"status": wait status, "text": what the child wrote to stderr}} as JSON. One process
that forks is quicker than one start of Python and JAX per case; no JAX backend runs in the parent.
"""

import json
import os
import pathlib
import resource
import signal
import sys
import threading
import time
import traceback

import jax.numpy as jnp
import numpy as np

from t5x import checkpoints
from t5x._checkpoint import write
from t5x.errors import T5XError

# What kills the child: (audit event, part of its first argument), or None for a first data file.
POINTS = {
  "legacy": {
    "folder": ("os.mkdir", "checkpoint_2.tmp"),
    "arrays": None,
    "index": ("open", "/checkpoint"),
    "rename": ("os.rename", "checkpoint_2.tmp"),
    "delete": ("os.rename", "checkpoint_1"),
    "deleting": ("shutil.rmtree", "-deleted"),
  },
  "orbax": {
    "folder": ("os.mkdir", "checkpoint_2"),
    "rename": ("os.rename", "checkpoint_2"),
    "delete": ("os.rename", "checkpoint_1"),
    "deleting": ("shutil.rmtree", "-deleted"),
  },
}
POINTS["async"] = POINTS["orbax"]
CLASSES = {
  "legacy": checkpoints.Checkpointer,
  "orbax": checkpoints.OrbaxCheckpointManagerInterface,
  "async": checkpoints.OrbaxCheckpointManagerInterface,
}


class State:
  """A train state of 20 arrays of 40 kB of noise, which does not compress."""

  def __init__(self, step):
    self.step = jnp.int32(step)

  def state_dict(self):
    noise = np.random.default_rng(int(self.step)).normal(size=(20, 100, 100)).astype(np.float32)
    arrays = {f"a{i}": jnp.asarray(x) for i, x in enumerate(noise)}
    return {"target": arrays, "state": {"step": self.step}}


def _die(*_):
  os.kill(os.getpid(), signal.SIGKILL)


def _arm(point, folder):
  """Kills this process at `point` of the next save."""
  if point is None:

    def watch():
      while not any(p.is_file() for p in folder.glob("checkpoint_2.tmp*/*/*")):
        time.sleep(1e-4)
      _die()

    threading.Thread(target=watch, daemon=True).start()
    return
  event, part = point

  def hook(name, args):
    path = str(args[0]) if args and isinstance(args[0], (str, os.PathLike)) else ""
    if name == event and (path.endswith(part) if name == "open" else part in path):
      _die()

  sys.addaudithook(hook)


def _child(layout, case, folder):
  if layout == "async":  # as on accelerators
    write._in_background = lambda: True
  # Keep 1: the second save also deletes the first checkpoint.
  checkpointer = CLASSES[layout](str(folder), keep=1)
  checkpointer.save(State(1))
  checkpointer.wait()
  if case == "full":
    sys.dont_write_bytecode = True  # which Python 3.11 would cut off at the limit
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
  else:
    _arm(POINTS[layout][case], folder)
  try:
    checkpointer.save(State(2))
    checkpointer.wait()
  except T5XError as e:
    print(e.text, file=sys.stderr)
    checkpointer.close()
    os._exit(e.exit_code)


def _run(layout, case, folder):
  read, write = os.pipe()
  pid = os.fork()
  if pid == 0:
    os.dup2(write, 2)
    try:
      _child(layout, case, folder)
      os._exit(0)
    except BaseException:
      traceback.print_exc()
      sys.stderr.flush()
      os._exit(77)
  os.close(write)
  with os.fdopen(read) as f:
    text = f.read()
  return {"status": os.waitpid(pid, 0)[1], "text": text}


def main(root):
  """Runs all cases."""
  results = {}
  for layout, points in POINTS.items():
    for case in [*points, "full"]:
      folder = pathlib.Path(root) / f"{layout}-{case}"
      folder.mkdir()
      results[f"{layout}-{case}"] = _run(layout, case, folder)
  print(json.dumps(results))


if __name__ == "__main__":
  main(sys.argv[1])
