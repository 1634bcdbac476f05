"""Checks the encoder that training starts from: `sgdx weights import` writes it without heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from flax import traverse_util

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.weights import bert_layout, layout


def check_encoder(
  state_dict: Mapping[str, Any], target_state_dict: Mapping[str, Any], *, is_resuming: bool = False
) -> Mapping[str, Any]:
  """Returns a checkpoint unchanged if its encoder matches the model's.

  With `fallback_to_scratch`, T5X initializes everything that a checkpoint lacks: heads, as it
  should, but also half of an encoder. In gin, where training starts from an encoder:

    utils.RestoreCheckpointConfig:
      fallback_to_scratch = True
      state_transformation_fns = [@restore.check_encoder]

  Args:
    state_dict: the checkpoint's.
    target_state_dict: the train state's.
    is_resuming: whether a run resumes from its own checkpoint, which T5X checks itself.

  Raises:
    SgdxError: listing the arrays that are missing from either or differ in shape.
  """
  if is_resuming:
    return state_dict
  target, stored = _shapes(target_state_dict), _shapes(state_dict)
  if not bert_layout.is_bert(stored):
    raise SgdxError(
      "the checkpoint that training starts from (INITIAL_CHECKPOINT_PATH) has no BERT",
      expected="one that `sgdx weights import` wrote for a BERT, or one of an encoder tracker",
      fix="set INITIAL_CHECKPOINT_PATH = [] to start from random weights",
    )
  # An encoder without a pooler is complete, too: `sgdx weights import` says that it lacks one.
  if f"{bert_layout.PREFIX}pooler/kernel" not in stored:
    for name in ("kernel", "bias"):
      target.pop(f"{bert_layout.PREFIX}pooler/{name}", None)
  layout.check(
    target,
    stored,
    "the checkpoint that training starts from (INITIAL_CHECKPOINT_PATH)",
    expected="the encoder that encoder.BertConfig describes",
    fix="pass the gin/models file, or the bindings, that `sgdx weights import` printed",
  )
  return state_dict


def _shapes(state_dict: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
  """Returns {path: shape} of the encoder's parameters in a state of T5X."""
  shapes = {}
  flat = traverse_util.flatten_dict(dict(state_dict.get("target", {})), sep="/")
  for name, array in flat.items():
    if name.startswith(bert_layout.PREFIX):
      shapes[name] = tuple(np.shape(array))
  return shapes
