"""Right answers to SpanDST's examples as rows of numbers, and a model's numbers as answers.

The rows are those of `spandst/README.md`.
"""

import bisect
import itertools
from collections.abc import Mapping, Sequence

from sgdx_t5x.records import turns
from sgdx_t5x.records.turns import Gold
from sgdx_t5x.spandst import answers
from sgdx_t5x.spandst.span_features import LENGTHS, Example
from sgdx_t5x.spandst.spandst import Choice


def targets(
  example: Example,
  labels: Mapping[int, Sequence[Choice]],
  gold: Gold,
  limit: int = LENGTHS["targets"],
) -> list[int]:
  """Returns the rows of `targets`, flattened.

  Args:
    example: of the frame.
    labels: position of a slot -> right answers, from `spandst.right_choices`.
    gold: labels of the frame.
    limit: maximum length; rows beyond it are dropped, further spans of a value first.
  """
  intents = {position: number for number, position in enumerate(example.intents, start=1)}
  rows = []
  if gold.intent == turns.NONE:
    rows.append((0, answers.INTENT, 0, 0))
  elif gold.intent in intents:
    rows.append((0, answers.INTENT, intents[gold.intent], 0))
  requested, extra_rows = set(gold.requested), []
  for number, slot in enumerate(example.slots, start=1):
    if slot in requested:
      rows.append((number, answers.REQUESTED, 0, 0))
    choices = labels.get(slot, ())
    if len(choices) > 1 or (choices and choices[0].kind != answers.KEEP):
      rows_of_slot = []
      for choice in choices:
        if row := _row(example, number, choice):
          rows_of_slot.append(row)
      # Further spans of a value come last, where `limit` cuts.
      rows += rows_of_slot[:2]
      extra_rows += rows_of_slot[2:]
  # Two spans of characters may be the same pieces, and rows must not repeat.
  distinct_rows = dict.fromkeys([*rows, *extra_rows])
  return list(itertools.chain.from_iterable(distinct_rows))[: limit - limit % answers.ROW]


def _row(example: Example, number: int, choice: Choice) -> tuple[int, int, int, int] | None:
  """Returns the row of `targets` that says a right answer; None if the input lacks its span.

  Args:
    example: of the frame.
    number: of the slot among those shown, from 1.
    choice: the answer.
  """
  if choice.kind == answers.SPAN:
    starts, ends, position = example.user if choice.number else example.system
    pieces = _pieces_of_span(starts, ends, choice)
    return pieces and (number, answers.SPAN, position + pieces[0], position + pieces[1])
  if choice.kind == answers.VALUE:
    # Values are shown in an order of their own, see `SpanReader._in_order`.
    return number, answers.VALUE, example.values.index((number, choice.number)) + 1, 0
  if choice.kind == answers.MEMORY:
    return number, answers.MEMORY, choice.number + 1, 0
  return number, choice.kind, 0, 0


def _pieces_of_span(
  starts: Sequence[int], ends: Sequence[int], span: Choice
) -> tuple[int, int] | None:
  """Returns the first and last piece that hold a span of characters; None if a part was cut off.

  Args:
    starts: offset of the first character of each piece of the utterance that is in the input.
    ends: offset after its last one.
    span: in offsets of characters, too.
  """
  begin = bisect.bisect_right(ends, span.start)
  end = bisect.bisect_left(starts, span.end) - 1
  if not starts or begin > end or starts[begin] >= span.end:
    return None
  # Long utterances lose their oldest pieces: a span may begin before the first that is left. Inside
  # the text it may begin or end between pieces, at a space.
  if begin == 0 and starts[begin] > span.start:
    return None
  if end + 1 == len(ends) and ends[end] < span.end:
    return None
  return begin, end


def read_choice(example: Example, answer: answers.SlotAnswer) -> Choice:
  """Decodes an answer for a slot; KEEP if it points to nothing valid."""
  if answer.kind == answers.SPAN:
    for by_user, (starts, ends, position) in ((0, example.system), (1, example.user)):
      begin, end = answer.first - position, answer.last - position
      if 0 <= begin <= end < len(starts):
        return Choice(answers.SPAN, by_user, starts[begin], ends[end])
    return Choice(answers.KEEP)
  if answer.kind == answers.VALUE:
    if not 1 <= answer.first <= len(example.values):
      return Choice(answers.KEEP)
    return Choice(answers.VALUE, example.values[answer.first - 1][1])
  if answer.kind == answers.MEMORY:
    if not 1 <= answer.first <= len(example.choices.memory):
      return Choice(answers.KEEP)
    return Choice(answers.MEMORY, answer.first - 1)
  return Choice(answer.kind)
