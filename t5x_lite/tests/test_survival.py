"""Killed training resumes as if nothing had happened."""

import concurrent.futures
import json
import random
import signal
import time

import numpy as np
import pytest
from events import scalars

from t5x import checkpoints
from t5x._checkpoint.read import flatten

STEPS = 12  # a checkpoint every 4


def _args(folder, steps=STEPS):
  return "train", "run_kill.gin", f"--gin.MODEL_DIR='{folder}'", f"--gin.TRAIN_STEPS={steps}"


def _env(folder, point):
  return {"RUN_KILL": json.dumps(point), "RUN_KILL_DIR": str(folder)}


def _final(folder):
  loaded = checkpoints.load_checkpoint(str(folder / f"checkpoint_{STEPS}"))
  return flatten(loaded)


@pytest.fixture(scope="module")
def reference(server, tmp_path_factory):
  """An undisturbed run: (losses, last checkpoint, number of file changes, seconds)."""
  root = tmp_path_factory.mktemp("reference")
  folder = root / "run"
  server.run(*_args(folder), env=_env(folder, {"count": str(root / "count.json")}))
  losses = scalars(folder / "train", "loss")
  assert sorted(losses) == list(range(1, STEPS + 1))
  assert len({tuple(v) for v in losses.values()}) > STEPS / 2
  count = json.loads((root / "count.json").read_text())
  return losses, _final(folder), count["events"], min(count["seconds"], 4)  # it also compiled


def _check_same(folder, reference):
  """Every loss that any run wrote, and the last state, are those of the undisturbed run."""
  assert scalars(folder / "train", "loss") == reference[0]
  final = _final(folder)
  assert final.keys() == reference[1].keys()
  for name, array in final.items():
    np.testing.assert_array_equal(array, reference[1][name], err_msg=name)


def _point(rng, events, seconds):
  """Draws a point to kill at: with equal chances at a file change, shortly after one, at any time.

  Changes are from the first half of a whole run: one resumed from a checkpoint makes fewer.
  """
  kind = rng.choice(["event", "after", "time"])
  if kind == "time":
    return {"seconds": rng.uniform(0, seconds)}
  delay = {"delay": rng.uniform(0, 0.1)} if kind == "after" else {}
  return {"events": rng.randint(1, events // 2), **delay}


def _survive(server, root, seed, kills, reference):
  """Kills runs `kills` times, each resuming where the previous one was killed.

  Returns:
      Counts: {"kills", "in a save", "runs completed"}.
  """
  rng, hits = random.Random(seed), {"kills": 0, "in a save": 0, "runs completed": 0}
  while hits["kills"] < kills:
    folder, ended = root / f"{seed}-{hits['runs completed']}", False
    while not ended:
      disturbed = hits["kills"] < kills
      point = _point(rng, reference[2], reference[3]) if disturbed else {}
      code, err = server.start(*_args(folder), env=_env(folder, point)).wait()
      assert code in (0, -signal.SIGKILL), f"{point}: {err[-3000:]}"
      ended = code == 0
      hits["kills"] += not ended
      hits["in a save"] += any(folder.glob("checkpoint_*tmp*"))
    _check_same(folder, reference)
    hits["runs completed"] += 1
  return hits


def _survive_all(server, root, kills, processes, reference):
  """Runs `_survive` in several threads at once; returns the sums of the counts."""

  def one(seed):
    return _survive(server, root, seed, kills // processes, reference)

  with concurrent.futures.ThreadPoolExecutor(processes) as pool:
    parts = list(pool.map(one, range(processes)))
  return {name: sum(part[name] for part in parts) for name in parts[0]}


@pytest.mark.slow
@pytest.mark.long  # two to three minutes on two cores
def test_fifty_kills(server, tmp_path, reference, record_property):
  started = time.time()
  hits = _survive_all(server, tmp_path, 50, 2, reference)
  record_property("report", f"survived {hits} in {time.time() - started:.0f} s")
  assert hits["kills"] == 50
  assert hits["in a save"] >= 5
