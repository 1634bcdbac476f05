"""The tree in CONTRIBUTING.md is that of the folders, tests mirror the library, links lead on."""

import ast
import os
import re

import pytest
from places import ANNEXES, ROOT

# Private folders, and those that are not tracked.
IGNORED = re.compile(r"[._].*|build|data|runs|dist|.*\.egg-info")
# Not searched further: their folders mirror the library (tests, experiments of annexes), or they
# hold only files.
WHOLE = {"tests", "gin/papers", "t5x_lite/tests", "t5x_lite/t5x", "docs"}
WHOLE |= {"benchmarks/own_schemas", "benchmarks/results"}


def is_deleted(path):
  """Whether a path of the repository is that of an annex whose folder is not there."""
  return f"{path}/".startswith(tuple(x for x in ANNEXES if not (ROOT / x).is_dir()))


def named_folders():
  text = (ROOT / "CONTRIBUTING.md").read_text()
  tree = re.search(r"compares this tree.*?```\n(.*?)```", text, re.DOTALL)[1]
  folders, path = set(), []
  for line in tree.splitlines():
    indent, name = re.match(r"( *)(\S+)/ ", line).groups()
    path[len(indent) // 2 :] = [name]
    folders.add("/".join(path))
  return {folder for folder in folders if not is_deleted(folder)}


def holds_files(folder):
  """False for a folder in which a pull left only compiled files."""
  return any(p.is_file() and "__pycache__" not in p.parts for p in folder.rglob("*"))


def folders_in(folder):
  found = (p for p in sorted((ROOT / folder).iterdir()) if p.is_dir() and holds_files(p))
  # `data` is a folder of the library, but at the root it is the user's.
  names = (p for p in found if (folder and p.name == "data") or not IGNORED.fullmatch(p.name))
  return [p.relative_to(ROOT).as_posix() for p in names]


def test_the_tree_names_every_folder_and_no_other():
  named, found, waiting = named_folders(), set(), [""]
  while waiting:
    for folder in folders_in(waiting.pop()):
      found.add(folder)
      if folder not in WHOLE:
        waiting.append(folder)
  assert {f for f in named if f.rpartition("/")[0] not in WHOLE} == found
  assert all((ROOT / folder).is_dir() for folder in named)


def test_folders_of_tests_are_those_of_the_library():
  rooms = {folder.partition("/")[2] for folder in folders_in("sgdx_t5x")}
  others = {"tasks", "metrics", "launch", "end_to_end", "fuzz", "support", "fixtures"}
  tests = {folder.partition("/")[2] for folder in folders_in("tests")}
  assert tests <= rooms | others


def strings_in(path):
  """The strings of a module, except those that stand alone, as docstrings do."""
  tree = ast.parse(path.read_text(encoding="utf-8"))
  alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
  for node in ast.walk(tree):
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
      yield node.value


def test_what_users_do_not_have_is_reached_through_one_module():
  """Else a test fails in a user's clone, where there is no ../shared, and only there."""
  reaching = [
    path.relative_to(ROOT).as_posix()
    for folder in ("tests", "t5x_lite/tests")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if any(re.search(r"(^|/)shared(/|$)", text) for text in strings_in(path))
  ]
  assert reaching == ["t5x_lite/tests/support/shared.py"]


# Of the project, not of what is installed or written beside it.
PAGES = [
  page
  for folder in ("docs", "tasks", "sgdx_t5x", "benchmarks", "t5x_lite")
  for page in sorted((ROOT / folder).rglob("*.md"))
] + sorted(ROOT.glob("*.md"))


def prose_of(page):
  """A page without its blocks of code."""
  return re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors_of(page):
  """The anchors that its headings have on GitHub."""
  headings = re.findall(r"^#+ (.*)$", prose_of(page), re.MULTILINE)
  return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_of_pages_lead_to_files_and_headings(page):
  broken = []
  for link in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    if re.match(r"[a-z]+:", link) or is_deleted(os.path.relpath(target, ROOT)):
      continue
    if not target.exists() or (anchor and anchor not in anchors_of(target)):
      broken.append(link)
  assert broken == []


def test_pre_commit_has_the_ruff_of_constraints_txt():
  """Another version formats in another way."""
  hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
  [pinned] = re.findall(r"^ruff==(.*)$", (ROOT / "constraints.txt").read_text("utf-8"), re.M)
  assert f"ruff-pre-commit\n    rev: v{pinned}\n" in hooks
