"""CoCo: would the tracker still be right if the user had answered something else?

Following Li et al. 2021, the turn-level belief of a turn is edited (a slot dropped, values changed,
slots added), an utterance is found for it, and only this turn is scored. docs/papers/coco.md says
what differs from their code, and why.
"""

import argparse
import collections
import dataclasses
import itertools
import pathlib
import random
from collections.abc import Iterator, Mapping
from typing import Any

from sgdx_t5x.corpus.dialogue import USER, Dialogue
from sgdx_t5x.corpus.provenance import ACCEPTED, INFORMED, trace
from sgdx_t5x.papers.checkdst.answerable import SAID, said_state_values
from sgdx_t5x.papers.checkdst.entities import free_slots
from sgdx_t5x.papers.checkdst.pi_words import Exchange, NewWords
from sgdx_t5x.papers.checkdst.split import Split, annotation_of
from sgdx_t5x.papers.checkdst.values import known_forms
from sgdx_t5x.papers.coco.coco_combinations import Combinations, count_combinations
from sgdx_t5x.papers.coco.coco_filters import KnownValues, known_values, rejected
from sgdx_t5x.papers.coco.coco_goals import Rules
from sgdx_t5x.papers.coco.coco_turns import (
  Goal,
  UserTurn,
  cut_dialogue,
  draw_goal,
  original_goal,
  outlined_turn,
  worded_turn,
)
from sgdx_t5x.papers.coco.coco_values import ValueSource, value_source
from sgdx_t5x.papers.coco.coco_words import (
  ORIGINAL_GOAL,
  Generator,
  Quality,
  accepts,
  check_answers,
  generator,
  quality_of,
  read_answers,
  read_candidates,
  substituted,
)
from sgdx_t5x.papers.coco.turn_examples import classifier_input, generator_input

SUBSTITUTION = "vs"  # the source of what `plus` adds


@dataclasses.dataclass(frozen=True)
class Coco:
  """How counterfactuals of a split's turns are made.

  Attributes:
    options: all that determines the result besides the seed, as in the manifest: "slots", a key of
      `coco_combinations.SHARES`; "generator"; "plus", whether values are substituted if no
      utterance is found (CoCo+); ...
    seed: the seed.
    rules: how slots of goals are chosen.
    values: where their values come from.
    combinations: which slots users inform together.
    generate: generates utterances.
    values_by_service: values that utterances must not say besides the goal's.
    answers: of a classifier, candidate id -> slots; None without a classifier.
  """

  options: Mapping[str, Any]
  seed: int
  rules: Rules
  values: ValueSource
  combinations: Combinations
  generate: Generator
  values_by_service: Mapping[str, KnownValues]
  answers: Mapping[str, frozenset[str]] | None = None


@dataclasses.dataclass(frozen=True)
class Counterfactual:
  """A counterfactual: a dialogue cut after a user turn, whose goal differs.

  Attributes:
    dialogue: decoded.
    control: the same with the turn's original goal, by the same generator; None if that failed.
    change: of changes.jsonl.
    control_change: of the control's changes.jsonl.
  """

  dialogue: Mapping[str, Any]
  control: Mapping[str, Any] | None
  change: dict[str, Any]
  control_change: dict[str, Any]


def eligible_turns(data: Mapping[str, Any]) -> Iterator[UserTurn]:
  """Yields the user turns of a decoded dialogue that inform something (INFORM)."""
  exchange, forms = Exchange.of(data), known_forms(data)
  goals: dict[int, Goal] = {}
  for number, turn in enumerate(data["turns"]):
    if turn["speaker"] == USER and (goal := original_goal(turn)):
      goals[number] = goal
  carried: dict[int, dict[str, list[str]]] = {}
  for number, frame, origins in trace(Dialogue.from_json(data)) if goals else ():
    for slot, origin in origins.items():
      if origin.turn == number and origin.source not in (INFORMED, ACCEPTED):
        carried.setdefault(number, {}).setdefault(frame.service, []).append(slot)
  for number, goal in goals.items():
    yield UserTurn(exchange, number, goal, forms, carried.get(number, {}))


def counterfactuals(
  coco: Coco, data: Mapping[str, Any], counts: collections.Counter
) -> Iterator[Counterfactual]:
  """Yields the counterfactuals of a dialogue, at most one per turn.

  Args:
    coco: how they are made.
    data: decoded.
    counts: updated: eligible turns, and their outcomes: ("kept", reason), ("source", name), ...
  """
  for turn in eligible_turns(data):
    counts["eligible"] += 1
    counterfactual = _counterfactual(coco, turn)
    if isinstance(counterfactual, str):
      counts["kept", counterfactual] += 1
      continue
    counts["source", counterfactual.change["source"]] += 1
    for edit in ("dropped", "changed", "added"):
      counts[f"slots_{edit}"] += len(counterfactual.change[edit])
    counts["controls"] += counterfactual.control is not None
    yield counterfactual


def goal_of(coco: Coco, turn: UserTurn) -> Goal | str:
  """Draws the goal of a turn, or returns why it has none."""
  if not turn.data["utterance"].strip():
    return "empty-turn"
  rng = random.Random(f"{coco.seed}/{turn.id}")
  goal = draw_goal(turn, coco.values, coco.combinations, coco.options["slots"], coco.rules, rng)
  return "unchanged" if goal.is_original else goal


def filtered_candidates(
  coco: Coco, turn: UserTurn, goal: Goal, goal_id: str
) -> Iterator[tuple[str, NewWords | str, str]]:
  """Yields (id, words, reason for rejection or "") of a generator's candidates for a goal."""
  outlined = outlined_turn(turn, goal, coco.values.schema)
  original_utterance = "" if goal.is_original else turn.data["utterance"]
  values, seed = coco.values_by_service[goal.service], f"{coco.seed}/words"
  for number, wording in enumerate(coco.generate(turn, outlined, goal_id, seed)):
    key = f"{goal_id}#{number}"
    if isinstance(wording, str):
      yield key, wording, wording
      return
    yield key, wording, rejected(wording, goal, outlined, values, original_utterance)


def _worded(coco: Coco, turn: UserTurn, goal: Goal, goal_id: str) -> NewWords | str:
  """Returns the first words that pass all filters, or why the last ones failed."""
  reason = "no-candidate"
  for key, wording, failed in filtered_candidates(coco, turn, goal, goal_id):
    reason = failed
    if not failed and coco.answers is not None:
      answer = coco.answers.get(key)
      if answer is None:
        reason = "unclassified"
      elif not accepts(answer, goal):
        reason = "classifier"
    if not reason and isinstance(wording, NewWords):
      return wording
  return reason


def _reworded(coco: Coco, turn: UserTurn, goal: Goal, wording: NewWords) -> dict[str, Any] | None:
  """Returns the dialogue up to a turn, in other words; None if its state has an unsaid value."""
  schema = coco.values.schema
  dialogue = cut_dialogue(turn, worded_turn(outlined_turn(turn, goal, schema), wording))
  for place, said in said_state_values(dialogue, free_slots(schema), turn.number).items():
    if said != SAID and place.slot in schema[place.service].noncategorical_slots:
      return None
  return dialogue


def _substitution(coco: Coco, turn: UserTurn, goal: Goal) -> tuple[Goal, NewWords] | str:
  """Returns the user's own words with other values, or why they are unsuitable."""
  replaced = substituted(turn, goal, coco.values.schema)
  if replaced is None:
    return "unsaid"
  outlined = outlined_turn(turn, replaced[0], coco.values.schema)
  values, utterance = coco.values_by_service[goal.service], turn.data["utterance"]
  return rejected(replaced[1], replaced[0], outlined, values, utterance) or replaced


def _counterfactual(coco: Coco, turn: UserTurn) -> Counterfactual | str:
  goal = goal_of(coco, turn)
  if isinstance(goal, str):
    return goal
  wording, source = _worded(coco, turn, goal, turn.id), coco.options["generator"]
  control: Mapping[str, Any] | None = None
  if isinstance(wording, NewWords):
    as_before = _worded(coco, turn, turn.goal, turn.id + ORIGINAL_GOAL)
    if isinstance(as_before, NewWords):
      control = _reworded(coco, turn, turn.goal, as_before)
  else:
    if not coco.options["plus"]:
      return wording
    replaced = _substitution(coco, turn, goal)
    if isinstance(replaced, str):
      return f"{wording} ({SUBSTITUTION} {replaced})"
    goal, wording = replaced
    source, control = SUBSTITUTION, cut_dialogue(turn, turn.data)  # in the user's own words
  dialogue = _reworded(coco, turn, goal, wording)
  if dialogue is None:
    return "unsaid"
  name = {"dialogue_id": turn.id, "of": turn.exchange.data["dialogue_id"], "turn": turn.number}
  original_utterance = {"utterance": turn.data["utterance"]}
  return Counterfactual(
    dialogue,
    control,
    {**name, "source": source, **goal.to_json(), **wording.note, **original_utterance},
    {**name, "source": source, **turn.goal.to_json(), **original_utterance},
  )


def open_coco(split: Split, args: argparse.Namespace) -> tuple[Coco, Quality | None]:
  """Returns how counterfactuals of a split are made, and the classifier's quality, if there is one.

  Args:
    split: what is perturbed.
    args: of `sgdx coco perturb`.

  Raises:
    SgdxError: invalid files, or answers to other goals than those of this run.
  """
  texts, inputs = read_candidates(args.candidates) if args.candidates else ({}, {})
  answers, heard = read_answers(args.classifier) if args.classifier else (None, {})
  combinations, rules = count_combinations(split), Rules()
  source = value_source(args.values, split, combinations.earlier)
  options: dict[str, Any] = {"slots": args.slots, "values": source.label}
  options |= {"generator": args.generator, **dataclasses.asdict(rules), "plus": args.plus}
  for name in ("candidates", "classifier"):
    if path := getattr(args, name):
      options[name] = pathlib.Path(path).name
  coco = Coco(
    options,
    args.seed,
    rules,
    source,
    combinations,
    generator(args.generator, split, texts),
    known_values(split),
    answers,
  )
  if args.candidates:
    check_answers(args.candidates, texts, inputs, goal_lines(coco, split), "--goals-out")
  if answers is None:
    return coco, None
  check_answers(args.classifier, answers, heard, classifier_lines(coco, split), "--classify-out")
  turns = itertools.chain.from_iterable(map(eligible_turns, split.dialogues()))
  return coco, quality_of(answers, turns)


def goal_lines(coco: Coco, split: Split) -> Iterator[dict[str, Any]]:
  """Yields {"id", "inputs", "goal"} of all goals, each followed by its turn's original goal."""
  for turn, goal_id, goal in _goals(coco, split):
    if turn.carried:  # the acts do not say what its words refer to
      continue
    outlined = outlined_turn(turn, goal, split.schema)
    inputs = generator_input(turn.heard, outlined["frames"], goal_id)
    informed = {slot: value.spoken for slot, value in goal.informed.items()}
    yield {"id": goal_id, "inputs": inputs, "goal": informed}


def _goals(coco: Coco, split: Split) -> Iterator[tuple[UserTurn, str, Goal]]:
  """Yields the turns that have a goal, each twice: with that goal, then with its original one."""
  for data in split.dialogues():
    goals: list[tuple[UserTurn, str, Goal]] = []
    with annotation_of(data):
      for turn in eligible_turns(data):
        goal = goal_of(coco, turn)
        if not isinstance(goal, str):
          goals += [(turn, turn.id, goal), (turn, turn.id + ORIGINAL_GOAL, turn.goal)]
    # Outside the annotation's context, which would blame the dialogue for errors of the consumer.
    yield from goals


def classifier_lines(coco: Coco, split: Split) -> Iterator[dict[str, Any]]:
  """Yields {"id", "inputs"} for a classifier: real turns, then candidates.

  Real turns are all that inform something; candidates, those that pass the other filters.
  """
  for data in split.dialogues():
    with annotation_of(data):
      turns = list(eligible_turns(data))
    for turn in turns:
      yield {"id": turn.id, "inputs": _slots_asked(turn, turn.data["utterance"], split)}
  for turn, goal_id, goal in _goals(coco, split):
    for key, wording, failed in filtered_candidates(coco, turn, goal, goal_id):
      if not failed and not isinstance(wording, str):
        yield {"id": key, "inputs": _slots_asked(turn, wording.text, split)}


def _slots_asked(turn: UserTurn, utterance: str, split: Split) -> str:
  return classifier_input(turn.heard, utterance, split.schema[turn.goal.service])
