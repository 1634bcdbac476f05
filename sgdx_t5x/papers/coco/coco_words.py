"""Where the words of a counterfactual come from: generators, a model, substitution.

Also what a classifier says of them: which slots an utterance informs.
"""

import dataclasses
import itertools
import pathlib
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.schema import DONTCARE, Schema
from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files.reading import decode_lines, read_input
from sgdx_t5x.papers.checkdst import pi_exchange, pi_templates
from sgdx_t5x.papers.checkdst.pi_words import Exchange, NewWords
from sgdx_t5x.papers.checkdst.split import Split
from sgdx_t5x.papers.checkdst.texts import edited, moved, spans_of
from sgdx_t5x.papers.coco.coco_turns import Goal, UserTurn
from sgdx_t5x.papers.simulator.surface import find_values

TEMPLATES, EXCHANGE, FILE = "templates", "exchange", "file"
_TRIES = 5  # draws of templates and of donors; the first that passes is used
ORIGINAL_GOAL = "+ori"  # suffix of the id of a turn with its original goal
# (turn, its outline with a goal, id of the goal, seed) -> words to try, or why there are none.
Generator = Callable[[UserTurn, Mapping[str, Any], str, str], Iterator[NewWords | str]]


def generator(name: str, split: Split, candidates: Mapping[str, Sequence[str]]) -> Generator:
  """Returns the function that generates words for a goal.

  Args:
    name: "templates", "exchange" or "file".
    split: what is perturbed; "exchange" reads the turns whose words may be reused.
    candidates: for "file": goal id -> utterances, best first.
  """
  if name == FILE:
    return _from_candidates(candidates)
  templates = pi_templates.provider(split) if name == TEMPLATES else None
  exchanged = pi_exchange.provider(split) if name == EXCHANGE else None

  def generate(
    turn: UserTurn, outlined: Mapping[str, Any], goal_id: str, seed: str
  ) -> Iterator[NewWords | str]:
    data = turn.exchange.data
    turns = [*data["turns"][: turn.number], outlined]
    exchange = Exchange({**data, "turns": turns}, turn.exchange.states_before)
    for number in range(_TRIES):
      rng = random.Random(f"{seed}/{goal_id}/{number}")
      if templates:
        yield templates(exchange, turn.number, rng, carried=turn.carried)
      elif exchanged:
        yield "carried" if turn.carried else exchanged(exchange, turn.number, rng)

  return generate


def _from_candidates(candidates: Mapping[str, Sequence[str]]) -> Generator:
  def generate(
    turn: UserTurn, outlined: Mapping[str, Any], goal_id: str, seed: str
  ) -> Iterator[NewWords | str]:
    if turn.carried:
      yield "carried"
    elif not candidates.get(goal_id):
      yield "no-candidate"
    for text in candidates.get(goal_id, ()):
      yield NewWords(text, tuple(_found_spans(text, outlined)))

  return generate


def _found_spans(text: str, outlined: Mapping[str, Any]) -> Iterator[tuple[str, str, int, int]]:
  """Finds the values of an outlined turn, longest first."""
  wanted = sorted(spans_of(outlined), key=lambda span: span[2] - span[3])
  places = find_values([outlined["utterance"][start:end] for *_, start, end in wanted], text)
  for (service, slot, *_), place in zip(wanted, places, strict=True):
    if place:
      yield service, slot, *place


def read_candidates(path: str | pathlib.Path) -> tuple[dict[str, list[str]], dict[str, str]]:
  """Reads {"id", "candidates": [...]} lines; "inputs" of the goals may be kept in them.

  Lines of `t5x.infer` on the task sgd_user_turn_goals are read as well: an answer, or all decodes
  (`return_all_decodes`), which T5X lists best last.

  Returns:
    Goal id -> utterances, best first; and id -> the model's input, where the file has it.

  Raises:
    SgdxError: no such file, a malformed line, or a duplicate id.
  """
  path = pathlib.Path(path)
  texts: dict[str, list[str]] = {}
  inputs: dict[str, str] = {}
  expected = '{"id": "1_00000.t04", "candidates": ["an utterance", ...]}'
  for where, line in read_lines(path, expected):
    found = line.get("candidates", predictions(line) or None)
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
      raise SgdxError(f"{where}: no candidates", expected=expected, fix="correct the file")
    if line["id"] in texts:
      raise SgdxError(
        f"{where}: duplicate id {line['id']}", expected="each id once", fix="correct the file"
      )
    texts[line["id"]] = found
    if isinstance(line.get("inputs"), str):
      inputs[line["id"]] = line["inputs"]
  return texts, inputs


def predictions(line: Mapping[str, Any]) -> list[Any]:
  """Returns the predictions of `t5x.infer` in a line, best first; empty if the line has none."""
  found = line.get("prediction", [])
  return found[::-1] if isinstance(found, list) else [found]


def read_lines(path: pathlib.Path, expected: str) -> Iterator[tuple[str, dict[str, Any]]]:
  """Yields location and content of JSON lines with an "id". Raises SgdxError for other lines."""
  text = read_input(path, f"a file with lines {expected}")
  for where, line in decode_lines(text, str(path), expected, "correct the file"):
    if isinstance(line, dict) and isinstance(inputs := line.get("inputs"), dict):  # of t5x.infer
      given = {key.removesuffix("_pretokenized"): value for key, value in inputs.items()}
      line = {**line, "id": given.get("id"), "inputs": given.get("inputs")}
    if not isinstance(line, dict) or not isinstance(line.get("id"), str):
      raise SgdxError(f"{where}: no id", expected=expected, fix="correct the file")
    yield where, line


def check_answers(
  path: str,
  answers: Iterable[str],
  inputs: Mapping[str, str],
  lines: Mapping[str, str],
  option: str,
) -> None:
  """Refuses answers to other lines than those of this run: another corpus, seed or option.

  Args:
    path: of the answers, for messages.
    answers: their ids.
    inputs: id -> what was answered, where the file has it.
    lines: id -> input, of this run.
    option: that writes them.
  """
  for key in answers:
    if key not in lines or inputs.get(key, lines[key]) != lines[key]:
      raise SgdxError(
        f"{path}: id {key}" + (f" answers {inputs[key][:160]!r}" if key in inputs else ""),
        expected=repr(lines[key][:160]) if key in lines else f"ids of the lines of {option}",
        available=nearest(key, lines),
        fix=f"have a model answer the lines of {option} for this corpus, split, seed and options",
      )


def substituted(turn: UserTurn, goal: Goal, schema: Schema) -> tuple[Goal, NewWords] | None:
  """Puts the changed values of a goal into the user's own words: CoCo's value substitution.

  Free values are replaced by their spans, categorical ones if they are literally said once; other
  slots keep their value, and none are dropped or added.

  Returns:
    The goal that is then informed, and the words; None if no value can be replaced.
  """
  text, free = turn.data["utterance"], schema[goal.service].noncategorical_slots
  spans = sorted(spans_of(turn.data), key=lambda span: span[2])
  edits: list[tuple[int, int, str]] = []
  changed = {}
  for slot, old in goal.changed.items():
    new = goal.told[slot].said
    own = [(a, b) for service, name, a, b in spans if (service, name) == (goal.service, slot)]
    if slot not in free:
      said = old.canonical.replace("_", " ")
      places = re.finditer(rf"(?<!\w){re.escape(said)}(?!\w)", text, re.IGNORECASE)
      own = [
        m.span() for m in places if not any(a < m.end() and m.start() < b for *_, a, b in spans)
      ]
      own = own if len(own) == 1 else []
      new = new.replace("_", " ")
    if own and DONTCARE not in old:
      edits += [(a, b, new.lower() if slot not in free and text[a:b].islower() else new)
                for a, b in own]  # fmt: skip
      changed[slot] = old
  edits.sort()
  if not changed or any(b[0] < a[1] for a, b in itertools.pairwise(edits)):
    return None
  told = {s: goal.told[s] if s in changed else value for s, value in turn.goal.told.items()}
  places = dict(zip(((a, b) for a, b, _ in edits), moved(edits), strict=True))
  placed = []
  for service, slot, a, b in spans:
    shift = sum(len(t) - (y - x) for x, y, t in edits if y <= a)
    placed.append((service, slot, *places.get((a, b), (a + shift, b + shift))))
  return Goal(goal.frame, goal.service, told, changed), NewWords(edited(text, edits), placed)


NONE = "none"


@dataclasses.dataclass(frozen=True)
class Quality:
  """How good a classifier is on real turns.

  Attributes:
    precision: share of the slots found that were informed.
    recall: share of the slots informed that were found.
    turns: number of real turns that it answered.
  """

  precision: float
  recall: float
  turns: int


def read_answers(path: str | pathlib.Path) -> tuple[dict[str, frozenset[str]], dict[str, str]]:
  """Reads {"id", "slots": [...]} lines: of real turns ("1_00000.t04") and candidates ("...#0").

  Lines of `t5x.infer` on the task sgd_user_turn_goals are read as well: "city, date" or "none";
  the best, if there are several decodes.

  Returns:
    id -> slots; and id -> the classifier's input, where the file has it.

  Raises:
    SgdxError: no such file, or a malformed line.
  """
  expected = '{"id": "1_00000.t04#0", "slots": ["city", ...]}'
  found, inputs = {}, {}
  for where, line in read_lines(pathlib.Path(path), expected):
    slots = line.get("slots")
    if slots is None and isinstance(answer := next(iter(predictions(line)), None), str):
      slots = [slot.strip() for slot in answer.split(",")]
    if not isinstance(slots, list) or not all(isinstance(slot, str) for slot in slots):
      raise SgdxError(f"{where}: no slots", expected=expected, fix="correct the file")
    found[line["id"]] = frozenset(slots) - {NONE}
    if isinstance(line.get("inputs"), str):
      inputs[line["id"]] = line["inputs"]
  return found, inputs


def quality_of(answers: Mapping[str, frozenset[str]], turns: Iterable[UserTurn]) -> Quality:
  """Returns the quality of the answers for real turns; 0 where nothing is found or informed."""
  right = found = told = number = 0
  for turn in turns:
    if turn.id in answers:
      right += len(answers[turn.id] & turn.goal.told.keys())
      found += len(answers[turn.id])
      told += len(turn.goal.told)
      number += 1
  return Quality(right / max(found, 1), right / max(told, 1), number)


def accepts(answer: frozenset[str], goal: Goal) -> bool:
  """Whether an answer has no slots other than the goal's."""
  return answer <= goal.told.keys()
