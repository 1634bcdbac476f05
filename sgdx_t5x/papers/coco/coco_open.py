"""Checks the options of `sgdx coco perturb`, and makes a `Coco` of them."""

import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from sgdx_t5x.errors import SgdxError, UsageError, nearest
from sgdx_t5x.papers.checkdst.split import Split, annotation_of
from sgdx_t5x.papers.coco import coco_classifier
from sgdx_t5x.papers.coco.coco import Coco, eligible_turns, goal_of, has_acts, tried
from sgdx_t5x.papers.coco.coco_combinations import (
  FREQ,
  SHARES,
  check_allows,
  count_combinations,
  read_combinations,
)
from sgdx_t5x.papers.coco.coco_filters import known_values
from sgdx_t5x.papers.coco.coco_goals import DICTIONARY, LOOSE, RANDOM, STRICT, Rules
from sgdx_t5x.papers.coco.coco_prompts import asked, asked_slots
from sgdx_t5x.papers.coco.coco_turns import UserTurn, outlined_turn
from sgdx_t5x.papers.coco.coco_values import OUT, value_source
from sgdx_t5x.papers.coco.coco_words import (
  FILE,
  GENERATORS,
  ORIGINAL_GOAL,
  TEMPLATES,
  check_ids,
  check_inputs,
  generator,
  read_candidates,
)

OPTIONS = (
  "slots", "values", "generator", "candidates", "plus", "p_drop", "p_change", "p_add", "max_add",
  "max_slots", "flow", "order", "combinations", "classifier", "strict", "force",
)  # fmt: skip
_CHOICES = {
  "slots": tuple(SHARES),
  "generator": GENERATORS,
  "flow": (STRICT, LOOSE),
  "order": (RANDOM, DICTIONARY),
}
_RULES = ("p_drop", "p_change", "p_add", "max_add", "max_slots", "flow", "order")


def open_coco(
  split: Split,
  seed: int,
  *,
  slots: str = FREQ,
  values: str = OUT,
  generator_name: str = TEMPLATES,
  candidates: str | None = None,
  plus: bool = False,
  combinations: str | None = None,
  classifier: str | None = None,
  strict: bool = False,
  force: bool = False,
  **rules: Any,
) -> tuple[Coco, coco_classifier.Quality | None]:
  """Returns how counterfactuals of a split are made, and the classifier's quality, if there is one.

  Args:
    split: what is perturbed.
    seed: determines the result, together with the options.
    slots: key of `SHARES`: which slots may be combined.
    values: see `coco_values.value_source`.
    generator_name: one of `GENERATORS`.
    candidates: file of answers, for generator "file".
    plus: whether values are substituted if no words are found.
    combinations: file to read; None to count them.
    classifier: file of its answers, or None.
    strict, force: see `coco_classifier`.
    rules: attributes of `Rules`.

  Raises:
    SgdxError: invalid options or files, or a corpus without user acts.
  """
  _check(slots=slots, generator=generator_name, **rules)
  _check_together(generator_name, candidates, classifier, strict=strict, force=force)
  answered = read_candidates(candidates) if candidates else None
  answers, heard = coco_classifier.read_answers(classifier) if classifier else (None, {})
  _check_acts(split)
  if combinations is None:
    found = count_combinations(split)
  else:
    found = read_combinations(combinations, split.schema)
  chosen = Rules(**rules)
  if chosen.p_add:
    check_allows(found, slots, combinations or split.corpus.origin)
  source = value_source(values, split, found.earlier)
  options: dict[str, Any] = {"slots": slots, "values": source.label, "generator": generator_name}
  options |= {name: getattr(chosen, name) for name in _RULES} | {"plus": plus}
  for name, path in (
    ("candidates", candidates), ("combinations", combinations), ("classifier", classifier)
  ):  # fmt: skip
    options |= {name: pathlib.Path(path).name} if path else {}
  if answers is not None:
    options["strict"] = strict
  coco = Coco(
    options, seed, slots, chosen, source, found,
    generator(generator_name, split, answered.texts if answered else {}), generator_name,
    known_values(split), plus, answers, strict,
  )  # fmt: skip
  if candidates and answered:
    goals = {line["id"]: line["inputs"] for line in goal_lines(coco, split)}
    check_ids(candidates, answered.texts, goals)
    check_inputs(candidates, answered.inputs, goals)
  if classifier is None or answers is None:
    return coco, None
  quality = _checked_quality(classifier, answers, split, force)
  if heard:  # a candidate from another model may have the same id
    told = {line["id"]: line["inputs"] for line in classifier_lines(coco, split)}
    check_inputs(classifier, {key: text for key, text in heard.items() if key in told}, told)
  return coco, quality


def _checked_quality(
  path: str, answers: Mapping[str, frozenset[str]], split: Split, force: bool
) -> coco_classifier.Quality:
  quality, ids = coco_classifier.Quality(), {}
  for data in split.dialogues():
    with annotation_of(data):
      for turn in eligible_turns(data):
        ids[turn.id] = turn.id
        quality += coco_classifier.quality_of(answers, turn)
  turns = {key.partition("#")[0].removesuffix(ORIGINAL_GOAL): key for key in answers}
  check_ids(path, turns, ids, "--classify-out")
  coco_classifier.check_quality(path, quality, force)
  return quality


def _check(**options: Any) -> None:
  for name, value in options.items():
    if name in _CHOICES and value not in _CHOICES[name]:
      raise UsageError(
        f"--{name} {value}",
        expected=f"one of {', '.join(_CHOICES[name])}",
        available=nearest(str(value), _CHOICES[name]),
        fix="choose one of them",
      )
    if name.startswith("p_") and not 0 <= value <= 1:
      raise UsageError(
        f"--{name.replace('_', '-')} {value}",
        expected="a probability, 0 to 1",
        fix="use 0 for never, 1 for always",
      )
    if name.startswith("max_") and value < 0:
      raise UsageError(
        f"--{name.replace('_', '-')} {value}", expected="0 or more slots", fix="use 2, for example"
      )


def _check_together(
  generator_name: str, candidates: str | None, classifier: str | None, **of_classifier: bool
) -> None:
  if (generator_name == FILE) != (candidates is not None):
    raise UsageError(
      f"--generator {generator_name} {'with' if candidates else 'without'} --candidates",
      expected="both --generator file and --candidates FILE, or neither",
      fix="write the goals with --goals-out and have a model answer them, or use templates",
    )
  given = [name for name, value in of_classifier.items() if value]
  if given and classifier is None:
    raise UsageError(
      f"--{given[0]} without --classifier",
      expected="a classifier's answers, which this option is about",
      fix="leave it out, or pass --classifier FILE",
    )


def _check_acts(split: Split) -> None:
  if any(split.dialogues()) and not any(has_acts(data) for data in split.dialogues()):
    raise SgdxError(
      f"{split.corpus.origin}: {split.name} has no user acts",
      expected="actions in user frames, which specify what a turn says",
      available="kinds that work without acts: ned, vs, sdi, and pi with --provider table",
      fix="add the annotation, or choose another kind",
    )


def goal_lines(coco: Coco, split: Split) -> Iterator[dict[str, Any]]:
  """Yields {"id", "inputs", "goal"} of all goals, each followed by its turn's original goal."""
  for turn, goal in _goals(coco, split):
    if turn.carried:  # the acts do not say what its words refer to
      continue
    for suffix, each in (("", goal), (ORIGINAL_GOAL, turn.goal)):
      key = turn.id + suffix
      outlined = outlined_turn(turn, each, split.schema)
      told = {slot: value.said for slot, value in each.told.items()}
      yield {"id": key, "inputs": asked(turn.heard, outlined["frames"], key), "goal": told}


def _goals(coco: Coco, split: Split) -> Iterator[tuple[UserTurn, Any]]:
  for data in split.dialogues():
    with annotation_of(data):
      found = [(turn, goal_of(coco, turn)) for turn in eligible_turns(data)]
    yield from ((turn, goal) for turn, goal in found if not isinstance(goal, str))


def classifier_lines(coco: Coco, split: Split) -> Iterator[dict[str, Any]]:
  """Yields {"id", "inputs"} for a classifier: real turns, then candidates.

  Real turns are all that inform something; candidates, those that pass the other filters.
  """
  for data in split.dialogues():
    with annotation_of(data):
      turns = list(eligible_turns(data))
    for turn in turns:
      yield {"id": turn.id, "inputs": _slots_asked(turn, turn.data["utterance"], split)}
  for turn, goal in _goals(coco, split):
    for goal_id, each in ((turn.id, goal), (turn.id + ORIGINAL_GOAL, turn.goal)):
      for key, new, failed in tried(coco, turn, each, goal_id):
        if not failed and not isinstance(new, str):
          yield {"id": key, "inputs": _slots_asked(turn, new.text, split)}


def _slots_asked(turn: UserTurn, utterance: str, split: Split) -> str:
  return asked_slots(turn.heard, utterance, split.schema[turn.goal.service])
