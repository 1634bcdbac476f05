"""Gold answers of SGP-DST's sub-models, in the output format of the models."""

from sgpdst_ceiling import gold_labels

from sgdx_t5x.papers.sgpdst import sgpdst_answers as a
from sgdx_t5x.papers.sgpdst import sgpdst_features as features
from sgdx_t5x.papers.sgpdst.sgpdst_features import SgpReader


class RightReader(SgpReader):
  """Makes examples whose features are the gold answers, for a model that copies its input."""

  def __init__(self, part, variant, original, labels, *how):
    super().__init__(part, variant, *how)
    self._labels, self._original = labels, original

  def _with(self, example, vector):
    example.features.clear()
    example.features["inputs"] = vector
    return example

  def intent(self, context, *how):
    example = super().intent(context, *how)
    intent = self._labels[context.frame_id][1].intent
    option = intent if intent >= 0 else len(self._original.services[context.service].intents)
    return self._with(example, [option + 1, a.MILLION])

  def combine(self, context, slot):
    example, answers = super().combine(context, slot), self._labels[context.frame_id][0]
    first, last, option, asked, _ = features.slot_targets(example, answers, slot)
    sure = [2 * a.MILLION, option, a.MILLION, a.MILLION * (asked == a.YES)]
    return self._with(example, [first, last, *sure])

  def copy(self, context, slot, *how):
    said = slot in self._labels[context.frame_id][0].copies
    return self._with(super().copy(context, slot, *how), [0, a.MILLION * said])

  def cross(self, context, pair, *how):
    said = pair in self._labels[context.frame_id][0].crosses
    return self._with(super().cross(context, pair, *how), [0, a.MILLION * said])


def right_readers(dialogues, original, variant, vocabulary, style, length):
  """Readers of all parts, in a variant's words, with the gold answers of these dialogues."""
  labels = gold_labels(dialogues, original)
  return {
    part: RightReader(part, variant, original, labels, vocabulary, style, length)
    for part in ("intent", "combine", "copy", "cross")
  }


def ask(part, examples):
  """Stands in for the models: copies their inputs."""
  del part
  return [example["inputs"] for example in examples]
