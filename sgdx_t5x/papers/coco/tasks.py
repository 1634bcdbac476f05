"""Tasks of single user turns: CoCo's generator and classifier, and goals for inference."""

import functools
from collections.abc import Iterator

import seqio
import tensorflow as tf

from sgdx_t5x.records import turn_examples
from sgdx_t5x.tasks.texts import SPLITS, TurnSource, Vocabulary, register_texts


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
