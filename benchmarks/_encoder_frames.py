"""Synthetic frames for encoder_step.py, as long as SGD's; NumPy only, for both interpreters."""

from __future__ import annotations

import numpy as np

VOCAB_SIZE, SLOTS, VALUES, MEMORY, INTENTS = 30_522, 6, 8, 4, 2
LONGEST = 384


def frames(number: int, seed: int = 0) -> list[dict[str, np.ndarray]]:
  """Frames of 60 to 384 tokens, 163 on average, with the features that the span tracker reads."""
  rng = np.random.default_rng(seed)
  return [_frame(rng) for _ in range(number)]


def _frame(rng: np.random.Generator) -> dict[str, np.ndarray]:
  length = int(np.clip(rng.lognormal(5.0, 0.44), 60, LONGEST))
  said = length // 4
  segments = np.full(length, 4)
  segments[1:said], segments[said : 2 * said] = 1, 2
  segments[[0, said, 2 * said]] = 3
  places = np.sort(
    rng.choice(np.arange(2 * said + 1, length), SLOTS + VALUES + MEMORY + INTENTS, replace=False)
  )
  slots, values, memory, intents = np.split(places, np.cumsum([SLOTS, VALUES, MEMORY]))
  start = int(rng.integers(said + 1, 2 * said - 2))
  targets = [[1, 5, start, start + 1], [2, 6, 2, 0], [3, 2, 0, 0], [0, 9, 1, 0]]
  arrays = {
    "inputs": rng.integers(1000, VOCAB_SIZE, length),
    "segments": segments,
    "slots": slots,
    "slot_context": np.full(SLOTS, 31),
    "values": values,
    "value_slots": np.arange(VALUES) % SLOTS + 1,
    "memory": memory,
    "intents": intents,
    "intent_context": np.zeros(INTENTS),
    "targets": np.ravel(targets),
  }
  return {name: array.astype(np.int32) for name, array in arrays.items()}
