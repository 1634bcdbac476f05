"""What a terminal shows about a run, and how far the host runs ahead of the device."""

import contextlib
import fcntl
import importlib
import os
import re
import signal
import struct
import termios

import pytest

from t5x._process import log, progress, stop
from t5x._step import ahead
from t5x.errors import Interrupted, T5XError


class Step:
  """A step that is done when a clock says so."""

  def __init__(self, clock, done):
    self._clock, self._done = clock, done

  def is_ready(self):
    return self._clock[0] >= self._done

  def block_until_ready(self):
    self._clock[0] = max(self._clock[0], self._done)


@pytest.mark.parametrize(("seconds", "most"), [(0.7, 2), (0.03, 3), (0.001, 32)])
def test_how_far_the_host_runs_ahead(monkeypatch, seconds, most):
  """SIGTERM waits for what is dispatched: two steps, or a tenth of a second of short ones."""
  clock = [0.0]
  monkeypatch.setattr(ahead.time, "perf_counter", lambda: clock[0])
  steps, in_flight = ahead.StepsAhead(), []
  done = 0.0
  for number in range(200):
    steps.wait_for_room()
    if number == 100:
      clock[0] += 60.0  # an evaluation: steps done by then say nothing about a step's time
    done = max(done, clock[0]) + seconds
    in_flight.append(done)
    steps.add(Step(clock, done))
    ahead_now = sum(end > clock[0] for end in in_flight)
    assert ahead_now <= most, number
  assert ahead_now == most


def test_progress_line(monkeypatch):
  now = [100.0]
  monkeypatch.setattr(progress.time, "time", lambda: now[0])
  values = {"loss": 3.25, "lr": 0.001, "tokens_per_step": 1500.0}
  shown = progress.Progress(1000, 1100, lambda: values)
  with shown.excluded(steps=1):  # compilation
    now[0] += 60
  now[0] += 5
  # 10 timed steps in 5 s; 89 to go.
  assert shown.line(1011) == (
    "step 1011/1100 | 2 steps/s | 3k tokens/s | ETA 0:44 | loss 3.2500 | lr 0.001"
  )
  assert shown.line(1001) == "step 1001/1100 | loss 3.2500 | lr 0.001"


def test_progress_line_is_short(monkeypatch):
  now = [0.0]
  monkeypatch.setattr(progress.time, "time", lambda: now[0])
  values = {"loss": 123456.789, "lr": 1.23456e-5, "tokens_per_step": 1.234e6}
  shown = progress.Progress(100_000_000, 110_000_000, lambda: values)
  now[0] = 987.6
  line = "t5x: " + shown.line(100_000_123)
  assert len(line) < 100
  assert re.search(
    r"0\.125 steps/s \| 154k tokens/s \| ETA \d+:\d\d:\d\d \| loss 1\.235e\+05", line
  )


@contextlib.contextmanager
def terminal():
  """Makes stderr a terminal; yields a function (columns, action) -> what the terminal shows."""
  reader, writer = os.openpty()

  def show(columns, action):
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    action()
    file.write("\0")  # output arrives in pieces: read up to here
    file.flush()
    shown = ""
    while not shown.endswith("\0"):
      shown += os.read(reader, 10_000).decode()
    return shown[:-1]

  with open(writer, "w") as file, contextlib.redirect_stderr(file):
    yield show
  os.close(reader)


def test_progress_line_on_a_terminal_is_never_wider(monkeypatch):
  """With a line of 85 on 80 columns, each redraw left part of the last one above."""
  monkeypatch.setenv("COLUMNS", "200")  # inherited by the run; the terminal's own width wins
  now = [0.0]
  monkeypatch.setattr(progress.time, "time", lambda: now[0])
  values = {"loss": 3.25, "lr": 0.00123, "tokens_per_step": 1.234e6}
  seen = {}
  with terminal() as show:
    shown = progress.Progress(1_000_000, 1_050_000, lambda: values)
    now[0] = 987.6
    for columns in (110, 80, 60, 40, 20, 3):  # the window may be resized while it runs
      text = show(columns, lambda: shown.update(1_000_123, force=True))
      start, line = text.removesuffix("\r\n").split("\x1b[2K")
      assert start == "\r"
      assert len(line) < max(columns, 6)
      seen[columns] = line
  step, eta = "t5x: step 1000123/1050000", "ETA 111:14:35"
  assert seen[110] == (f"{step} | 0.125 steps/s | 154k tokens/s | {eta} | loss 3.2500 | lr 0.00123")
  assert seen[80] == f"{step} | 0.125 steps/s | {eta} | loss 3.2500"
  assert seen[60] == f"{step} | {eta} | loss 3.2500"
  assert seen[40] == step
  assert seen[20] == step[:19]


@pytest.mark.parametrize(
  ("value", "text"), [(0.0567, "0.0567"), (999.4, "999"), (999.6, "1k"), (2.5e12, "2.5T")]
)
def test_short_number(value, text):
  assert progress.short_number(value) == text


@pytest.mark.parametrize("script", ["train", "eval", "infer", "main"])
def test_help_fits_on_80_columns(script):
  """The docstring is what --help prints; absl wraps the flags below it."""
  text = importlib.import_module(f"t5x.{script}").__doc__
  assert not [line for line in text.splitlines() if len(line) > 80]


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_lines_and_errors_on_a_terminal_are_never_wider(columns):
  """Wrapped between words, with the parts of an error indented; nothing is lost."""
  fix = "shorten TASK_FEATURE_LENGTHS, which are longer than any example of the task needs"
  text = "t5x: error: " + T5XError("The rows do not fit.", found="x" * 20, fix=fix).text
  with terminal() as show:
    shown = show(columns, lambda: log.say(text)).replace("\r\n", "\n")
    line = show(columns, lambda: log.log(fix)).replace("\r\n", "\n")
  assert max(map(len, (shown + line).split("\n"))) <= columns
  assert (shown.split(), line.split()) == (text.split(), ["t5x:", *fix.split()])
  below = ("t5x: error: ", "  found:     ", "  fix:       ", " " * 13)
  assert all(x.startswith(below) for x in shown.strip().split("\n"))


def test_a_pipe_that_nobody_reads_ends_nothing(monkeypatch):
  """Ctrl-C also ends the reader of `2>&1 | tee log`, before the training has saved its state."""
  reader, writer = os.pipe()
  os.close(reader)
  write = os.write
  with os.fdopen(writer, "w") as broken:
    monkeypatch.setattr(log.sys, "stderr", broken)
    monkeypatch.setattr(stop.os, "write", lambda _, data: write(writer, data))
    request = stop.StopRequest()
    request._handle(signal.SIGTERM, None)
    log.say("stopped")
    with pytest.raises(Interrupted):
      request.check()
    monkeypatch.undo()
    with contextlib.suppress(BrokenPipeError):
      broken.close()
