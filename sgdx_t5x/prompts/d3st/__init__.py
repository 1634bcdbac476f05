"""D3ST: one example per frame, descriptions with indices, the state by index as its answer."""

from sgdx_t5x.prompts.d3st.style import D3stStyle
from sgdx_t5x.prompts.d3st.text import D3ST

__all__ = ["D3ST", "D3stStyle"]
