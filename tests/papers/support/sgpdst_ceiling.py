"""Upper bound of SGP-DST: its score when all answers of its sub-models are gold."""

from walked import walked_scores

from sgdx_t5x.papers.sgpdst.sgpdst import new_values, right_answers
from sgdx_t5x.records.turns import gold_history
from sgdx_t5x.spandst.walk import Prediction


def gold_labels(dialogues, schema):
  """Maps frame ids to (gold answers, gold labels, gold states before the turn)."""
  found = {}
  for context, gold, states in (x for d in dialogues for x in gold_history(d, schema)):
    labels = right_answers(schema.services[context.service], context, gold, states)
    found[context.frame_id] = labels, gold, states
  return found


def ceiling(dialogues, schema, seen, oracle=False):
  """Scores with gold answers in percent: JGA, then fully right frames; each all, seen, unseen.

  Args:
    dialogues: dialogues with the names of `schema`.
    schema: schema of the split.
    seen: names of seen services.
    oracle: take empty slots and other services' values from gold history, as the released pipeline.
  """
  labels = gold_labels(dialogues, schema)

  def predict(questions):
    found = []
    for context, states in ((q.context, q.states) for q in questions):
      answers, gold, before = labels[context.frame_id]
      service = schema.services[context.service]
      values = new_values(service, context, states, answers, before if oracle else None)
      found.append(Prediction(gold.intent, gold.requested, values))
    return found

  scores = walked_scores(dialogues, schema, predict, seen)
  accuracy = scores.metrics["joint_goal_accuracy"] * 100
  groups = (slice(None), scores.seen, ~scores.seen)
  right = (accuracy == 100) * 100.0
  return [float(x[group].mean()) for x in (accuracy, right) for group in groups]
