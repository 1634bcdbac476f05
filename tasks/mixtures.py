"""The core's tasks and mixtures; an annex registers its own. To add one, add a call here."""

from typing import Any

from sgdx_t5x.prompts import load_format
from sgdx_t5x.prompts.d3st.style import D3stStyle
from sgdx_t5x.prompts.sdt.style import SdtStyle
from sgdx_t5x.prompts.t5dst.text import PromptStyle
from sgdx_t5x.spandst.span_text import SpanStyle
from sgdx_t5x.tasks.registration import register_family
from sgdx_t5x.tasks.spandst import register_spandst_family
from sgdx_t5x.tasks.vocabularies import (
  encoder_vocabulary_later,
  prompt_vocabulary,
  prompts_are_uncased,
  sample_encoder_vocabulary,
  sample_vocabulary,
)

# Users provide the demonstrations for SGD's services: docs/demonstrations.md. With an uncased
# vocabulary, T5DST's prompts mark the possible value "None", which must not read as "none".
_STYLES: dict[str, Any] = {"sdt": SdtStyle(demos="$SGDX_DEMOS")}
if prompts_are_uncased():
  _STYLES["t5dst"] = PromptStyle(lowercase=True)

# For a tiny network without pretraining: answers that it learns to copy, values as in the dialogue,
# no option letters, and an index that identifies the slot (docs/formats.md says what that costs).
_TINY = {
  "d3st": D3stStyle(values="none", slots="tracked", order="schema", lowercase=False),
  "sdt": SdtStyle(values="list", lowercase=False),
}

for _format in ("t5dst", "d3st", "sdt", "state"):
  _full, _sample = load_format(_format, _STYLES.get(_format)), load_format(_format)
  register_family("", data="full", vocabulary=prompt_vocabulary, prompt_format=_full)
  register_family("sample_", data="sample", vocabulary=sample_vocabulary, prompt_format=_sample)
for _format, _style in _TINY.items():
  _tiny = load_format(_format, _style)
  register_family("tiny_", data="sample", vocabulary=sample_vocabulary, prompt_format=_tiny)

register_spandst_family("", data="full", vocabulary=encoder_vocabulary_later)
register_spandst_family("sample_", data="sample", vocabulary=sample_encoder_vocabulary)
# For users' own dialogues, whose system turns have no annotated acts: half of the training frames
# are read without them.
register_spandst_family(
  "plain_", data="full", vocabulary=encoder_vocabulary_later, style=SpanStyle(plain_text=0.5)
)
