"""A seeded sample of a split for costly models: whole dialogues, balanced over services.

Schema sensitivity compares a frame between variants and intervals resample dialogues, so
whole dialogues are sampled, independently of the variant.
"""

import collections
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.corpus.subset import rank
from sgdx_t5x.errors import UsageError
from sgdx_t5x.prompts.protocol import PromptFormat


@dataclasses.dataclass(frozen=True, slots=True)
class DialogueSize:
  """What a dialogue adds to a sample.

  Attributes:
    dialogue_id: unique in the split.
    frames: service, by its original name -> user frames of it.
    num_prompts: prompts of all its frames, the same in every variant.
  """

  dialogue_id: str
  frames: Mapping[str, int]
  num_prompts: int


def dialogue_sizes(
  dialogues: Iterable[Dialogue], schema: Schema, prompt_format: PromptFormat
) -> Iterator[DialogueSize]:
  """Yields the sizes of a split's dialogues. Args: schema is the split's original one."""
  asked = {service.name: len(prompt_format.asked(service)) for service in schema}
  for dialogue in dialogues:
    frames = collections.Counter(frame.service for _, frame in dialogue.user_frames())
    num_prompts = sum(asked[name] * n for name, n in frames.items())
    yield DialogueSize(dialogue.dialogue_id, dict(frames), num_prompts)


def choose_dialogues(
  sizes: Sequence[DialogueSize],
  limit: int,
  seed: int = 0,
  group: Callable[[str], Hashable] = lambda service: None,
) -> frozenset[str]:
  """Chooses dialogues with at most `limit` prompts in total.

  Repeatedly, the service with the fewest frames so far gets a random one of its dialogues that
  still fit, until none fits. "Random" means the order of a hash of seed and id: the same in every
  Python, whatever the order of the dialogues. A larger limit may leave out dialogues that a
  smaller one chose.

  Args:
    sizes: the dialogues to choose from; one without prompts is never chosen.
    limit: prompts per variant.
    seed: another number gives another sample.
    group: service name -> its group; services of the group with the fewest frames come first.

  Returns:
    Their ids.

  Raises:
    UsageError: not even the smallest dialogue fits.
  """
  waiting = collections.defaultdict(list)  # service -> its dialogues, the next one last
  for size in sorted(sizes, key=lambda size: rank(size.dialogue_id, seed)):
    for name in size.frames if size.num_prompts else ():
      waiting[name].append(size)
  frames, of_group, room, chosen = collections.Counter(), collections.Counter(), limit, set()
  while waiting:
    name = min(waiting, key=lambda name: (of_group[group(name)], frames[name], name))
    size = waiting[name].pop()
    if size.num_prompts <= room and size.dialogue_id not in chosen:
      chosen.add(size.dialogue_id)
      room -= size.num_prompts
      frames.update(size.frames)
      for service, number in size.frames.items():
        of_group[group(service)] += number
    if not waiting[name]:
      del waiting[name]
  if not chosen:
    raise _too_small(sizes, limit)
  return frozenset(chosen)


def _too_small(sizes: Sequence[DialogueSize], limit: int) -> UsageError:
  found = [size.num_prompts for size in sizes if size.num_prompts]
  least, most = min(found, default=0), max(found, default=0)
  return UsageError(
    f"a limit of {limit:,} prompts",
    expected="room for at least one complete dialogue: scores need all of its frames",
    available=f"{len(found):,} dialogues with {least:,} to {most:,} prompts each",
    fix=f"set --limit to at least {least}; hundreds of dialogues give useful intervals",
  )
