"""Schemas as tools of language models: definitions, requests, and calls as states."""

from sgdx_t5x.tools.delivery import ToolStyle
from sgdx_t5x.tools.format import ToolCalls

__all__ = ["ToolCalls", "ToolStyle"]
