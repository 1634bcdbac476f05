"""A seeded sample of a split for costly models: whole dialogues, balanced over services.

Schema sensitivity compares a frame between variants and intervals resample dialogues, so whole
dialogues are sampled, independently of the variant and of the format of the prompts.
"""

import collections
from collections.abc import Callable, Hashable, Iterable, Mapping

from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.subset import rank

# Dialogue id -> service, by its original name -> user frames of it.
FrameCounts = Mapping[str, Mapping[str, int]]


def frame_counts(dialogues: Iterable[Dialogue]) -> FrameCounts:
  """Returns the frames of each dialogue by service."""
  counts = {}
  for dialogue in dialogues:
    services = [frame.service for _, frame in dialogue.user_frames()]
    counts[dialogue.dialogue_id] = collections.Counter(services)
  return counts


def choose_dialogues(
  frames: FrameCounts,
  number: int,
  seed: int = 0,
  group: Callable[[str], Hashable] = lambda service: None,
) -> frozenset[str]:
  """Chooses dialogues.

  Repeatedly, the service with the fewest frames so far gets a random one of its dialogues. "Random"
  means the order of a hash of seed and id: the same in every Python, whatever the order of the
  dialogues. A larger number adds dialogues to those of a smaller one.

  Args:
    frames: of the dialogues to choose from; one without frames is never chosen.
    number: how many; all if there are fewer.
    seed: another number gives another sample.
    group: service name -> its group; services of the group with the fewest frames come first.

  Returns:
    Their ids.
  """
  waiting = collections.defaultdict(list)  # service -> its dialogues, the next one last
  for dialogue_id in sorted(frames, key=lambda dialogue_id: rank(dialogue_id, seed)):
    for service in frames[dialogue_id]:
      waiting[service].append(dialogue_id)
  sampled: set[str] = set()
  chosen_frames: collections.Counter[str] = collections.Counter()
  group_frames: collections.Counter[Hashable] = collections.Counter()
  while waiting and len(sampled) < number:
    service = min(waiting, key=lambda name: (group_frames[group(name)], chosen_frames[name], name))
    dialogue_id = waiting[service].pop()
    if not waiting[service]:
      del waiting[service]
    if dialogue_id not in sampled:  # it may have been another service's
      sampled.add(dialogue_id)
      chosen_frames.update(frames[dialogue_id])
      for name, count in frames[dialogue_id].items():
        group_frames[group(name)] += count
  return frozenset(sampled)
