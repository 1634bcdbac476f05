"""Small synthetic frames for the span tracker's model, with every kind of answer."""

import numpy as np

from sgdx_t5x.spandst import answers as a

# Token ids: markers, slot names, words in values, options and filler.
MARK_SLOT, MARK_VALUE, MARK_MEMORY, MARK_INTENT = 4, 5, 6, 7
FIRST, SEPARATOR = 2, 3
NAMES, WORDS, OPTIONS, FILLER = range(10, 14), range(20, 34), range(40, 46), range(50, 60)
VOCAB_SIZE = 64
LENGTHS = {
  "inputs": 64,
  "segments": 64,
  "slots": 4,
  "slot_context": 4,
  "values": 6,
  "value_slots": 6,
  "memory": 2,
  "intents": 2,
  "intent_context": 2,
  "targets": 24,
}


def frame(rng: np.random.Generator) -> dict[str, np.ndarray]:
  """A frame whose user says "name value" for some slots; the state follows from the tokens.

  Slots 1 and 2 are non-categorical, slot 3 has two values, and slot 4 cannot be filled.
  """
  names = rng.permutation(list(NAMES))
  tokens, segments = [FIRST], [a.SEPARATOR]

  def say(pieces, segment) -> int:
    tokens.extend(pieces)
    segments.extend([segment] * len(pieces))
    return len(tokens) - len(pieces)

  say(rng.choice(list(FILLER), 2), a.SYSTEM_UTTERANCE)
  say([SEPARATOR], a.SEPARATOR)
  targets, options = [], rng.choice(list(OPTIONS), 2, replace=False)
  say(rng.choice(list(FILLER), 2), a.USER_UTTERANCE)
  for i in rng.permutation(3):
    if rng.random() < 0.5:
      continue
    if i == 2:
      which = int(rng.integers(2))
      say([names[i], options[which]], a.USER_UTTERANCE)
      targets.append((i + 1, a.VALUE, which + 1, 0))
    else:
      start = say([names[i], *rng.choice(list(WORDS), 2)], a.USER_UTTERANCE)
      targets.append((i + 1, a.SPAN, start + 1, start + 2))
  say([SEPARATOR], a.SEPARATOR)
  slots, values = [], []
  for i in range(4):
    slots.append(say([MARK_SLOT, names[i]], a.SCHEMA))
    if i == 2:
      values = [say([MARK_VALUE, option], a.SCHEMA) for option in options]
  memory = [say([MARK_MEMORY, rng.choice(list(WORDS))], a.OTHER_SERVICES)]
  intents = [say([MARK_INTENT, FILLER[0]], a.SCHEMA)]
  requested = int(rng.integers(4))
  if tokens[1] % 2:
    targets.append((requested + 1, a.REQUESTED, 0, 0))
  targets.append((0, a.INTENT, int(tokens[2] % 2), 0))
  free = a.FILLABLE | a.SPAN_OPEN | a.MEMORY_OPEN
  arrays = {
    "inputs": tokens,
    "segments": segments,
    "slots": slots,
    "slot_context": [free, free | a.CLEAR_OPEN, a.FILLABLE, 32],
    "values": values,
    "value_slots": [3, 3],
    "memory": memory,
    "intents": intents,
    "intent_context": [2],
    "targets": np.ravel(targets),
  }
  return {name: np.array(array, np.int32) for name, array in arrays.items()}


def frames(number: int, seed: int = 0) -> list[dict[str, np.ndarray]]:
  """Frames, the same for the same seed."""
  rng = np.random.default_rng(seed)
  return [frame(rng) for _ in range(number)]
