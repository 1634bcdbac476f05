"""Examples of single user turns: for CoCo's generator (acts -> utterance) and its classifier.

The records of frames lack the users' acts, so these examples are made directly from a corpus. The
inputs of both models are the same in training and inference.
"""

import os
import pathlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import NAMED_ACTS, USER, Dialogue
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import decode_lines, read_input

CORPUS, GOALS = "SGDX_CORPUS", "SGDX_GOALS"  # environment variables
Example = dict[str, str]  # id, inputs, targets
Examples = Callable[[Corpus, str], Iterator[Example]]


def turn_id(dialogue_id: str, turn: int) -> str:
  """Names a turn: "1_00000.t04"."""
  return f"{dialogue_id}.t{turn:02d}"


def generator_input(heard: str, frames: Sequence[Mapping[str, Any]], key: str) -> str:
  """Returns a generator's input: "[SYSTEM] ... [ACTS] inform city = Elmport ; ...".

  Args:
    heard: the system utterance before.
    frames: of the user's turn, with its acts.
    key: seed for shuffling the acts, as CoCo shuffles the slots of its prompts.
  """
  acts = []
  for frame in frames:
    for action in frame["actions"]:
      values = ", ".join(action.get("values") or ())
      slot = "" if action["act"] in NAMED_ACTS else action.get("slot", "")
      elements = [action["act"].lower(), slot, "=" if slot and values else "", values]
      acts.append(" ".join(part for part in elements if part))
  random.Random(key).shuffle(acts)
  return f"[SYSTEM] {heard} [ACTS] {' ; '.join(acts)}"


def classifier_input(heard: str, utterance: str, service: Service) -> str:
  """Returns a classifier's input: "[SYSTEM] ... [USER] ... [domain] S [slots] a, b, c"."""
  slots = ", ".join(_tracked(service))
  return f"[SYSTEM] {heard} [USER] {utterance} [domain] {service.name} [slots] {slots}"


def _tracked(service: Service) -> list[str]:
  return [service.slots[i].name for i in service.tracked_slots]


def user_turns(dialogue: Dialogue) -> Iterator[tuple[int, str, list[Mapping[str, Any]]]]:
  """Yields (turn, system utterance before it, frames as JSON data) of user turns with acts."""
  for number, turn in enumerate(dialogue.turns):
    if turn.speaker != USER or any(frame.actions is None for frame in turn.frames):
      continue
    heard = dialogue.turns[number - 1].utterance if number else ""
    yield number, heard, [{"service": f.service, "actions": f.actions} for f in turn.frames]


def generator_examples(corpus: Corpus, split: str) -> Iterator[Example]:
  """Yields an example for each user turn with acts: the user's acts -> the user's utterance."""
  for dialogue in corpus.dialogues(split):
    for number, heard, frames in user_turns(dialogue):
      key = turn_id(dialogue.dialogue_id, number)
      utterance = dialogue.turns[number].utterance
      yield {"id": key, "inputs": generator_input(heard, frames, key), "targets": utterance}


def classifier_examples(corpus: Corpus, split: str) -> Iterator[Example]:
  """Yields an example for each user turn with acts: the user's utterance -> slots it informs.

  In a turn about two services, it covers the first with informed slots, else the last.
  """
  schema = corpus.schema(split)
  for dialogue in corpus.dialogues(split):
    for number, heard, frames in user_turns(dialogue):
      if not frames:
        continue
      for frame in frames:
        service = schema[frame["service"]]
        informed = {action["slot"] for action in frame["actions"] if action["act"] == "INFORM"}
        if slots := [slot for slot in _tracked(service) if slot in informed]:
          break
      inputs = classifier_input(heard, dialogue.turns[number].utterance, service)
      targets = ", ".join(slots) or "none"
      yield {"id": turn_id(dialogue.dialogue_id, number), "inputs": inputs, "targets": targets}


def corpus_of_tasks(name: str) -> Corpus:
  """Opens the corpus of the single-turn tasks: "sample", or the one named by SGDX_CORPUS."""
  if name == "sample":
    return open_corpus(name)
  return open_corpus(_named(CORPUS, "the SGD archive, zip or folder", "sgd.zip"))


def goal_examples() -> Iterator[Example]:
  """Yields the lines of the file named by SGDX_GOALS, for inference; their targets are empty."""
  path = pathlib.Path(_named(GOALS, "the output of `sgdx coco perturb --goals-out`", "goals.jsonl"))
  expected = '{"id": "1_00000.t04", "inputs": "[SYSTEM] ..."}'
  content = read_input(path, "the output of `sgdx coco perturb --goals-out`")
  for place, line in decode_lines(content, str(path), expected, "write the goals again"):
    if not isinstance(line, dict) or not all(
      isinstance(line.get(k), str) for k in ("id", "inputs")
    ):
      raise SgdxError(f"{place}: no id and inputs", expected=expected, fix="write the goals again")
    yield {"id": line["id"], "inputs": line["inputs"], "targets": ""}


def _named(variable: str, expected: str, example: str) -> str:
  path = os.environ.get(variable, "")
  if not os.path.exists(path):
    raise SgdxError(
      f"{variable}={path}: no such file" if path else f"{variable} is not set",
      expected=expected,
      fix=f"export {variable}={example}",
    )
  return path
