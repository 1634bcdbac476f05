"""SDT, "Show, Don't Tell" (Gupta et al. 2022): a demonstration per service, an answer per frame."""

from sgdx_t5x.prompts.sdt.demonstrations import load_demonstrations
from sgdx_t5x.prompts.sdt.style import SdtStyle
from sgdx_t5x.prompts.sdt.text import SDT

__all__ = ["SDT", "SdtStyle", "load_demonstrations"]
