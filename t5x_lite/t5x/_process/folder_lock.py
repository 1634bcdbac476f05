"""One run at a time in a folder: a lock file that names the run holding it.

The file is JSON: the owner's host, machine (boot and process namespace), process, when that process
was started (by the kernel's clock, where /proc has it), and the time of locking. While it is held,
a thread sets its modification time every `BEAT` seconds. A second run
  - takes it over if the owner's process is gone, which can only be seen on the same machine;
  - takes it over if it is another machine's and was not touched for `STALE` seconds;
  - is refused otherwise.
Object stores (gs://) have neither exclusive creation nor settable modification times: no lock.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import socket
import threading
import time
from collections.abc import Iterator, Sequence

from t5x._process import hosts
from t5x._process.log import log
from t5x.errors import T5XError

try:
  import fcntl
except ImportError:  # on Windows, where simultaneous takeovers are not prevented
  fcntl = None  # type: ignore[assignment]

BEAT = 30  # seconds
STALE = 300  # seconds


@dataclasses.dataclass(frozen=True)
class Owner:
  """The process that holds a lock.

  Args:
      host: host name, for messages.
      machine: boot and process namespace, in which `pid` and `started` are valid; '' if unknown.
      pid: process id.
      started: clock ticks from boot to the start of the process; 0 if unknown.
      since: when it took the lock, as text.
  """

  host: str
  machine: str
  pid: int
  started: int
  since: str


def this_process() -> Owner:
  """Returns what this process writes into its locks."""
  since = time.strftime("%Y-%m-%d %H:%M:%S")
  return Owner(socket.gethostname(), _machine(), os.getpid(), _started(os.getpid()) or 0, since)


def _machine() -> str:
  try:
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')}"
  except OSError:
    return ""


def _started(pid: int) -> int | None:
  """Clock ticks from boot to the start of a process; None: no such process, or no /proc."""
  try:
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
  except OSError:
    return None
  fields = text.rpartition(")")[2].split()  # the name before may have spaces and parentheses
  return None if fields[0] in "ZX" else int(fields[19])  # a zombie has ended


def is_gone(owner: Owner) -> bool | None:
  """Returns whether the owner's process has ended; None if that cannot be seen from here."""
  here = this_process()
  if (owner.host, owner.machine) != (here.host, here.machine):
    return None
  if owner.machine:  # there is /proc
    return _started(owner.pid) != owner.started
  try:
    os.kill(owner.pid, 0)
  except ProcessLookupError:
    return True
  except OSError:
    return False
  return False


def check_folder_name(name: object, setting: str) -> None:
  """Raises T5XError unless `name` can name a folder, which need not exist."""
  if isinstance(name, (str, os.PathLike)) and os.fspath(name):
    return
  raise T5XError(
    f"{setting} does not name a folder.",
    found=repr(name),
    expected="a string: an existing folder, or a new one",
    fix=f"--gin.{setting}=\"'FOLDER'\"",
  )


@contextlib.contextmanager
def held(paths: Sequence[str], setting: str) -> Iterator[None]:
  """Holds locks inside the `with` block; the first of several processes does it for all.

  Args:
      paths: the lock files; their folders are created. Those in object stores are skipped.
      setting: the setting that names the folder, for example `MODEL_DIR`.

  Raises:
      T5XError: another run holds one of them (on all processes), or it cannot be written.
  """
  local = [pathlib.Path(path).absolute() for path in paths if "://" not in str(path)]
  taken: list[pathlib.Path] = []
  done = threading.Event()
  try:
    with _alike():
      if hosts.is_first():
        me = this_process()
        for path in local:
          _take(path, me, setting)
          taken.append(path)
    if taken:
      threading.Thread(target=_beat, args=(taken, me, done), daemon=True, name="t5x-lock").start()
    yield
  finally:
    done.set()
    for path in taken:
      with contextlib.suppress(OSError), _opened(path) as file:
        if _read(file) in (me, None):  # None: somebody removed it meanwhile
          path.unlink()


@contextlib.contextmanager
def _alike() -> Iterator[None]:
  """Raises on every process the T5XError that the first one raises in the block."""
  error = None
  try:
    yield
  except T5XError as e:
    error = e
  if hosts.process_count() > 1:
    names = ("message", "found", "expected", "available", "fix")
    text = hosts.broadcast_text(json.dumps(error and {n: getattr(error, n) for n in names}))
    if error is None and json.loads(text):
      error = T5XError(**json.loads(text))
  if error is not None:
    raise error


def _beat(paths: Sequence[pathlib.Path], me: Owner, done: threading.Event) -> None:
  while not done.wait(BEAT):
    for path in paths:
      with contextlib.suppress(OSError), path.open() as file:
        if _read(file) == me:
          os.utime(path)


@contextlib.contextmanager
def _opened(path: pathlib.Path):
  """Opens the lock file exclusively, creating it if needed."""
  while True:
    file = path.open("a+")
    with contextlib.closing(file):
      with contextlib.suppress(OSError, AttributeError):  # some file systems cannot
        fcntl.flock(file, fcntl.LOCK_EX)
      # Its owner may have removed it since it was opened: then this is an unlinked file.
      with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
          yield file
          return


def _read(file) -> Owner | None:
  """The owner in a lock file; None if the file is new or truncated."""
  file.seek(0)
  try:
    return Owner(**json.loads(file.read()))
  except (ValueError, TypeError):
    return None


def _take(path: pathlib.Path, me: Owner, setting: str) -> None:
  """Writes `me` into the lock file; raises T5XError if its owner may be running."""
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.open("a").close()
  except OSError as e:
    raise _cannot_write(path.parent, setting, e) from e
  with _opened(path) as file:
    owner = _read(file)
    if owner is not None:
      silent = max(time.time() - os.fstat(file.fileno()).st_mtime, 0)
      gone = is_gone(owner)
      if gone is False or (gone is None and silent < STALE):
        raise _in_use(path, owner, gone is None, silent, setting)
      why = "which has ended" if gone else f"which was last active {silent / 60:.0f} minutes ago"
      log(f"taking over {path} from process {owner.pid} on {owner.host}, {why}")
    file.truncate(0)
    file.write(json.dumps(dataclasses.asdict(me)) + "\n")
    file.flush()
    os.utime(path)


def _cannot_write(folder: pathlib.Path, setting: str, error: OSError) -> T5XError:
  above = next(p for p in (folder, *folder.parents) if p.exists())
  is_file = not above.is_dir()
  return T5XError(
    f"{setting} is a file." if is_file and above == folder else f"{setting} cannot be written to.",
    found=f"{above} is a file" if is_file else f"{folder}: {error.strerror}",
    expected="a folder, or the name of a new one",
    fix=f"--gin.{setting}=\"'FOLDER'\"",
  )


def _in_use(path: pathlib.Path, owner: Owner, elsewhere: bool, silent: float, setting: str):
  ending = f"stop that run, wait until it ends, or set another --gin.{setting}"
  if elsewhere:
    ending += (
      f".\nIf it has crashed (which cannot be determined from this host): rm {path}\n"
      f"or start again in {max(STALE - silent, 1):.0f} s: a lock that was not renewed for "
      f"{STALE // 60} minutes is taken over"
    )
  return T5XError(
    f"Another run is using {path.parent}.",
    found=f"{path.name}: process {owner.pid} on {owner.host}, since {owner.since}, "
    f"last active {silent:.0f} s ago",
    expected="one run at a time: two would overwrite each other's files",
    available="nothing was changed",
    fix=ending + ".",
  )
