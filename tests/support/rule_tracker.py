"""A rule-based tracker with the protocol of trained ones, to test their callers without a model.

A slot gets the value that came last: a possible value that the user mentioned, or what the system
offered. In a variant with empty descriptions it finds less, as trained trackers do.
"""

from collections.abc import Iterator

from sgdx_t5x.corpus.dialogue import USER, frame_id
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.tracking.protocol import TrackedFrame


class RuleTracker:
  name = "Rules"
  reads_gold = False

  def __init__(self, reads_acts=True, settings=None, stop_after=None, most_slots=100):
    self.reads_acts = self.needs_acts = reads_acts
    self.settings = {"tracker": "Rules", **(settings or {})}
    self.asked: list[str] = []  # frames, in order
    self._left, self._most = stop_after, most_slots

  def check(self, shown):
    for service in shown.schema:
      if len(service.slots) > self._most:
        over = len(service.slots) - self._most
        raise SgdxError(f"{service.name}: {over} slots too many", expected="fewer", fix="less")

  def track(self, dialogues, shown) -> Iterator[dict[str, TrackedFrame]]:
    for dialogue in dialogues:
      values: dict[tuple[str, str], str] = {}
      for number, turn in enumerate(dialogue.turns):
        for frame in turn.frames:
          assert frame.state is None  # gold
          for action in frame.actions or ():
            if action["act"] == "OFFER" and action.get("values"):
              values[frame.service, action["slot"]] = action["values"][0]
        if turn.speaker != USER:
          continue
        found = {}
        for frame in turn.frames:
          original = shown.original[frame.service]
          words = shown.schema.services[shown.original.names.index(frame.service)]
          for slot, reworded in zip(original.slots, words.slots, strict=True):
            for value in slot.possible_values:
              if value.lower() in turn.utterance.lower() and reworded.description:
                values[frame.service, slot.name] = value
          name = frame_id(dialogue.dialogue_id, number, frame.service)
          state = {s: (x,) for (service, s), x in values.items() if service == frame.service}
          found[name] = TrackedFrame(state, "NONE", ())
          self._stop()
          self.asked.append(name)
        yield found

  def _stop(self):
    if self._left is not None:
      if not self._left:
        raise KeyboardInterrupt
      self._left -= 1
