"""T5DST: one example per slot of a frame, the value as its answer."""

from sgdx_t5x.prompts.t5dst.text import T5DST, PromptStyle

__all__ = ["T5DST", "PromptStyle"]
