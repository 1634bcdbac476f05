"""The interactive prompt of `sgdx track --schema`: tracks a typed dialogue, turn by turn."""

import contextlib
import dataclasses
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence

from sgdx_t5x.cli import output
from sgdx_t5x.cli.progress import native_stderr_hidden
from sgdx_t5x.corpus.schema import NO_INTENT
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.tables import Table
from sgdx_t5x.tracking.conversations import Utterance, from_utterances, read_acts, states
from sgdx_t5x.tracking.protocol import Shown, TrackedFrame, Tracker

_WIDTH = 80
_NOTHING = "-"
_REQUESTED, _INTENT = "(asked for)", "(intent)"  # labels of rows that are no slot's
_ACTS = re.compile(r"\{([^{}]*)\}\s*$")
_HELP = """\
Type user and system utterances in turn. After every user turn, the state is
shown with the names of the schema; * marks differences between variants.
  /undo  removes the last line        /reset  starts a new dialogue
  /help  shows this help              Ctrl-D  quits"""
_HELP_ACTS = """\
{} uses the system's acts; if you know them, type them too:
  system> I found the Ramada. {{OFFER hotel_name=Ramada; REQUEST check_in}}
  acts: INFORM, REQUEST, CONFIRM, OFFER, OFFER_INTENT, NOTIFY_SUCCESS"""


@dataclasses.dataclass
class Conversation:
  """The dialogue that is being typed, its tracker, and variant -> what the tracker is shown."""

  tracker: Tracker
  shown_by_variant: Mapping[str, Shown]
  services: Sequence[str]
  debug: bool = False
  utterances: list[Utterance] = dataclasses.field(default_factory=list)

  def run(self) -> None:
    """Reads lines until there are no more."""
    with contextlib.suppress(ImportError):
      import readline  # noqa: F401  # line editing, and history with the arrow keys
    self._help()
    while True:
      is_system = len(self.utterances) % 2 == 1
      try:
        line = input("system> " if is_system else "user> ").strip()
        line.encode()  # in the locale C.UTF-8, bytes that are not UTF-8 are read as half characters
      except EOFError:
        print()
        return
      except (UnicodeDecodeError, UnicodeEncodeError) as e:
        # Of a pipe, the lines after it are lost too.
        encoding = e.encoding.upper()
        raise SgdxError(
          f"the line after {len(self.utterances)} utterances is not {encoding} ({e.reason})",
          expected=f"text in {encoding}",
          fix="convert the text, for example with iconv, or set PYTHONIOENCODING to its encoding",
        ) from None
      if not sys.stdin.isatty():
        print(line)  # echoed, as on a terminal
      if line.startswith("/"):
        self._command(line)
      elif line or is_system:  # a system can stay silent; a user has only pressed Enter
        self._say(line, is_system)

  def _help(self) -> None:
    print(_HELP)
    if self.tracker.reads_acts:
      print(_HELP_ACTS.format(self.tracker.name))

  def _command(self, line: str) -> None:
    if line == "/reset":
      self.utterances.clear()
      print("a new dialogue")
    elif line == "/undo":
      del self.utterances[-1:]
      print(f"{len(self.utterances)} lines left")
    else:
      if line != "/help":
        print(f"unknown command {line}")
      self._help()

  def _say(self, line: str, is_system: bool) -> None:
    original = next(iter(self.shown_by_variant.values())).original
    try:
      utterance: Utterance = line
      if is_system and self.tracker.reads_acts and (match := _ACTS.search(line)):
        utterance = (line[: match.start()].strip(), read_acts(match[1], original, self.services))
      dialogue = from_utterances([*self.utterances, utterance], original, self.services)
      if not is_system:
        frames_by_variant = {}
        with native_stderr_hidden(self.debug):
          for variant, shown in self.shown_by_variant.items():
            frames_by_variant[variant] = states(self.tracker, dialogue, shown)[-1]
        self._show(frames_by_variant)
      self.utterances.append(utterance)
    except SgdxError as e:  # the line can be typed again
      sys.stdout.flush()
      print(e, file=sys.stderr)

  def _show(self, frames_by_variant: Mapping[str, Mapping[str, TrackedFrame]]) -> None:
    tables = []
    for service in self.services:
      rows = _rows([by_service[service] for by_service in frames_by_variant.values()])
      if rows:
        header = (service, *frames_by_variant, "")
        tables.append(Table("", header, rows, left=len(header)))
      else:
        print(textwrap.fill(f"{service}: nothing yet", _WIDTH))
    output.show("text", tables, {})
    sys.stdout.flush()


def _rows(frames: Sequence[TrackedFrame]) -> tuple[tuple[str, ...], ...]:
  """Returns (label, a cell per frame, mark of a difference) for what any frame has."""
  slots: dict[str, None] = {}  # a dict for its order
  for frame in frames:
    slots.update(dict.fromkeys(frame.slot_values))
  rows = []
  for label in (*slots, _REQUESTED, _INTENT):
    texts = [_text(frame, label) for frame in frames]
    if any(texts):
      cells = [text or _NOTHING for text in texts]
      rows.append((label, *cells, "*" if len(set(texts)) > 1 else ""))
  return tuple(rows)


def _text(frame: TrackedFrame, label: str) -> str:
  if label == _REQUESTED:
    return ", ".join(frame.requested_slots or ())
  if label == _INTENT:
    return "" if frame.active_intent == NO_INTENT else frame.active_intent or ""
  return " | ".join(frame.slot_values.get(label, ()))
