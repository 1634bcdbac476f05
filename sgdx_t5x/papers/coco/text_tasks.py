"""Tasks of input and target texts that no prompt format makes: their source, steps and metric."""

import functools
from collections.abc import Callable, Iterator, Sequence

import seqio
import tensorflow as tf

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.coco import turn_examples
from sgdx_t5x.tasks.registration import REGISTERED, Registered, check_new

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

  def __init__(self, read: Callable[[str], Iterator[turn_examples.Example]], splits: Sequence[str]):
    """Args: read, returns a split's examples, all with the same keys; splits, SeqIO's names."""
    self._made = functools.cache(lambda split: list(read(split)))
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
  right = sum(a.lower().split() == b.lower().split() for a, b in pairs)
  return {"equal": right / max(len(targets), 1)}
