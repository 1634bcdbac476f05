"""What the four scripts share: flags before heavy imports, quiet start, errors, exit codes."""

from __future__ import annotations

import contextlib
import errno
import gc
import logging as python_logging
import os
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags, logging

from t5x._process import hosts
from t5x._process.compilation_cache import compilation_cache
from t5x._process.log import log, say
from t5x._script import gin_config
from t5x.errors import (
  Interrupted,
  T5XError,
  UsageError,
  causes,
  find_user_error,
  first_line,
  nearest,
)

FLAGS = flags.FLAGS


def define_flags() -> None:
  """Defines the flags every script has. Call it once, in the module run as `__main__`."""
  flags.DEFINE_multi_string("gin_file", None, "Gin file; may be repeated, later ones win.")
  flags.DEFINE_multi_string(
    "gin_bindings", [], "`NAME = VALUE`; may be repeated. --gin.NAME=VALUE is the same."
  )
  flags.DEFINE_list(
    "gin_search_paths", [], "Folders for gin files and includes, separated by commas."
  )
  flags.DEFINE_string("tfds_data_dir", None, "Folder of the TensorFlow Datasets.")
  flags.DEFINE_list("seqio_additional_cache_dirs", [], "More folders of cached SeqIO tasks.")
  flags.DEFINE_bool("dry_run", False, "Read and check the gin configuration, then stop.")
  flags.DEFINE_bool("debug", False, "Show tracebacks and the libraries' own messages.")
  flags.DEFINE_bool("multiprocess_gpu", False, "Start jax.distributed (one process per host).")
  flags.DEFINE_string("coordinator_address", None, "HOST:PORT of process 0.")
  flags.DEFINE_integer("process_count", None, "Number of processes.")
  flags.DEFINE_integer("process_index", None, "Index of this process.")
  flags.DEFINE_integer("initialization_timeout", 300, "Seconds to wait for other processes.")
  flags.DEFINE_integer(
    "heartbeat_timeout", 100, "Seconds without a heartbeat after which a process counts as lost."
  )


def _print_help(doc: str) -> None:
  print(doc.strip() + "\n\nFlags:")
  for module in ("t5x._script.cli", "t5x.infer", sys.argv[0]):
    text = FLAGS.module_help(module).strip()
    if text:
      # absl appends to some flags, after a semicolon, what their own text already says.
      text = re.sub(r";\s+repeat this option to specify a list of values", "", text)
      print(text.split("\n", 1)[1])


def parse_flags(argv: Sequence[str], doc: str = "") -> list[str]:
  """Parses the command line; may print help and exit, or raise UsageError."""
  args = gin_config.rewrite_gin_args(argv[1:])
  if any(a.lstrip("-") in ("help", "helpshort", "helpfull", "h") for a in args):
    _print_help(doc)
    sys.exit(0)
  of_jax = any(a.startswith("--jax_") for a in args)
  if of_jax:
    import jax  # only then: JAX defines its flags when imported

    jax.config.config_with_absl()
  try:
    arguments = FLAGS([argv[0], *args])
  except flags.Error as e:
    name = str(e).split("'")[1] if "'" in str(e) else ""
    raise UsageError(
      first_line(e),
      available=", ".join(f"--{n}" for n in nearest(name, list(FLAGS))) or None,
      fix=f"python -m t5x.{os.path.splitext(os.path.basename(argv[0]))[0]} --help",
    ) from e
  if of_jax:
    jax.config.complete_absl_config(flags)  # as `app.run` does, which these scripts do not use
  hosts.check_flags(
    FLAGS.coordinator_address, FLAGS.process_count, FLAGS.process_index, FLAGS.multiprocess_gpu
  )
  return arguments[1:]


def quiet(debug: bool) -> None:
  """Silences TensorFlow's and absl's start-up lines; must run before they are imported."""
  if debug:
    logging.set_verbosity(logging.INFO)
    return
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
  os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
  os.environ.setdefault("ABSL_MIN_LOG_LEVEL", "2")
  logging.set_verbosity(logging.ERROR)
  warnings.filterwarnings("ignore")
  # gin looks for files in packages too, and complains of each that does not have one.
  python_logging.getLogger().addFilter(lambda record: record.module != "resource_reader")
  _quiet_failing_saves()


def _quiet_failing_saves() -> None:
  """Keeps Orbax's own messages about a failing save from burying the error itself.

  It logs a traceback per thread; its interrupted writes complain to asyncio, or end as
  unraisable exceptions.
  """
  orbax = f"{os.sep}orbax{os.sep}"
  logging.get_absl_logger().addFilter(lambda record: orbax not in record.pathname)
  python_logging.getLogger("asyncio").setLevel(python_logging.CRITICAL)
  show = sys.unraisablehook

  def unraisablehook(unraisable):
    if "Event loop is closed" not in str(unraisable.exc_value):
      show(unraisable)

  sys.unraisablehook = unraisablehook


@contextlib.contextmanager
def _silent_stderr():
  """Captures file descriptor 2, for libraries that write to it from C++ when imported.

  The captured output is shown if the import fails, but not after Ctrl-C.
  """
  sys.stderr.flush()
  saved = os.dup(2)
  with tempfile.TemporaryFile() as captured:
    os.dup2(captured.fileno(), 2)
    try:
      yield
    except Exception as e:
      if not _is_interrupted(e):
        captured.seek(0)
        os.write(saved, captured.read())
      raise
    finally:
      os.dup2(saved, 2)
      os.close(saved)


def _is_interrupted(error: BaseException) -> bool:
  """Whether Ctrl-C caused an error: C modules raise an ImportError of their own for it."""
  return any(isinstance(e, KeyboardInterrupt) for e in causes(error))


def import_libraries() -> None:
  """Imports the slow libraries without their start-up lines (with --debug: with them)."""
  with contextlib.nullcontext() if FLAGS.debug else _silent_stderr():
    import seqio  # noqa: F401 - TensorFlow comes with it
    import tensorflow as tf
  if not FLAGS.debug:
    tf.get_logger().setLevel("ERROR")
    logging.set_verbosity(logging.ERROR)


def setup_jax() -> None:
  """Persistent compilation cache, TensorFlow off the accelerator, jax.distributed, devices."""
  import tensorflow as tf

  # TensorFlow only feeds data here; on a GPU it would otherwise take most of the memory.
  # Asking for its devices makes it report missing CUDA libraries, which do not matter.
  with contextlib.nullcontext() if FLAGS.debug else _silent_stderr():
    for kind in ("GPU", "TPU"):
      with contextlib.suppress(RuntimeError, ValueError):
        tf.config.set_visible_devices([], kind)
    tf.config.list_logical_devices()
  if FLAGS.multiprocess_gpu:  # before anything that may log, which asks for the process index
    hosts.join(
      FLAGS.coordinator_address,
      FLAGS.process_count,
      FLAGS.process_index,
      FLAGS.initialization_timeout,
      FLAGS.heartbeat_timeout,
    )
  compilation_cache()  # as gin configures it
  from t5x._process import devices, matmul, memory

  # Before `log`, which asks for the process index and so for devices.
  devices_line = devices.describe_devices()
  log(f"devices: {devices_line}")
  matmul.cpu_matmul()  # as gin configures it
  for note in (matmul.describe(), memory.describe()):
    if note:
      log(note)


def setup_data() -> None:
  """Applies --tfds_data_dir and --seqio_additional_cache_dirs."""
  import seqio

  if FLAGS.tfds_data_dir:
    seqio.set_tfds_data_dir_override(FLAGS.tfds_data_dir)
  if FLAGS.seqio_additional_cache_dirs:
    seqio.add_global_cache_dirs(FLAGS.seqio_additional_cache_dirs)


def freeze_imports() -> None:
  """Excludes the objects that exist from garbage collections, and makes these rare.

  With Python's defaults, collections take 5% (SDT) to a fifth (SpanDST) of the time that data
  takes (benchmarks/history.md).
  """
  gc.freeze()
  gc.set_threshold(100_000, 10, 10)


def load_config() -> None:
  """Parses the gin files and bindings of the command line (heavy imports happen here)."""
  if not FLAGS.gin_file and not FLAGS.gin_bindings:
    raise UsageError(
      "No gin file is given.",
      fix="pass --gin_file=FILE.gin; `--help` shows an example.",
    )
  for binding in FLAGS.gin_bindings:  # before the seconds that imports take
    gin_config.check_literal(binding)
  # Libraries create millions of permanent objects: scanning them for garbage, now and at every
  # later collection, takes longer than some of the imports.
  gc.disable()
  try:
    import_libraries()
    gin_config.parse_gin_flags(FLAGS.gin_search_paths, FLAGS.gin_file or [], FLAGS.gin_bindings)
  finally:
    freeze_imports()
    gc.enable()


def run_configured(entry_point: Callable) -> None:
  """Parses gin, prepares the libraries and calls `entry_point` as gin configures it."""
  import gin

  configured = gin.configurable(entry_point)
  load_config()
  if FLAGS.dry_run:
    log("the gin configuration is complete (--dry_run: nothing was run)")
    return
  setup_jax()
  setup_data()
  configured()


def find_unreadable(error: BaseException) -> T5XError | None:
  """Returns the error to show if an unreadable file in Google's storage caused `error`."""
  tf = sys.modules.get("tensorflow")
  if tf is None:
    return None
  for e in causes(error):
    if not isinstance(e, tf.errors.OpError):
      continue
    path = re.search(r"gs://\S+", str(e))
    if path:
      reason = str(e.message).split("\n")[0].removeprefix("Error executing an HTTP request: ")
      return T5XError(
        f"{path[0]} could not be read.",
        found=reason[:300],
        expected="network access, and permission to read it",
        fix="copy it to this machine and name the copy, in gin or as the page of the tasks says",
      )
  return None


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM)
_NO_ROOM_IN_WORDS = re.compile(r"no space left|quota exceeded|file too large", re.IGNORECASE)


def find_unwritable(error: BaseException) -> T5XError | None:
  """Returns the error to show if a file that could not be written, or opened, caused `error`.

  The disk is full, or read-only. A checkpoint that cannot be written has its own error.
  """
  # TensorFlow reads the data and writes the logs; its errors say "No space left" without an errno.
  tf = sys.modules.get("tensorflow")
  for e in causes(error):
    of_tf = tf is not None and isinstance(e, tf.errors.OpError)
    full = getattr(e, "errno", None) in _NO_ROOM or (of_tf and _NO_ROOM_IN_WORDS.search(str(e)))
    refused = isinstance(e, OSError) and e.errno in _REFUSED and e.filename
    if not full and not refused:
      continue
    path = str(getattr(e, "filename", None) or "an output file")
    reason = getattr(e, "strerror", None) or str(getattr(e, "message", e)).split("\n")[0]
    return T5XError(
      f"{path} could not be {'written' if full else 'opened'}.",
      found=reason[:300],
      expected="free space there" if full else "permission to read or write it",
      available="complete checkpoints and results, which are not lost",
      fix=("free space there, or name" if full else "name")
      + " another folder; the same command resumes where this one stopped.",
    )
  return None


def run(main: Callable[[Sequence[str]], None], doc: str = "") -> None:
  """Parses the flags of one of the scripts, runs its `main([])` and exits (see `run_script`)."""

  def parse_and_run() -> None:
    arguments = parse_flags(sys.argv, doc)
    if arguments:
      raise UsageError(f"Unexpected argument {arguments[0]!r}.", fix="flags start with `--`.")
    main(arguments)

  run_script(parse_and_run)


def run_script(script: Callable[[], Any]) -> None:
  """Runs a script and exits.

  Exit codes: 0 ok, 1 failed, 2 usage, 128 + signal after a clean stop by Ctrl-C or SIGTERM.
  """
  debug = "--debug" in sys.argv
  quiet(debug)
  code = 0
  try:
    script()
  except Interrupted as e:
    code = 128 + e.signum
  except (KeyboardInterrupt, Exception) as e:
    code = _report(e, debug)
  sys.stdout.flush()
  sys.stderr.flush()
  if not code:
    sys.exit(0)
  if hosts.joined() and code != 1:
    # As JAX does at an exit. After a failure, the others wait for this process in a collective, and
    # JAX would wait for them.
    sys.modules["jax"].distributed.shutdown()
  # Without tearing down Python: a failed run leaves its pipelines open. If their threads are in a
  # Python function, TensorFlow waits for them, and they for Python, which by then lets no thread
  # continue: a deadlock. What was being saved or computed in the background has ended: the scripts
  # close it before they raise.
  os._exit(code)


def _report(error: BaseException, debug: bool) -> int:
  """Reports what ended a script. Returns its exit code."""
  if _is_interrupted(error):
    if debug:
      traceback.print_exception(error)
    print("t5x: interrupted.", file=sys.stderr)
    return 130
  user_error = (
    hosts.lost(error) or find_user_error(error) or find_unreadable(error) or find_unwritable(error)
  )
  if debug or user_error is None:
    traceback.print_exception(error)
  if user_error is None:
    return 1
  # Not str(): gin appends where it was called from.
  say(f"\nt5x: error: {user_error.text}")
  return user_error.exit_code
