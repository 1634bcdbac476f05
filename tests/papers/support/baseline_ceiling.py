"""Upper bound of the SGD paper's baseline: its score when all of its answers are gold."""

from walked import walked_scores

from sgdx_t5x.papers.sgd_baseline.baseline_features import NOTHING_OFFERED, right_answers
from sgdx_t5x.records.turns import gold_history
from sgdx_t5x.spandst.spandst import new_values
from sgdx_t5x.spandst.walk import Prediction


def gold_labels(dialogues, schema):
  """Maps frame ids to (gold answers, gold labels of the frame)."""
  found = {}
  for context, gold, states in (x for d in dialogues for x in gold_history(d, schema)):
    state, service = states.get(context.service), schema.services[context.service]
    answers = right_answers(service, context, gold, state.values if state else {})
    found[context.frame_id] = answers, gold
  return found


def ceiling(dialogues, schema, seen):
  """JGA in percent with gold answers: all, seen, unseen."""
  labels = gold_labels(dialogues, schema)

  def predict(questions):
    found = []
    for context, states in ((q.context, q.states) for q in questions):
      answers, gold = labels[context.frame_id]
      own, service = states.get(context.service), schema.services[context.service]
      values = new_values(service, context, own.values if own else {}, NOTHING_OFFERED, answers)
      found.append(Prediction(gold.intent, gold.requested, values))
    return found

  scores = walked_scores(dialogues, schema, predict, seen)
  accuracy = scores.metrics["joint_goal_accuracy"] * 100
  return [float(accuracy[part].mean()) for part in (slice(None), scores.seen, ~scores.seen)]
