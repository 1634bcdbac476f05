"""Where the words of a counterfactual come from: generators, a model, substitution.

Also what a classifier says of them: which slots an utterance informs.
"""

import copy
import dataclasses
import itertools
import pathlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.schema import DONTCARE, Schema
from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.files.reading import decode_lines, read_input
from sgdx_t5x.papers.checkdst import pi_exchange, pi_templates
from sgdx_t5x.papers.checkdst.pi_words import Exchange, NewWords
from sgdx_t5x.papers.checkdst.split import Split
from sgdx_t5x.papers.checkdst.texts import edit_turn, places_outside_spans, spans_of
from sgdx_t5x.papers.coco.coco_turns import Goal, UserTurn
from sgdx_t5x.papers.simulator.surface import find_values

TEMPLATES, EXCHANGE = "templates", "exchange"  # a third generator is a file of candidates
_TRIES = 5  # draws of templates and of donors; the first that passes is used
ORIGINAL_GOAL = "+ori"  # suffix of the id of a turn with its original goal
# (turn, its outline with a goal, id of the goal, seed) -> words to try, or why there are none.
Generator = Callable[[UserTurn, Mapping[str, Any], str, str], Iterator[NewWords | str]]


def generator(name: str, split: Split, candidates: Mapping[str, Sequence[str]]) -> Generator:
  """Returns the function that generates words for a goal.

  Args:
    name: "templates", "exchange" or "file".
    split: what is perturbed; "exchange" reads the turns whose words may be reused.
    candidates: for "file": goal id -> utterances, best first; else empty.
  """
  templates = pi_templates.provider(split) if name == TEMPLATES else None
  exchanged = pi_exchange.provider(split) if name == EXCHANGE else None

  def generate(
    turn: UserTurn, outlined: Mapping[str, Any], goal_id: str, seed: str
  ) -> Iterator[NewWords | str]:
    if turn.carried and not templates:  # only the simulator words a reference by itself
      yield "carried"
      return
    for text in candidates.get(goal_id, ()):
      yield NewWords(text, tuple(_found_spans(text, outlined)))
    data = turn.exchange.data
    turns = [*data["turns"][: turn.number], outlined]
    exchange = Exchange({**data, "turns": turns}, turn.exchange.states_before)
    for number in range(_TRIES):
      rng = random.Random(f"{seed}/{goal_id}/{number}")
      if templates:
        yield templates(exchange, turn.number, rng, carried=turn.carried)
      elif exchanged:
        yield exchanged(exchange, turn.number, rng)

  return generate


def _found_spans(text: str, outlined: Mapping[str, Any]) -> Iterator[tuple[str, str, int, int]]:
  """Finds the values of an outlined turn, longest first."""
  spans = sorted(spans_of(outlined), key=lambda span: span[2] - span[3])
  places = find_values([outlined["utterance"][start:end] for *_, start, end in spans], text)
  for (service, slot, *_), place in zip(spans, places, strict=True):
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
  expected = '{"id": "1_00000.t04", "candidates": ["an utterance", ...]}'
  return _read_answers(path, "candidates", expected, lambda decodes: decodes or None)


def _read_answers(
  path: str | pathlib.Path, key: str, expected: str, answer: Callable[[list[Any]], Any]
) -> tuple[dict[str, list[str]], dict[str, str]]:
  """Reads JSON lines with an "id". Returns id -> list of strings, and id -> the model's input.

  Args:
    path: the file.
    key: of the list in a line.
    expected: a line, for errors.
    answer: makes the list of what `t5x.infer` predicted, best first, where a line has no such key.
  """
  texts_by_id: dict[str, list[str]] = {}
  inputs_by_id: dict[str, str] = {}
  content = read_input(path, f"a file with lines {expected}")
  for location, line in decode_lines(content, str(path), expected, "correct the file"):
    if isinstance(line, dict) and isinstance(features := line.get("inputs"), dict):  # of t5x.infer
      for name in ("id", "inputs"):
        line[name] = features.get(f"{name}_pretokenized", features.get(name))
    problem = ""
    texts: Any = None
    if not isinstance(line, dict) or not isinstance(line.get("id"), str):
      problem = "no id"
    elif line["id"] in texts_by_id:
      problem = f"duplicate id {line['id']}"
    else:
      prediction = line.get("prediction", [])
      decodes = prediction[::-1] if isinstance(prediction, list) else [prediction]
      texts = line.get(key, answer(decodes))
    if not problem and not (isinstance(texts, list) and all(isinstance(x, str) for x in texts)):
      problem = f"no {key}"
    if problem:
      each_once = f"{expected}, each id once"
      raise SgdxError(f"{location}: {problem}", expected=each_once, fix="correct the file")
    texts_by_id[line["id"]] = texts
    if isinstance(line.get("inputs"), str):
      inputs_by_id[line["id"]] = line["inputs"]
  return texts_by_id, inputs_by_id


def check_answers(
  path: str,
  answers: Iterable[str],
  inputs: Mapping[str, str],
  lines: Iterable[Mapping[str, str]],
  option: str,
) -> None:
  """Refuses answers to other lines than those of this run: another corpus, seed or option.

  Args:
    path: of the answers, for messages.
    answers: their ids.
    inputs: id -> what was answered, where the file has it.
    lines: {"id", "inputs"} of this run.
    option: that writes them.
  """
  inputs_of_run = {line["id"]: line["inputs"] for line in lines}
  for key in answers:
    in_run = key in inputs_of_run
    if not in_run or inputs.get(key, inputs_of_run[key]) != inputs_of_run[key]:
      raise SgdxError(
        f"{path}: id {key}" + (f" answers {inputs[key][:160]!r}" if key in inputs else ""),
        expected=repr(inputs_of_run[key][:160]) if in_run else f"ids of the lines of {option}",
        available=nearest(key, inputs_of_run),
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
  edits: list[tuple[int, int, str]] = []
  changed = {}
  for slot, old_value in goal.changed.items():
    new_text = goal.informed[slot].spoken
    if slot in free:
      places = [span[2:] for span in spans_of(turn.data) if span[:2] == (goal.service, slot)]
    else:
      places = list(places_outside_spans(turn.data, old_value.canonical))
      places = places if len(places) == 1 else []  # said twice: one may mean something else
      new_text = new_text.replace("_", " ")
    if places and DONTCARE not in old_value:
      changed[slot] = old_value
      for start, end in places:
        in_lower_case = slot not in free and text[start:end].islower()
        edits.append((start, end, new_text.lower() if in_lower_case else new_text))
  edits.sort()
  if not changed or any(b[0] < a[1] for a, b in itertools.pairwise(edits)):
    return None
  informed = {**turn.goal.informed, **{slot: goal.informed[slot] for slot in changed}}
  new_turn = copy.deepcopy(dict(turn.data))
  edit_turn(new_turn, edits)
  wording = NewWords(new_turn["utterance"], tuple(spans_of(new_turn)))
  return Goal(goal.frame, goal.service, informed, changed), wording


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
    SgdxError: no such file, a malformed line, or a duplicate id.
  """
  expected = '{"id": "1_00000.t04#0", "slots": ["city", ...]}'
  texts_by_id, inputs_by_id = _read_answers(path, "slots", expected, _slots_of_best)
  return {key: frozenset(slots) - {NONE} for key, slots in texts_by_id.items()}, inputs_by_id


def _slots_of_best(decodes: list[Any]) -> list[str] | None:
  best = next(iter(decodes), None)
  return [slot.strip() for slot in best.split(",")] if isinstance(best, str) else None


def quality_of(answers: Mapping[str, frozenset[str]], turns: Iterable[UserTurn]) -> Quality:
  """Returns the quality of the answers for real turns; 0 where nothing is found or informed."""
  correct = predicted = informed = number = 0
  for turn in turns:
    if turn.id in answers:
      correct += len(answers[turn.id] & turn.goal.informed.keys())
      predicted += len(answers[turn.id])
      informed += len(turn.goal.informed)
      number += 1
  return Quality(correct / max(predicted, 1), correct / max(informed, 1), number)


def accepts(answer: frozenset[str], goal: Goal) -> bool:
  """Whether an answer has no slots other than the goal's."""
  return answer <= goal.informed.keys()
