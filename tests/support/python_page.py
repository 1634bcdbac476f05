"""Makes docs/python.md, the reference of the Python API, from docstrings.

python tests/support/python_page.py > docs/python.md
"""

import importlib
import inspect
import re
import sys

import sgdx_t5x

_HEAD = """\
# Python

What `import sgdx_t5x` offers, made from the docstrings by `tests/support/python_page.py`. Nothing
is loaded before it is used: scoring needs neither TensorFlow nor JAX. Strings and paths are taken
alike; mistakes in arguments and input raise `SgdxError`.

```python
import sgdx_t5x

corpus = sgdx_t5x.open_corpus("sample")  # or the official archive, a zip file
print(sgdx_t5x.show(corpus, "1_00000", "v3"))
rows = [
  {"id": row["id"], "prediction": row["target"]}
  for row in sgdx_t5x.make_prompts(corpus, "test", targets=True)
]
scores = sgdx_t5x.score(corpus, "test", {"original": rows})  # of the gold answers
print(scores.jga_original, scores.signature)
```
"""
# Classes that public functions return -> their module.
_RETURNED = {
  "Scores": "scoring.scores",
  "Comparison": "scoring.compare",
  "Split": "corpus.corpus",
  "DialogueTracker": "tracking.conversations",
}


def page() -> str:
  """Returns the text of the page."""
  parts = [_HEAD]
  for name in sgdx_t5x.PUBLIC:
    value = inspect.unwrap(getattr(sgdx_t5x, name))
    parts.append(_section(name, value))
  parts.append("## What these return\n")
  for name, module in _RETURNED.items():
    value = getattr(importlib.import_module(f"sgdx_t5x.{module}"), name)
    parts.append(_section(name, value, level="###"))
  return "\n".join(parts)


def _section(name: str, value: object, level: str = "##") -> str:
  """Returns the heading and the docstring of a function or class, then of a class's members."""
  lines = [f"{level} {name}{'' if inspect.isclass(value) else _signature(value)}\n", _doc(value)]
  if not inspect.isclass(value) or issubclass(value, Exception):
    return "\n".join(lines)
  for member, attribute in vars(value).items():
    what = getattr(attribute, "fget", getattr(attribute, "func", attribute))
    if member.startswith("_") or not inspect.isfunction(what) or not what.__doc__:
      continue
    call = _signature(what) if what is attribute else ""
    summary = inspect.getdoc(what).partition("\n\n")[0].replace("\n", " ")
    lines.append(f"- `{member}{call}`: {summary}")
  return "\n".join([*lines, ""])


def _signature(function: object) -> str:
  """Returns the parameters without their types, which the docstring tells."""
  parameters = []
  for parameter in inspect.signature(function).parameters.values():
    if parameter.name == "self":
      continue
    star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    if parameter.kind is parameter.KEYWORD_ONLY and "*" not in "".join(parameters):
      parameters.append("*")
    default = parameter.default
    shown = "..." if callable(default) else repr(default)
    value = "" if default is parameter.empty else f"={shown}"
    parameters.append(f"{star}{parameter.name}{value}")
  return f"({', '.join(parameters)})"


def _doc(value: object) -> str:
  """Returns a docstring as Markdown: its sections are lists."""
  lines = []
  for block in inspect.getdoc(value).split("\n\n"):
    title, _, rest = block.partition("\n")
    if title in ("Returns:", "Yields:"):
      lines.append(f"{title} {' '.join(rest.split())}")
    elif title in ("Args:", "Attributes:", "Raises:"):
      entries = re.split(r"\n  (?=\S)", f"\n{rest}")[1:]
      lines.append(f"{title}")
      lines += [f"- {_entry(' '.join(entry.split()))}" for entry in entries]
    elif block.startswith("    "):
      lines += ["```python", inspect.cleandoc(block), "```"]
    else:
      lines.append(block)
    lines.append("")
  return "\n".join(lines)


def _entry(text: str) -> str:
  """Returns "name: what it is" with the name as code."""
  name, colon, rest = text.partition(": ")
  return f"`{name}`: {rest}" if colon and re.fullmatch(r"[*\w]+", name) else text


if __name__ == "__main__":
  sys.stdout.write(page())
