"""Starts `python -m t5x.train` and the like by forking a process that has imported everything.

A start from nothing imports for five seconds; a fork costs none, so that tests can afford many
processes of their own: with other devices, in groups, and killed. Nothing that starts threads or
a JAX backend runs before the fork.

  with ForkServer(cache) as server:
    run = server.start("train", "run_train.gin", "--gin.TRAIN_STEPS=5", env={...})
    code, err = run.wait()
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


class Run:
  """A process of the server's; `pid` is real, and can be killed."""

  def __init__(self, server, pid, log):
    self._server, self.pid, self.log = server, pid, log

  def kill(self, signum=signal.SIGKILL):
    os.kill(self.pid, signum)

  def err(self):
    return self.log.read_text()

  def poll(self):
    """Its exit code (minus the signal that ended it), or None while it runs."""
    return self._server.ask({"poll": self.pid})

  def wait(self, timeout=120):
    """Returns (exit code, what it wrote); kills it after `timeout` seconds."""
    end = time.time() + timeout
    while (code := self.poll()) is None:
      if time.time() > end:
        self.kill()
        raise AssertionError(f"it hangs:\n{self.err()[-3000:]}")
      time.sleep(0.01)
    return code, self.err()


class ForkServer:
  """Starts runs with one compilation cache."""

  def __init__(self, cache):
    self._logs = tempfile.TemporaryDirectory()
    env = {
      **os.environ,
      "JAX_PLATFORMS": "cpu",
      "JAX_COMPILATION_CACHE_DIR": str(cache),
      "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)]),
      "OPENBLAS_NUM_THREADS": "1",  # its threads would start with NumPy's import
      "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    self._process = subprocess.Popen(
      [sys.executable, str(HERE / "fork_server.py")],
      env=env,
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=subprocess.DEVNULL,
      text=True,
    )
    self._count = 0

  def ask(self, request):
    self._process.stdin.write(json.dumps(request) + "\n")
    self._process.stdin.flush()
    return json.loads(self._process.stdout.readline())

  def start(self, script, gin_file, *args, env=None):
    """Starts t5x.SCRIPT with a gin file and further arguments."""
    self._count += 1
    log = pathlib.Path(self._logs.name) / f"{self._count}.log"
    argv = [script, f"--gin_search_paths={HERE}", f"--gin_file={gin_file}", *map(str, args)]
    request = {"script": script, "argv": argv, "env": env or {}, "log": str(log)}
    return Run(self, self.ask(request), log)

  def run(self, script, gin_file, *args, env=None, code=0):
    """Runs it to its end and returns what it wrote."""
    got, err = self.start(script, gin_file, *args, env=env).wait()
    assert got == code, err[-4000:]
    return err

  def __enter__(self):
    return self

  def __exit__(self, *_):
    self._process.stdin.close()
    self._process.wait(timeout=30)
    self._logs.cleanup()


def _child(request):
  import runpy

  log = os.open(request["log"], os.O_WRONLY | os.O_CREAT, 0o644)
  null = os.open(os.devnull, os.O_RDONLY)
  os.dup2(null, 0)
  os.dup2(log, 1)
  os.dup2(log, 2)
  os.environ.update(request["env"])
  sys.argv = request["argv"]
  runpy.run_module(f"t5x.{request['script']}", run_name="__main__", alter_sys=True)


def _start(request):
  threads = os.listdir("/proc/self/task")
  assert len(threads) == 1, f"a fork of {len(threads)} threads is not safe"
  pid = os.fork()
  if pid == 0:
    try:
      _child(request)
    except SystemExit as e:  # with exit handlers: JAX has one where there are several processes
      sys.exit(e.code)
    except BaseException:
      import traceback

      traceback.print_exc()
      os._exit(77)
  return pid


def main():
  """Answers one request per line; children that are still alive at the end are killed."""
  import orbax.checkpoint  # noqa: F401
  import run_tasks  # noqa: F401 - with seqio and TensorFlow

  from t5x import adafactor, checkpoints, models, trainer, utils  # noqa: F401
  from t5x.examples.t5 import network  # noqa: F401

  alive = set()
  for line in sys.stdin:
    request = json.loads(line)
    if "script" in request:
      answer = _start(request)
      alive.add(answer)
    else:
      pid, status = os.waitpid(request["poll"], os.WNOHANG)
      answer = os.waitstatus_to_exitcode(status) if pid else None
      alive.discard(pid)
    print(json.dumps(answer), flush=True)
  for pid in alive:
    os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
  main()
