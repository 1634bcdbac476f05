"""docs/python.md is what the docstrings say, and its example runs."""

import re

import python_page
from places import ROOT


def test_the_page_is_made_from_the_docstrings():
  made = python_page.page()
  assert (ROOT / "docs/python.md").read_text() == made, (
    "python tests/support/python_page.py > docs/python.md"
  )


def test_its_example(capsys):
  (code,) = re.findall(r"```python\nimport(.*?)```", python_page.page(), re.DOTALL)
  exec("import" + code, {})
  *_, last = capsys.readouterr().out.splitlines()
  assert last.startswith("1.0 sgdx|corpus:sample:")
