"""T5DST: one example per slot of a frame, the value as its answer."""

from sgdx_t5x.prompts.t5dst.format import T5DST
from sgdx_t5x.prompts.t5dst.text import PromptStyle

__all__ = ["T5DST", "PromptStyle"]
