"""Gold answers of SpanDST in the output format of its model."""

from sgdx_t5x.spandst import answers


def right_answer(targets, num_slots):
  """The output vector of `SpanModel` for the first gold row of each slot."""
  rows, vector = answers.target_rows(targets), [0, answers.MILLION]
  for number in range(1, num_slots + 1):
    mine = [row for row in rows if row[0] == number]
    kind, first, last = next((r[1:] for r in mine if r[1] <= answers.MEMORY), (1, 0, 0))
    asked = any(row[1] == answers.REQUESTED for row in mine)
    vector += [kind, first, last, answers.MILLION, 0, answers.MILLION * asked]
  vector[0] = next(row[2] for row in rows if row[1] == answers.INTENT)
  return vector
