"""Data loading for this folder's tasks: prompts of `sgdx prompts --targets`, one file per run.

Runs without sgdx_t5x; `sgdx score` then reads the samples. Checked against lm-eval 0.4.13.
"""

import json
import pathlib
from typing import Any

_HOW = """pass the prompts of the task, with their targets:
  sgdx prompts --corpus sgd.zip --variant original v1 --targets{style} --limit 100 --out p.jsonl
  lm-eval run --tasks {task} --metadata '{{"prompts": "p.jsonl"}}' ..."""


def t5dst(prompts: str = "", **metadata: Any) -> dict[str, Any]:
  """Returns the data set of prompts, one per slot. Args: prompts, the file from --metadata."""
  return _dataset(prompts, "sgdx_t5dst", whole_frame=False)


def d3st(prompts: str = "", **metadata: Any) -> dict[str, Any]:
  """Returns the data set of prompts, one per frame. Args: prompts, the file from --metadata."""
  return _dataset(prompts, "sgdx_d3st", whole_frame=True)


def rows(prompts: str, task: str, whole_frame: bool) -> list[dict[str, str]]:
  """Returns the prompts of a file of `sgdx prompts --targets`.

  Args: task, its name, for errors; whole_frame, whether a prompt asks for a whole frame. Raises
  ValueError: no such file, or prompts of another task or without targets.
  """
  hint = _HOW.format(task=task, style=" --prompt-style format=d3st" if whole_frame else "")
  if not prompts or not pathlib.Path(prompts).is_file():
    raise ValueError(f"{task}: no file {prompts!r}; {hint}")
  with open(prompts, encoding="utf-8") as file:
    examples = [json.loads(line) for line in file]
  for number, row in enumerate(examples, start=1):
    fits = {"id", "prompt", "target"} <= row.keys() and row["id"].endswith("/*") == whole_frame
    is_other = (
      not row.get("target", "").startswith("[states]")  # as D3ST's do
      if whole_frame
      else row.get("prompt", "").startswith("[example]")  # as SDT-ind's do
    )
    if not fits or is_other:
      raise ValueError(f"{task}: {prompts}, line {number}: {', '.join(row)}; {hint}")
  return [{key: row[key] for key in ("id", "prompt", "target")} for row in examples]


def exact(doc: dict[str, str], results: list[str]) -> dict[str, float]:
  """Returns whether an answer equals the target exactly; `sgdx score` computes the real metrics."""
  return {"exact": float(results[0].strip() == doc["target"])}


def _dataset(prompts: str, task: str, whole_frame: bool) -> dict[str, Any]:
  from datasets import Dataset  # a dependency of lm-eval

  return {"test": Dataset.from_list(rows(prompts, task, whole_frame))}
