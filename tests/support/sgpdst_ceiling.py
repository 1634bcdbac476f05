"""How far SGP-DST's sub-models reach: their right answers, taken as their answers."""

from walked import walked_scores

from sgdx_t5x.trackers.sgpdst import Rules, new_values, own_values, right_answers
from sgdx_t5x.trackers.turns import after_turn, gold_turns, user_turns
from sgdx_t5x.trackers.walk import Prediction


def gold_labels(dialogues, schema):
  """Right answers, what is right, and gold states before, by frame id."""
  found = {}
  for dialogue in dialogues:
    states = {}
    turns = zip(user_turns(dialogue, schema), gold_turns(dialogue, schema), strict=True)
    for known, gold in turns:
      pairs = list(zip(known, gold, strict=True))
      for one, right in pairs:
        labels = right_answers(schema.services[one.service], one, right, states)
        found[one.frame_id] = labels, right, states
      states = after_turn(states, {one.service: right.state(one.turn) for one, right in pairs})
  return found


def ceiling(dialogues, schema, seen, gold_history=False):
  """Percent of frames with the right answers: JGA (all, seen, unseen), and of frames all right.

  Args:
    dialogues: in names of `schema`.
    schema: of the split.
    seen: names of seen services.
    gold_history: let gold values say what is empty, as the released pipeline does.
  """
  labels = gold_labels(dialogues, schema)

  def predict(questions):
    found = []
    for known, states in ((q.known, q.states) for q in questions):
      answers, gold, before = labels[known.frame_id]
      oracle = own_values(known, before) if gold_history else None
      service = schema.services[known.service]
      values = new_values(service, known, states, answers, Rules(), oracle)
      found.append(Prediction(gold.intent, gold.requested, values))
    return found

  scores = walked_scores(dialogues, schema, predict, seen)
  accuracy = scores.metrics["joint_goal_accuracy"] * 100
  groups = (slice(None), scores.seen, ~scores.seen)
  right = (accuracy == 100) * 100.0
  return [float(x[group].mean()) for x in (accuracy, right) for group in groups]
