"""D3ST: one example per frame, descriptions with indices, the state by index as its answer."""

from sgdx_t5x.prompts.d3st.format import D3ST, shown_frames
from sgdx_t5x.prompts.d3st.parts import Order, ServiceParts, frame_order, service_parts
from sgdx_t5x.prompts.d3st.reading import read_answer
from sgdx_t5x.prompts.d3st.style import D3stStyle
from sgdx_t5x.prompts.d3st.text import prefix_parts, target_text, utterance_text

__all__ = [
  "D3ST",
  "D3stStyle",
  "Order",
  "ServiceParts",
  "frame_order",
  "prefix_parts",
  "read_answer",
  "service_parts",
  "shown_frames",
  "target_text",
  "utterance_text",
]
