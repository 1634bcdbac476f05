"""Prompt formats: a module or package each, implementing the protocol of `protocol.py`.

README.md beside this file shows how to add one. Nothing here imports TensorFlow or JAX.
"""

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sgdx_t5x import annexes
from sgdx_t5x.corpus.example_id import Unit
from sgdx_t5x.errors import UsageError
from sgdx_t5x.prompts.protocol import PromptFormat, Provenance

if TYPE_CHECKING:
  from sgdx_t5x.corpus.corpus import Corpus
  from sgdx_t5x.metrics.frames import GoldFrame

DEFAULT = "t5dst"
CORE_FORMATS = {  # name -> module:class, imported when asked for
  DEFAULT: "sgdx_t5x.prompts.t5dst:T5DST",
  "d3st": "sgdx_t5x.prompts.d3st:D3ST",
  "sdt": "sgdx_t5x.prompts.sdt:SDT",
  "state": "sgdx_t5x.prompts.state:StateText",
}
FORMATS: dict[str, str] = {**CORE_FORMATS, **annexes.table("FORMATS")}


def load_format(name: str | PromptFormat = DEFAULT, style: Any = None) -> PromptFormat:
  """Returns a registered prompt format.

  Args:
    name: a key of `FORMATS`; or a format of one's own, which is returned.
    style: its style; None for the default.

  Raises:
    UsageError: no format has that name, or the style is another's.
  """
  if style is None and not isinstance(name, str) and hasattr(name, "asked"):  # a protocol
    return name
  if not isinstance(name, str) or name not in FORMATS:
    raise UsageError(
      f"prompt format {name!r}",
      expected="a prompt format of this package",
      available=", ".join(FORMATS),
      fix="choose one of them",
    )
  format_class = annexes.load(FORMATS[name])
  if style is None:
    return format_class()
  kind = type(format_class().style)
  if type(style) is not kind:
    raise UsageError(
      f"a style of type {type(style).__name__} for prompt format {name!r}",
      expected=f"a {kind.__name__}",
      fix=f"pass a {kind.__name__}, or the format that the style is for",
    )
  return format_class(style)


def formats_of(unit: Unit) -> list[str]:
  """Returns the names of the registered formats whose examples ask for this unit."""
  return [name for name in FORMATS if load_format(name).unit == unit]


def signature_fields(prompt_format: PromptFormat) -> dict[str, str]:
  """Returns a score signature's fields for the prompts; none for T5DST's default style."""
  fields = {} if prompt_format.name == DEFAULT else {"format": prompt_format.name}
  style, usual = prompt_format.style, type(prompt_format)().style
  changes = []
  for field in dataclasses.fields(style):
    if field.metadata.get("file") or field.metadata.get("provenance"):
      continue  # `provenance` says what is behind it
    value = getattr(style, field.name)
    if value != getattr(usual, field.name):
      # Separators of the signature and of its fields are escaped.
      text = re.sub(r"[%|+]", lambda match: f"%{ord(match[0]):X}", str(value))
      changes.append(f"{field.name}={text}")
  if changes:
    fields["style"] = "+".join(changes)
  return fields


def provenance(
  prompt_format: PromptFormat, corpus: "Corpus", gold: "Sequence[GoldFrame]"
) -> Provenance:
  """Returns what a score records of the files behind its prompts; nothing for most formats.

  A format may have a method `provenance(corpus, gold)`, of the corpus and the frames that are
  scored, which raises SgdxError for a file that does not match the corpus.
  """
  of_format = getattr(prompt_format, "provenance", None)
  return of_format(corpus, gold) if of_format else Provenance()
