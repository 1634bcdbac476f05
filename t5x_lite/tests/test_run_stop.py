"""`python -m t5x.train` that is asked to stop."""

import re
import signal

from t5x import checkpoints


def test_a_stop_waits_for_two_steps_at_most(server, tmp_path):
  """The running step and the dispatched one, not the 32 that JAX lets the host run ahead."""
  err = server.run(
    "train",
    "run_slow.gin",
    f"--gin.MODEL_DIR='{tmp_path}'",
    "--gin.TRAIN_STEPS=1000",
    code=128 + signal.SIGTERM,
  )
  done = int(re.search(r"run_slow: (\d+) steps were done", err)[1])
  stopped = int(re.search(r"stopped at step (\d+)", err)[1])
  assert done >= 5
  assert 0 <= stopped - done <= 2, err
  assert checkpoints.checkpoint_steps(tmp_path) == [0, stopped]
