"""Several processes, one per host: joining them, and ending all when one is lost.

JAX's coordination service (in process 0) tracks which processes are alive by heartbeats. If it
finds one lost while others wait in a collective, it aborts them (exit code 134, its own message);
if a collective itself fails first, as on a CPU, the run ends with the error of this module.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading

from t5x.errors import T5XError, UsageError, causes

# What collectives (Gloo, NCCL) and the coordination service say when a process is gone.
_LOST = re.compile(
  r"gloo|nccl|connection (closed|reset|refused)|heartbeat|coordination ?service|socket closed|"
  r"broken pipe|task .* (error|crashed|died)",
  re.IGNORECASE,
)


def check_flags(
  address: str | None, count: int | None, index: int | None, multiprocess: bool
) -> None:
  """Checks the flags of several processes before anything is imported.

  Raises:
      UsageError: they are inconsistent.
  """
  values = {"coordinator_address": address, "process_count": count, "process_index": index}
  values = {name: value for name, value in values.items() if value is not None}
  if not values:
    return
  flags = " ".join(f"--{name}={value}" for name, value in values.items())
  if not multiprocess or address is None or count is None or index is None:
    raise UsageError(
      "The flags of several processes are incomplete: every process would train on its own.",
      found=flags,
      expected="--multiprocess_gpu (also on a CPU or TPU) with all of --coordinator_address, "
      "--process_count, --process_index; with none of them where JAX finds them (Slurm, TPU)",
    )
  if not 0 <= index < count or not re.fullmatch(r".+:\d+", address):
    raise UsageError(
      "The flags of several processes are out of range.",
      found=flags,
      expected="HOST:PORT of process 0, a count of at least 1, and an index from 0 to below it",
    )


def join(
  address: str | None,
  count: int | None,
  index: int | None,
  initialization_timeout: int,
  heartbeat_timeout: int,
) -> None:
  """Starts jax.distributed; returns when all processes have joined.

  Args:
      address: HOST:PORT of process 0; None: JAX determines all three itself (Slurm, TPU).
      count: number of processes.
      index: which one this is.
      initialization_timeout: seconds to wait for the others; the process exits (1) after that.
      heartbeat_timeout: seconds without a sign of life after which a process counts as lost.

  Raises:
      T5XError: process 0 cannot listen at its address.
  """
  import jax

  late = T5XError(
    "Not all processes of this run have connected.",
    found=f"process {index} of {count} waited {initialization_timeout} s for the others at "
    f"{address}",
    expected=f"{count} processes started within that time, with the same --coordinator_address "
    "and --process_count and a different --process_index each; a port that they can reach",
    fix="check the other processes' output; set --initialization_timeout=SECONDS to wait longer, "
    "or --process_count to the number of processes.",
  )
  try:
    with _deadline(initialization_timeout, late):
      jax.distributed.initialize(
        coordinator_address=address,
        num_processes=count,
        process_id=index,
        # JAX itself aborts with a stack trace; the deadline above comes first.
        initialization_timeout=initialization_timeout + 60,
        heartbeat_timeout_seconds=heartbeat_timeout,
      )
  except (RuntimeError, ValueError) as e:
    raise T5XError(
      "The processes of this run cannot connect.",
      found=" ".join(str(e).split())[:300],
      expected="a free port at the address of process 0, or a cluster that JAX recognises",
      fix="set --coordinator_address=HOST:PORT (another port), --process_count, --process_index.",
    ) from e


@contextlib.contextmanager
def _deadline(seconds: float, error: T5XError):
  """Prints `error` and exits if the block takes longer, since it cannot be interrupted."""
  ended = threading.Event()

  def watch():
    if not ended.wait(seconds):
      print(f"\nt5x: error: {error.text}", file=sys.stderr, flush=True)
      os._exit(error.exit_code)

  threading.Thread(target=watch, daemon=True, name="t5x-deadline").start()
  try:
    yield
  finally:
    ended.set()


def joined() -> bool:
  """Whether `join` has brought this process together with others."""
  jax = sys.modules.get("jax")
  return jax is not None and jax.distributed.is_initialized()


def process_count() -> int:
  """Number of processes; unless they were joined, 1 without importing or starting JAX."""
  if not joined():
    return 1
  import jax

  try:
    return jax.process_count()
  except (RuntimeError, AssertionError):  # there is no device: see devices.py
    return 1


def is_first() -> bool:
  """Whether this process is the first of its run, which writes the files."""
  if process_count() == 1:
    return True
  import jax

  return jax.process_index() == 0


def barrier(name: str) -> None:
  """Waits until all processes have come here."""
  import jax

  if jax.process_count() > 1:
    from jax.experimental import multihost_utils

    multihost_utils.sync_global_devices(name)


def broadcast_number(number: float) -> int:
  """The first process's number, cut to a whole number of 32 bits, on every process."""
  import jax

  if jax.process_count() == 1:
    return int(number)
  import numpy as np
  from jax.experimental import multihost_utils

  return int(multihost_utils.broadcast_one_to_all(np.int32(number)))


def broadcast_text(text: str) -> str:
  """The first process's text, on every process."""
  import numpy as np
  from jax.experimental import multihost_utils

  data = np.frombuffer(text.encode(), np.uint8)
  size = broadcast_number(data.size)
  padded = np.zeros(size, np.uint8)
  padded[: data.size] = data[:size]
  return bytes(multihost_utils.broadcast_one_to_all(padded)).decode() if size else ""


def lost(error: BaseException) -> T5XError | None:
  """Returns the error to show if `error` was caused by a lost process, else None."""
  if process_count() == 1:
    return None
  for cause in causes(error):
    text = " ".join(str(cause).split())
    if _LOST.search(text):
      return T5XError(
        "Another process of this run was lost.",
        found=text[:300],
        expected=f"{process_count()} processes that run to the end",
        fix="check the other processes' output; the same command, with any number of "
        "processes, continues from the latest checkpoint.",
      )
  return None
