"""Tracks dialogues turn by turn: what a tracker predicted is what it knows in the next turn.

The same turn of many dialogues is predicted at once, so that a model gets full batches; frames of a
turn do not see each other. Gold states are not used.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.records.turns import FrameContext, ServiceState, States, user_turns


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
  """A frame, and the states that were predicted before its turn."""

  context: FrameContext
  states: States


@dataclasses.dataclass(frozen=True, slots=True)
class Prediction:
  """A tracker's prediction for a frame.

  Attributes:
    intent: position of the active intent, or NONE.
    requested: positions of the slots that the user requests.
    values: position of a slot -> values.
  """

  intent: int
  requested: tuple[int, ...]
  values: Mapping[int, tuple[str, ...]]


Predict = Callable[[Sequence[Question]], Sequence[Prediction]]


def walk(
  dialogues: Sequence[Dialogue], schema: Schema, predict: Predict
) -> Iterator[list[tuple[FrameContext, Prediction]]]:
  """Yields the predictions for all dialogues, one user turn at a time, from first to last.

  Args:
    dialogues: in the names of `schema`.
    schema: of the split, the original one.
    predict: a tracker; takes the frames of a turn of all dialogues, returns one prediction each.

  Yields:
    The frames of a turn of all dialogues, each with its prediction; from the first turn to the
    last of the longest dialogue.
  """
  turns = [list(user_turns(dialogue, schema)) for dialogue in dialogues]  # [dialogue][turn][frame]
  states: list[States] = [{} for _ in dialogues]
  for frames_by_dialogue in itertools.zip_longest(*turns, fillvalue=()):
    dialogue_numbers, questions = [], []
    for i, frames in enumerate(frames_by_dialogue):
      for context in frames:
        dialogue_numbers.append(i)
        questions.append(Question(context, states[i]))
    # One call per turn number, whatever the dialogue: none needs the answers of another.
    predictions = predict(questions)
    answered = []
    for i, question, prediction in zip(dialogue_numbers, questions, predictions, strict=True):
      context = question.context
      answered.append((context, prediction))
      state = ServiceState(context.turn, prediction.intent, prediction.values)
      states[i] = {**states[i], context.service: state}  # anew: questions keep the one before
    yield answered
