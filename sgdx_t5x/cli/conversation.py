"""The interactive prompt of `sgdx track --schema`: tracks a typed dialogue, turn by turn."""

import contextlib
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence

from sgdx_t5x.cli import output
from sgdx_t5x.cli.progress import native_stderr_hidden
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.tables import Table
from sgdx_t5x.tracking.conversations import Utterance, from_utterances, read_acts, states
from sgdx_t5x.tracking.protocol import Shown, TrackedFrame, Tracker

_WIDTH = 80
_NOTHING = "-"
_ACTS = re.compile(r"\{([^{}]*)\}\s*$")
_HELP = """\
Type user and system utterances in turn. After every user turn, the state is
shown with the names of the schema; * marks differences between variants.
  /undo  removes the last line        /reset  starts a new dialogue
  /help  shows this help              Ctrl-D  quits"""
_HELP_ACTS = """\
{} also reads system acts, which utterances do not contain:
  system> I found the Ramada. {{OFFER hotel_name=Ramada; REQUEST check_in}}
  acts: INFORM, REQUEST, CONFIRM, OFFER, OFFER_INTENT, NOTIFY_SUCCESS"""


class Conversation:
  """The dialogue that is being typed."""

  def __init__(
    self,
    tracker: Tracker,
    shown: Mapping[str, Shown],
    services: Sequence[str],
    debug: bool = False,
  ):
    """Args: tracker; shown, variant -> what the tracker is shown; services to track; debug."""
    self._tracker, self._shown, self._services = tracker, shown, tuple(services)
    self._said: list[Utterance] = []
    self._debug = debug

  def run(self) -> None:
    """Reads lines until there are no more."""
    with contextlib.suppress(ImportError):
      import readline  # noqa: F401  # line editing, and history with the arrow keys
    self._help()
    while True:
      is_system = len(self._said) % 2 == 1
      try:
        line = input("system> " if is_system else "user> ").strip()
      except EOFError:
        print()
        return
      except UnicodeDecodeError as e:  # of a pipe, the lines after it are lost too
        raise SgdxError(
          f"the line after {len(self._said)} utterances is not {e.encoding.upper()} ({e.reason})",
          expected=f"text in {e.encoding.upper()}",
          fix="convert the text, for example with iconv, or set PYTHONIOENCODING to its encoding",
        ) from None
      if not sys.stdin.isatty():
        print(line)  # echoed, as on a terminal
      if line.startswith("/"):
        self._command(line)
      elif line or is_system:
        self._say(line, is_system)

  def _help(self) -> None:
    print(_HELP)
    if self._tracker.reads_acts:
      print(_HELP_ACTS.format(self._tracker.name))

  def _command(self, line: str) -> None:
    if line == "/reset":
      self._said.clear()
      print("a new dialogue")
    elif line == "/undo":
      del self._said[-1:]
      print(f"{len(self._said)} lines left")
    else:
      if line != "/help":
        print(f"unknown command {line}")
      self._help()

  def _say(self, line: str, is_system: bool) -> None:
    original = next(iter(self._shown.values())).original
    try:
      utterance: Utterance = line
      if is_system and self._tracker.reads_acts and (match := _ACTS.search(line)):
        utterance = (line[: match.start()].strip(), read_acts(match[1], original, self._services))
      dialogue = from_utterances([*self._said, utterance], original, self._services)
      if not is_system:
        with native_stderr_hidden(self._debug):
          frames_by_variant = {
            k: states(self._tracker, dialogue, x)[-1] for k, x in self._shown.items()
          }
        self._show(frames_by_variant)
      self._said.append(utterance)
    except SgdxError as e:  # the line can be typed again
      sys.stdout.flush()
      print(e, file=sys.stderr)

  def _show(self, frames_by_variant: Mapping[str, Mapping[str, TrackedFrame]]) -> None:
    tables = []
    for service in self._services:
      frames = [of_variant[service] for of_variant in frames_by_variant.values()]
      rows = [(label, *cells, _mark(cells)) for label, cells in _rows(frames)]
      header = (service, *frames_by_variant, "")
      tables.append(Table("", header, tuple(rows), left=len(header)))
      if not rows:
        print(textwrap.fill(f"{service}: nothing yet", _WIDTH))
    output.show("text", [table for table in tables if table.rows], {})
    sys.stdout.flush()


def _rows(frames: Sequence[TrackedFrame]) -> list[tuple[str, list[str]]]:
  """Returns (label, a cell per variant) for whatever is predicted for a service in any variant."""
  slots = dict.fromkeys(slot for frame in frames for slot in frame.slot_values)
  rows = [(x, [" | ".join(frame.slot_values.get(x, ())) for frame in frames]) for x in slots]
  requested = [", ".join(frame.requested_slots or ()) for frame in frames]
  rows.append(("(asked for)", requested))
  intents = [frame.active_intent or "" for frame in frames]
  rows.append(("(intent)", [intent if intent != "NONE" else "" for intent in intents]))
  return [(label, [x or _NOTHING for x in cells]) for label, cells in rows if any(cells)]


def _mark(cells: Sequence[str]) -> str:
  return "*" if len(set(cells)) > 1 else ""
