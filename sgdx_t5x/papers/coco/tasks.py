"""Tasks of CoCo: its generator and classifier, and its counterfactual turns for every tracker.

Importing this module registers them and CheckDST's, since one evaluation covers both.
"""

import functools
from collections.abc import Iterator

import seqio
import tensorflow as tf

from sgdx_t5x.papers.checkdst.tasks import register_original, register_perturbed, test_sets
from sgdx_t5x.papers.coco import turn_examples
from sgdx_t5x.papers.coco.text_tasks import SPLITS, TurnSource, Vocabulary, register_texts
from sgdx_t5x.tasks.registration import FAMILIES, register_mixture
from sgdx_t5x.tasks.vocabularies import sample_vocabulary, vocabulary


def register_turn_tasks(prefix: str, *, data: str, vocabulary: Vocabulary) -> None:
  """Registers `sgd_user_turn`, `sgd_turn_slots` and `sgd_user_turn_goals`.

  Args:
    prefix: of their names, "" or "sample_".
    data: "sample", or "full" for the corpus that SGDX_CORPUS names.
    vocabulary: a function of `vocabularies.py`, the same as in the gin file.
  """
  steps = (_keep_id, seqio.preprocessors.tokenize)
  for name, make in (
    ("sgd_user_turn", turn_examples.generator_examples),
    ("sgd_turn_slots", turn_examples.classifier_examples),
  ):
    source = TurnSource(functools.partial(_of_corpus, data, make), tuple(SPLITS))
    register_texts(f"{prefix}{name}", data, "turns", source, steps, vocabulary)
  source = TurnSource(_goals, ("test",))
  register_texts(f"{prefix}sgd_user_turn_goals", data, "turns", source, steps, vocabulary)


def _of_corpus(
  data: str, make: turn_examples.Examples, split: str
) -> Iterator[turn_examples.Example]:
  return make(turn_examples.corpus_of_tasks(data), SPLITS[split])


def _goals(split: str) -> Iterator[turn_examples.Example]:
  del split  # a file of goals holds only one
  return turn_examples.goal_examples()


def _keep_id(dataset: tf.data.Dataset) -> tf.data.Dataset:
  """SeqIO preprocessor: copies the id to a feature with the suffix that `t5x.infer` writes."""
  return dataset.map(lambda x: {**x, "id_pretokenized": x["id"]})


def _register_counterfactuals(family: str) -> None:
  """Registers the tasks of counterfactual turns, whose slots are drawn in three ways."""
  original = FAMILIES[family].tasks[0]
  for slots in ("freq", "neutral", "rare"):
    records = f"coco_{slots}"
    turns, *_ = register_perturbed(family, records, records, "coco")
    control = f"coco_ori_{slots}"  # the same generator with the original goals
    control = register_original(family, control, control, "coco_ori")
    register_mixture(f"{family}_{records}_check", [original, turns, control])
    register_mixture(f"{family}_all_tests_{slots}", [*test_sets(family), turns, control])
  copies = register_original(family, "coco_freq_aug", "sgd_coco_aug", "coco")
  register_mixture(f"{family}_coco_aug", [original, copies])


register_turn_tasks("", data="full", vocabulary=vocabulary)
register_turn_tasks("sample_", data="sample", vocabulary=sample_vocabulary)
for _family in tuple(FAMILIES):
  _register_counterfactuals(_family)
