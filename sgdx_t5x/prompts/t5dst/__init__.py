"""T5DST: one example per slot of a frame, the value as its answer."""

from sgdx_t5x.prompts.t5dst.format import T5DST
from sgdx_t5x.prompts.t5dst.text import (
  JOIN,
  NONE,
  PromptStyle,
  base_name,
  read_value,
  slot_indices,
  slot_text,
  target_text,
  utterance_text,
)

__all__ = [
  "JOIN",
  "NONE",
  "T5DST",
  "PromptStyle",
  "base_name",
  "read_value",
  "slot_indices",
  "slot_text",
  "target_text",
  "utterance_text",
]
