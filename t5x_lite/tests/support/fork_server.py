"""Starts `python -m t5x.train` and the like by forking a process that has imported everything.

A start from nothing imports for five seconds; a fork costs none, so that tests can afford many
processes of their own: with other devices, in groups, and killed. Nothing that starts threads or
a JAX backend runs before the fork.

  run = fork_server().start("train", "run_train.gin", "--gin.TRAIN_STEPS=5", env={...})
  code, err = run.wait()
"""

import atexit
import contextlib
import functools
import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

from run_scripts import SUPPORT, T5X_LITE


def environment():
  """Variables of a process that runs a script; it compiles as pytest's own; see compiling.py."""
  return {
    **os.environ,
    "JAX_PLATFORMS": "cpu",
    "PYTHONPATH": os.pathsep.join([str(T5X_LITE), str(SUPPORT)]),
    "TF_CPP_MIN_LOG_LEVEL": "3",
  }


class Run:
  """A process of the server's; `pid` is real, and can be killed."""

  def __init__(self, server, pid, log):
    self._server, self.pid, self._log = server, pid, log

  def kill(self, signum=signal.SIGKILL):
    os.kill(self.pid, signum)

  def out(self):
    return self._log.with_suffix(".out").read_text()

  def err(self):
    return self._log.with_suffix(".err").read_text()

  def poll(self):
    """Its exit code (minus the signal that ended it), or None while it runs."""
    return self._server.ask({"poll": self.pid})

  def wait(self):
    """Returns (exit code, what it wrote to stderr); kills it after half an hour."""
    end = time.time() + 1_800  # the machine may be busy
    while (code := self.poll()) is None:
      if time.time() > end:
        self.kill()
        raise AssertionError(f"it hangs:\n{self.err()[-3000:]}")
      time.sleep(0.01)
    return code, self.err()


class ForkServer:
  """Starts runs; threads may share it."""

  def __init__(self):
    self._logs = tempfile.TemporaryDirectory()
    # OpenBLAS's threads would start with NumPy's import.
    env = {**environment(), "OPENBLAS_NUM_THREADS": "1"}
    self._process = subprocess.Popen(
      [sys.executable, __file__],
      env=env,
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=subprocess.DEVNULL,
      text=True,
    )
    self._lock = threading.Lock()  # an answer belongs to the request before it
    self._count = itertools.count()

  def ask(self, request):
    with self._lock:
      self._process.stdin.write(json.dumps(request) + "\n")
      self._process.stdin.flush()
      return json.loads(self._process.stdout.readline())

  def _start(self, argv, env=None, **request):
    log = pathlib.Path(self._logs.name) / str(next(self._count))
    request |= {"argv": list(map(str, argv)), "env": env or {}, "log": str(log)}
    return Run(self, self.ask(request), log)

  def start(self, script, gin_file, *args, env=None, cwd=None):
    """Starts t5x.SCRIPT with a gin file (or None) and further arguments.

    Args:
      env: environment variables, on top of the server's; None removes one.
      cwd: folder to start it in, also the first one that Python imports from.
    """
    argv = [script, f"--gin_search_paths={SUPPORT}"]
    argv += [f"--gin_file={gin_file}"] if gin_file else []
    return self._start([*argv, *args], env, module=f"t5x.{script}", cwd=cwd and str(cwd))

  def start_module(self, module, *args, cwd=None, stdin=None):
    """Starts `python -m MODULE`. Args: cwd, as of `start`; stdin, a file that it reads."""
    request = {"cwd": cwd and str(cwd), "stdin": stdin and str(stdin)}
    return self._start([module, *args], module=module, **request)

  def run(self, script, gin_file, *args, code=0, **kwargs):
    """Runs it to its end and returns what it wrote."""
    got, err = self.start(script, gin_file, *args, **kwargs).wait()
    assert got == code, err[-4000:]
    return err

  def run_file(self, name, *args, env=None, cwd=None):
    """Runs a Python file beside this one, or a path, to its end; returns its standard output."""
    path = SUPPORT / name
    run = self._start([path, *args], env, file=str(path), cwd=cwd and str(cwd))
    code, err = run.wait()
    assert code == 0, err[-4000:]
    return run.out()

  def close(self):
    self._process.stdin.close()
    self._process.wait(timeout=30)
    self._logs.cleanup()


@functools.cache
def fork_server():
  """The server of this process, which ends with it."""
  server = ForkServer()
  atexit.register(server.close)
  return server


@contextlib.contextmanager
def _without_autograph():
  """Keeps TensorFlow from rewriting the pipeline's functions: two seconds of each start.

  A function that needs it raises an error then; none of ours does.
  """
  from tensorflow.python.autograph.core import ag_ctx

  with ag_ctx.ControlStatusCtx(status=ag_ctx.Status.DISABLED):
    yield


def _child(request):
  import runpy

  os.dup2(os.open(request.get("stdin") or os.devnull, os.O_RDONLY), 0)
  for number, name in ((1, "out"), (2, "err")):
    os.dup2(os.open(f"{request['log']}.{name}", os.O_WRONLY | os.O_CREAT, 0o644), number)
  for name, value in request["env"].items():
    if value is None:
      os.environ.pop(name, None)
    else:
      os.environ[name] = value
  if request.get("cwd"):
    os.chdir(request["cwd"])
    sys.path.insert(0, request["cwd"])
  sys.argv = request["argv"]
  with _without_autograph():
    if "file" in request:
      runpy.run_path(request["file"], run_name="__main__")
    else:
      runpy.run_module(request["module"], run_name="__main__", alter_sys=True)


def _fork(request):
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
    sys.exit(0)
  return pid


def main():
  """Answers one request per line; children that are still alive at the end are killed."""
  import orbax.checkpoint  # noqa: F401
  import run_tasks  # noqa: F401 - with seqio and TensorFlow
  import tensorboard.summary  # noqa: F401

  from t5x import adafactor, checkpoints, gin_utils, models, trainer, utils  # noqa: F401
  from t5x._process import devices  # noqa: F401
  from t5x._train import loop  # noqa: F401
  from t5x.examples.t5 import network  # noqa: F401

  alive = set()
  for line in sys.stdin:
    request = json.loads(line)
    if "log" in request:
      answer = _fork(request)
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
