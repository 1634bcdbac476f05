"""Tasks of CoCo: its generator and classifier, and its counterfactual turns for every tracker.

Importing this module registers them and CheckDST's, since one evaluation covers both.
"""

import functools
from collections.abc import Callable, Iterator, Sequence

import seqio
import tensorflow as tf

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.checkdst.tasks import (
  PERTURBED_FAMILIES,
  register_perturbed,
  register_task,
  test_sets,
)
from sgdx_t5x.papers.coco import turn_examples
from sgdx_t5x.tasks.registration import (
  FAMILIES,
  REGISTERED,
  Registered,
  check_new,
  register_mixture,
)
from sgdx_t5x.tasks.vocabularies import sample_vocabulary, vocabulary

SPLITS = {"train": "train", "validation": "dev", "test": "test"}
Vocabulary = Callable[[], seqio.Vocabulary]


def register_texts(
  name: str,
  data: str,
  format: str,
  source: seqio.DataSource,
  steps: Sequence[Callable],
  vocabulary: Vocabulary,
) -> seqio.Task:
  """Registers a task of texts.

  Args:
    name, data, format: see `Registered`.
    source: of the examples.
    steps: SeqIO preprocessors that make tokens of them, without EOS.
    vocabulary: of inputs and targets.
  """
  check_new(name)
  feature = seqio.Feature(vocabulary=vocabulary(), add_eos=True)
  task = seqio.TaskRegistry.add(
    name,
    source=source,
    preprocessors=[*steps, seqio.preprocessors.append_eos],
    output_features={"inputs": feature, "targets": feature},
    metric_fns=[equal_answers],
  )
  REGISTERED[name] = Registered(name, data, ("original",), format=format)
  return task


class TurnSource(seqio.FunctionDataSource):
  """Examples made from a corpus, once per split, and kept in memory."""

  def __init__(self, load: Callable[[str], Iterator[turn_examples.Example]], splits: Sequence[str]):
    """Args: load, returns a split's examples, all with the same keys; splits, SeqIO's names."""
    self._made = functools.cache(lambda split: list(load(split)))
    super().__init__(self._dataset, splits=tuple(splits))

  def _dataset(self, split: str, shuffle_files: bool, seed: int | None = None) -> tf.data.Dataset:
    examples = self._made(split)
    if not examples:  # of a mixture, SeqIO would make no more, or wait forever
      raise SgdxError(
        f"no examples of this task in split {split}",
        expected="turns that the task is made of",
        fix="leave the task out of the mixture, or use a corpus that has such turns",
      )
    columns = {
      key: tf.constant([x[key].encode("utf-8", "replace") for x in examples], tf.string)
      for key in examples[0]
    }
    dataset = tf.data.Dataset.from_tensor_slices(columns)
    return dataset.shuffle(len(examples), seed=seed) if shuffle_files else dataset

  def num_input_examples(self, split: str) -> int:
    """Number of examples, which is the task's rate in a mixture."""
    return len(self._made(split))


def equal_answers(targets: list[str], predictions: list[str]) -> dict[str, float]:
  """SeqIO metric: share of answers equal to the target, ignoring whitespace and case."""
  pairs = zip(targets, predictions, strict=True)
  number_equal = sum(a.lower().split() == b.lower().split() for a, b in pairs)
  return {"equal": number_equal / max(len(targets), 1)}


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

    def load(split: str, make: turn_examples.Examples = make) -> Iterator[turn_examples.Example]:
      return make(turn_examples.corpus_of_tasks(data), SPLITS[split])

    source = TurnSource(load, tuple(SPLITS))
    register_texts(f"{prefix}{name}", data, "turns", source, steps, vocabulary)
  source = TurnSource(lambda split: turn_examples.goal_examples(), ("test",))  # a file has only one
  register_texts(f"{prefix}sgd_user_turn_goals", data, "turns", source, steps, vocabulary)


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
    control = register_task(family, control, control, "coco_ori")
    register_mixture(f"{family}_{records}_check", [original, turns, control])
    register_mixture(f"{family}_all_tests_{slots}", [*test_sets(family), turns, control])
  copies = register_task(family, "coco_freq_aug", "sgd_coco_aug", "coco")
  register_mixture(f"{family}_coco_aug", [original, copies])


register_turn_tasks("", data="full", vocabulary=vocabulary)
register_turn_tasks("sample_", data="sample", vocabulary=sample_vocabulary)
for _family in PERTURBED_FAMILIES:  # a test set includes CheckDST's
  _register_counterfactuals(_family)
