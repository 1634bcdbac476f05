"""Saves that are killed (a real kill -9) or hit a full disk leave what a restart can use."""

import contextlib
import json
import os
import threading
import time

import numpy as np
import pytest
import run_crash
from etils import epath

from t5x import checkpoints
from t5x._checkpoint import write

# The steps that must be complete afterwards. The first checkpoint is deleted after the second
# save (keep=1): it is renamed, and only then deleted file by file.
EXPECTED = {
  "legacy-folder": [1],
  "legacy-arrays": [1],
  "legacy-index": [1],
  "legacy-rename": [1],
  "legacy-delete": [1, 2],
  "legacy-deleting": [2],
  "legacy-full": [1],
  "orbax-folder": [1],
  "orbax-rename": [1],
  "orbax-delete": [1, 2],
  "orbax-deleting": [2],
  "orbax-full": [1],
}
# On accelerators Orbax writes in the background.
EXPECTED |= {k.replace("orbax", "async"): v for k, v in EXPECTED.items() if "orbax" in k}


@pytest.fixture(scope="module")
def crashes(server, tmp_path_factory):
  root = tmp_path_factory.mktemp("crashes")
  results = json.loads(server.run_file("run_crash.py", root).splitlines()[-1])
  assert results.keys() == EXPECTED.keys()
  return root, results


@pytest.mark.long
@pytest.mark.parametrize("case", EXPECTED)
def test_what_is_left(crashes, case):
  root, results = crashes
  folder, result = root / case, results[case]
  if case.endswith("-full"):
    assert os.waitstatus_to_exitcode(result["status"]) == 1, result["text"]
  else:
    assert os.waitstatus_to_exitcode(result["status"]) == -9, result["text"]
  steps = EXPECTED[case]
  assert checkpoints.checkpoint_steps(folder) == steps
  choice = checkpoints.choose_checkpoint(str(folder))
  loaded = checkpoints.load_checkpoint(choice.path)
  for name, array in run_crash.State(steps[-1]).state_dict()["target"].items():
    np.testing.assert_array_equal(loaded["target"][name], array)

  # The next run continues in the same folder, and cleans up.
  checkpointer = run_crash.CLASSES[case.split("-")[0]](str(folder), keep=1)
  if steps == [1]:
    assert checkpointer.save(run_crash.State(2))
  assert checkpointer.save(run_crash.State(3))
  checkpointer.close()
  assert [p.name for p in folder.iterdir()] == ["checkpoint_3"]


@pytest.mark.long
@pytest.mark.parametrize("layout", ["legacy", "orbax", "async"])
def test_full_disk_message(crashes, layout):
  root, results = crashes
  folder, text = root / f"{layout}-full", results[f"{layout}-full"]["text"]
  assert "The checkpoint of step 2 could not be written." in text
  assert "File too large" in text
  assert f"free space in {folder}: " in text
  assert "with 800 kB free" in text  # 20 x 100 x 100 float32
  assert f"available: {folder}/checkpoint_1 is complete" in text
  assert "free space there, or keep fewer checkpoints (SaveCheckpointConfig.keep" in text
  assert f"continues from {folder}/checkpoint_1" in text


def test_what_other_threads_add_to_a_failed_save_is_removed(tmp_path):
  """Regression: Orbax's other writers went on for a moment, and a full disk kept their files."""

  def write_on():
    end = time.time() + 0.5
    while time.time() < end:
      with contextlib.suppress(OSError):  # removed in between
        folder = tmp_path / "checkpoint_3.orbax-checkpoint-tmp" / "state"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "part").write_text("x")
      time.sleep(0.02)

  (tmp_path / "checkpoint_2").mkdir()
  thread = threading.Thread(target=write_on)
  thread.start()
  write._remove_parts(epath.Path(tmp_path), 3)
  thread.join()
  assert [path.name for path in tmp_path.iterdir()] == ["checkpoint_2"]
