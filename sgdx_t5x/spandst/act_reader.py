"""Reads what the system asked and said from the hidden states of a trained SpanDST, in NumPy.

A small network on top of one that stays as it is (`tracking/act_training.py`): for each slot, which
act the utterance has for it, and where its value stands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sgdx_t5x.records import turns
from sgdx_t5x.spandst.numpy_network import FrameStates, SpanNetwork, best_spans

Array = np.ndarray
ACTS = (turns.NONE, turns.REQUEST, turns.INFORM, turns.OFFER, turns.CONFIRM)  # by class
_LONGEST_VALUE = 20  # pieces


class SlotAct(NamedTuple):
  """What the system's utterance has for a slot.

  Attributes:
    act: of `turns.SYSTEM_ACTS`; turns.NONE if it has nothing.
    first: first piece of the value in the utterance; -1 if the act has none there.
    last: last piece.
    value: number of the possible value among those shown, from 1; 0 for a slot without.
  """

  act: int
  first: int = -1
  last: int = -1
  value: int = 0


class ActReader:
  """The small network, and the one whose states it reads.

  Args:
    network: of the tracker.
    arrays: name -> array, as `packed.read_acts` returns them. Shapes, with a width of E:
      "hidden/kernel" `[E, N]`, "hidden/bias" `[N]`, "logits/kernel" `[N, 5]`, "logits/bias" `[5]`,
      "starts/kernel" `[E, E]`, "starts/bias" `[E]`, "ends/kernel" and "ends/bias" likewise.
  """

  def __init__(self, network: SpanNetwork, arrays: Mapping[str, Array]):
    self._network, self._arrays = network, arrays

  def __call__(self, features: Sequence[Mapping[str, Any]]) -> list[list[SlotAct]]:
    """Returns the act of each slot.

    Args:
      features: of frames that have the system's utterance in place of the user's.
    """
    states = self._network.states(features)
    return [self._read(x, state) for x, state in zip(features, states, strict=True)]

  def _read(self, features: Mapping[str, Any], states: FrameStates) -> list[SlotAct]:
    slots, pieces, values = states
    if not len(pieces):  # of a text of blanks
      return [SlotAct(turns.NONE)] * len(slots)
    kinds = self._dense("logits", np.maximum(self._dense("hidden", slots), 0)).argmax(axis=-1)
    root = np.float32(math.sqrt(slots.shape[-1]))
    starts = self._dense("starts", slots) @ pieces.T / root
    ends = self._dense("ends", slots) @ pieces.T / root
    one_utterance = np.zeros(len(pieces), int)
    firsts, lasts, _ = best_spans(starts, ends, one_utterance, _LONGEST_VALUE)
    owners = np.asarray(features["value_slots"], int)
    acts = []
    for i, kind in enumerate(kinds):
      act, is_own = ACTS[kind], owners == i + 1
      if act in (turns.NONE, turns.REQUEST):
        acts.append(SlotAct(act))
      elif is_own.any():
        acts.append(SlotAct(act, value=int(np.where(is_own, values, -np.inf).argmax()) + 1))
      else:
        acts.append(SlotAct(act, int(firsts[i]), int(lasts[i])))
    return acts

  def _dense(self, name: str, x: Array) -> Array:
    return x @ self._arrays[f"{name}/kernel"] + self._arrays[f"{name}/bias"]
