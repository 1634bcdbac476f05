"""The registry of prompt formats, what importing it loads, and formats in signatures."""

import dataclasses

import pytest
from commands import python_code
from places import ROOT

from sgdx_t5x.errors import UsageError
from sgdx_t5x.prompts import CORE_FORMATS, FORMATS, load_format, signature_fields
from sgdx_t5x.prompts.d3st import D3ST, D3stStyle
from sgdx_t5x.prompts.sdt import SdtStyle
from sgdx_t5x.prompts.t5dst import T5DST, PromptStyle
from sgdx_t5x.scoring.score import Settings


@pytest.mark.parametrize("name", FORMATS)
def test_registered_formats_load_by_their_name(name):
  found = load_format(name)
  assert found.name == name
  assert found.unit in ("slot", "frame")
  assert load_format(name, found.style) == found


def test_formats_and_their_fields_are_documented():
  """Errors of `--prompt-style` refer to these pages."""
  page = (ROOT / "docs/formats.md").read_text("utf-8")
  for name in CORE_FORMATS:
    fields = [field.name for field in dataclasses.fields(load_format(name).style)]
    forms = [(f"`{x}", f"`--{x}", f"format={x}`") for x in (name, *fields)]
    assert all(any(form in page for form in x) for x in forms), name


def test_a_style_is_the_formats_own():
  with pytest.raises(UsageError, match="a style of type D3stStyle for prompt format 't5dst'"):
    load_format("t5dst", D3stStyle())


@pytest.mark.parametrize(
  ("style", "field", "value"),
  [
    (PromptStyle, "lowercase", "no"),
    (PromptStyle, "values", None),
    (D3stStyle, "delimiter", 3),  # regression: these two were TypeErrors
    (SdtStyle, "demo", "1"),
  ],
)
def test_values_of_another_type_are_refused(style, field, value):
  with pytest.raises(UsageError, match=f"{style.__name__}: {field} is of type"):
    style(**{field: value})


def test_an_unknown_format_is_refused():
  with pytest.raises(UsageError, match="prompt format 't5dts'") as error:
    load_format("t5dts")
  assert "t5dst" in error.value.available


def test_a_signature_names_what_is_not_the_default():
  assert signature_fields(load_format()) == {}
  style = PromptStyle(values="letters", lowercase=True)
  assert signature_fields(T5DST(style)) == {"style": "values=letters+lowercase=True"}
  # Separators of the signature and of its fields.
  escaped = signature_fields(D3ST(D3stStyle(join=" | ", delimiter="+%")))
  assert escaped["style"] == "join= %7C +delimiter=%2B%25"
  assert Settings().prompt_format == T5DST()


def test_no_tensorflow_and_no_jax_until_examples_are_made():
  code = (
    "import sys; from sgdx_t5x.prompts import load_format, rows, selection; load_format();"
    "import sgdx_t5x.scoring.score;"
    "print(sorted({'tensorflow', 'seqio', 'jax'} & set(sys.modules)))"
  )
  done = python_code(code)
  assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
