"""D3ST: one example per frame, descriptions with indices, the state by index as its answer."""

from sgdx_t5x.prompts.d3st.format import D3ST
from sgdx_t5x.prompts.d3st.style import D3stStyle

__all__ = ["D3ST", "D3stStyle"]
