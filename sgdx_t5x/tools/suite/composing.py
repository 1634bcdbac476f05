"""Rewordings of tools composed of paraphrases, each farther from the original: K variants.

As SGD-X and `sgdx compose` do it: the paraphrases of a text are sorted by distance to it, and
variant k takes the k-th. Names are given as words and written in the style of the tools' names.
"""

import dataclasses
import json
import pathlib
import re
from collections.abc import Collection, Mapping, Sequence

from rapidfuzz.distance import Levenshtein

from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files.reading import converted, decode_lines, read_input
from sgdx_t5x.tools.own_tools import OwnTool
from sgdx_t5x.tools.suite.leaks import INSIDE, words
from sgdx_t5x.tools.suite.rewording import Rewording, apply, elements, is_name
from sgdx_t5x.tools.suite.toolset import ToolSet

_EXPECTED = 'lines of {"element": POINTER, "paraphrases": [TEXT, ...]}'
_STYLE = re.compile(r"[_-]|(?<=[a-z\d])[A-Z]")  # what joins the words of a name

Paraphrases = Mapping[str, Sequence[str]]  # pointer -> other texts


@dataclasses.dataclass
class _Row:
  """A line of a file of paraphrases. Attributes: original, for its author."""

  element: str
  paraphrases: list[str]
  original: str = ""


def read_paraphrases(path: str | pathlib.Path, tools: ToolSet) -> Paraphrases:
  """Returns the paraphrases of a file. Raises SgdxError: not of the form, or of no element."""
  pointers = set[str]().union(*map(elements, tools.tools))
  paraphrases = {}
  for place, line in decode_lines(read_input(path, _EXPECTED), str(path), _EXPECTED):
    row = converted(line, _Row, place, _EXPECTED, "correct the line")
    if row.element not in pointers or row.element in paraphrases:
      raise SgdxError(
        f"{place}: element {row.element!r}",
        expected="each element of the tools at most once",
        available=nearest(row.element, pointers),
        fix="correct the line",
      )
    paraphrases[row.element] = row.paraphrases
  return paraphrases


def compose(
  tools: ToolSet, paraphrases: Paraphrases, number: int
) -> tuple[list[Rewording], list[str]]:
  """Returns rewordings v1, v2, ..., and what was left out of them, a line each.

  Where there are too few paraphrases, the farthest is taken again; where there is none, the
  original stays, as where a name collides with another, or APIs refuse it.
  """
  names: list[str] = []
  for tool in tools.tools:
    names += [text for pointer, text in elements(tool).items() if is_name(pointer)]
  # A name of one word has no style: it gets that of the first name which has one.
  styled = next(filter(_STYLE.search, names), "")
  rewordings, left_out = [], []
  for k in range(number):
    replaced: dict[str, str] = {}
    tool_names = set(tools.by_name)
    for tool in tools.tools:
      tool_texts = {}
      for pointer, original in elements(tool).items():
        if ranked := _ranked(pointer, original, paraphrases.get(pointer, ()), styled):
          tool_texts[pointer] = ranked[min(k, len(ranked) - 1)]
      fitting, faults = _fitting(tool, Rewording(f"v{k + 1}", tool_texts), tool_names)
      tool_names.add(fitting.get(f"/{tool.name}", tool.name))
      replaced |= fitting
      left_out += faults
    rewordings.append(Rewording(f"v{k + 1}", replaced))
  return rewordings, left_out


def _fitting(
  tool: OwnTool, rewording: Rewording, tool_names: Collection[str]
) -> tuple[dict[str, str], list[str]]:
  """Returns the words of a rewording that a tool can have, and what is wrong with the others.

  Args: tool_names, which it must not take.
  """
  fitting: dict[str, str] = {}
  faults = []
  for pointer, text in rewording.replaced.items():
    if pointer == f"/{tool.name}" and text in tool_names:
      faults.append(f"rewording {rewording.name}: two tools are called {text!r}")
      continue
    try:
      apply(ToolSet((tool,)), Rewording(rewording.name, {**fitting, pointer: text}))
      fitting[pointer] = text
    except SgdxError as e:
      faults.append(str(e).splitlines()[0])
  return fitting, faults


def _ranked(pointer: str, original: str, texts: Sequence[str], styled: str) -> list[str]:
  """Returns different paraphrases of an element, the nearest first."""
  distances: dict[str, float] = {}
  for text in texts:
    text = " ".join(text.split())
    if is_name(pointer):
      text = _in_style(text, original if _STYLE.search(original) else styled or original)
      distances[text] = Levenshtein.distance(original, text)
    else:
      shared, either = words(original) & words(text), words(original) | words(text)
      distances[text] = 1 - len(shared) / len(either) if either else 0
  ranked = sorted(distances, key=lambda text: distances[text])
  return [text for text in ranked if text not in ("", original)]


def _in_style(text: str, name: str) -> str:
  """Returns words as a name in the style of another: snake_case, kebab-case, camelCase."""
  name_words = re.findall(r"[a-z\d]+", INSIDE.sub(" ", text).lower())
  joint = _STYLE.search(name)
  if joint is None or joint[0] in "_-":
    return (joint[0] if joint else "_").join(name_words)
  camel = "".join(part.capitalize() for part in name_words)
  return camel if name[0].isupper() else camel[:1].lower() + camel[1:]


# --- by a model ----------------------------------------------------------------------------


def prompt(tool: OwnTool, number: int) -> str:
  """Returns what a model is asked to write the paraphrases of a tool."""
  return (
    "A JSON object of the texts of one function follows, which programs offer to assistants. For "
    f"every key, write {number} other texts that another developer might have written for the very "
    "same function: nothing added, nothing left out that matters. Order them from one with a word "
    "changed to one in quite other words. Names are one to five plain words. Answer with a JSON "
    f"object alone: the same keys, each with a list of {number} texts.\n\n"
    + json.dumps(elements(tool), ensure_ascii=False, indent=1)
  )


def paraphrases_in(text: str, tool: OwnTool) -> Paraphrases:
  """Returns the paraphrases in a model's answer, fenced or not; {} if there are none."""
  try:
    answer = json.loads(text[text.find("{") : text.rfind("}") + 1])
  except (ValueError, RecursionError):
    return {}
  paraphrases = {}
  for pointer in elements(tool):
    if isinstance(answer.get(pointer), list):
      paraphrases[pointer] = [text for text in answer[pointer] if isinstance(text, str)]
  return paraphrases
