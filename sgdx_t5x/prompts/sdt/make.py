"""Demonstrations from a corpus' own dialogues.

Takes from every dialogue with a service the shortest beginning whose state sets the most of its
slots, then chooses the dialogues that set the most; of equally good ones, those whose ids have the
largest hashes. Tracked slots that are not set are "none".
"""

import collections
import dataclasses
import heapq
from collections.abc import Iterable

from sgdx_t5x.corpus.dialogue import USER, Dialogue, State
from sgdx_t5x.corpus.schema import Schema, Service
from sgdx_t5x.corpus.subset import rank
from sgdx_t5x.files.reading import as_text
from sgdx_t5x.prompts.sdt.demonstrations import SYSTEM_TAG, USER_TAG, Demonstration
from sgdx_t5x.prompts.values import NONE


@dataclasses.dataclass(frozen=True, slots=True)
class _Beginning:
  """The first turns of a dialogue, up to a user turn, and the state of a service there."""

  dialogue: Dialogue
  turn: int
  state: State
  alone: bool  # whether no other service has a frame in it


def make_demonstrations(
  dialogues: Iterable[Dialogue],
  schema: Schema,
  per_service: int,
  source: str,
  service_names: Iterable[str],
) -> dict[str, list[Demonstration]]:
  """Chooses demonstrations from dialogues.

  Args:
    dialogues: of a split, in original names.
    schema: the split's original schema.
    per_service: maximum number for each service, each from another dialogue.
    source: the demonstrations' `source`.
    service_names: those of the schema that need some.

  Returns:
    Service -> its demonstrations, best first; a service without dialogues is absent.
  """
  names = frozenset(service_names)
  best: dict[str, list[tuple[tuple, _Beginning]]] = collections.defaultdict(list)
  for number, dialogue in enumerate(dialogues):
    for name, beginning in _beginnings(dialogue, names).items():
      # Many slots, no other service, few turns; then a draw. The number is unique, so that
      # beginnings, which have no order, are never compared.
      worth = len(beginning.state.slot_values), beginning.alone, -beginning.turn
      key = (*worth, rank(dialogue.dialogue_id, seed=0), number)
      best[name] = heapq.nlargest(per_service, [*best[name], (key, beginning)])
  by_service = {}
  for service in schema:
    if ranked := best.get(service.name):
      by_service[service.name] = [_demonstration(service, x, source) for _, x in ranked]
  return by_service


def _beginnings(dialogue: Dialogue, names: frozenset[str]) -> dict[str, _Beginning]:
  """Returns service -> the shortest beginning that sets the most slots."""
  by_service: dict[str, _Beginning] = {}
  services_so_far: set[str] = set()
  for turn, frame in dialogue.user_frames():
    services_so_far.update(f.service for f in dialogue.turns[turn].frames)
    if frame.service not in names:
      continue
    earlier = by_service.get(frame.service)
    state = frame.user_state
    if earlier is None or len(state.slot_values) > len(earlier.state.slot_values):
      by_service[frame.service] = _Beginning(dialogue, turn, state, len(services_so_far) == 1)
  return by_service


def _demonstration(service: Service, beginning: _Beginning, source: str) -> Demonstration:
  turns = []
  for turn in beginning.dialogue.turns[: beginning.turn + 1]:
    tag = USER_TAG if turn.speaker == USER else SYSTEM_TAG
    turns.append(f"{tag} {' '.join(turn.utterance.split())}")
  text = as_text(" ".join(turns))
  slots, lower_text = {}, text.lower()
  for i in service.tracked_slots:
    slot = service.slots[i].name
    values = beginning.state.slot_values.get(slot, (NONE,))
    # Of several values, the one that a reader of the text finds in it.
    slots[slot] = next((value for value in values if value.lower() in lower_text), values[0])
  return Demonstration(service.name, text, slots, beginning.state.active_intent, source=source)
