"""Tiny seqio tasks for the end-to-end tests: repeat the last three letters of the input."""

import functools
import itertools
import os
import time

import seqio
import tensorflow as tf

VOCAB = seqio.ByteVocabulary(extra_ids=0)
FEATURES = {
  "inputs": seqio.Feature(VOCAB, add_eos=True, dtype=tf.int32),
  "targets": seqio.Feature(VOCAB, add_eos=True, dtype=tf.int32),
}
SIZES = {"train": 200, "validation": 22, "test": 22}


def _examples(split):
  for i in range(SIZES[split]):
    if split == "test" and i % 11 == 10:
      i -= 1  # some inputs occur twice
    word = "".join(chr(97 + (i * 7 + j * j * 3) % 26) for j in range(3 + i * 5 % 40))
    yield {"inputs": word, "targets": word[-3:]}


def _dataset(split, shuffle_files=False, seed=None):
  del shuffle_files, seed
  rows = list(_examples(split))
  return tf.data.Dataset.from_tensor_slices(
    {k: [row[k] for row in rows] for k in ("inputs", "targets")}
  )


def exact_match(targets, predictions):
  """Share of equal strings."""
  return {
    "exact_match": sum(t == p for t, p in zip(targets, predictions, strict=True)) / len(targets)
  }


def mean_score(targets, scores):
  """Mean log likelihood of the targets."""
  return {"mean_score": float(sum(scores) / len(targets))}


def mean_aux_score(targets, predictions, aux_values):
  """Mean score of the decodes."""
  del predictions
  return {"mean_aux_score": float(sum(aux_values["scores"]) / len(targets))}


def blocking_match(targets, predictions):
  """`exact_match`; with RUN_TASKS_BLOCK_METRIC it never ends."""
  if "RUN_TASKS_BLOCK_METRIC" in os.environ:
    time.sleep(3600)
  return exact_match(targets, predictions)


_evaluations = itertools.count()


def countdown(targets, predictions):
  """Less with every evaluation of a process; it takes a moment."""
  del targets, predictions
  time.sleep(1)
  return {"countdown": -next(_evaluations)}


def failing(targets, predictions):
  """A metric with a bug."""
  raise RuntimeError("this metric is broken")


def _many(split, shuffle_files=False, seed=None):
  """RUN_TASKS_MANY=1000 different examples; after RUN_TASKS_BLOCK_AT=N of them nothing comes."""
  del split, shuffle_files, seed
  block_at = int(os.environ.get("RUN_TASKS_BLOCK_AT", "-1"))
  number = int(os.environ.get("RUN_TASKS_MANY", "1000"))

  def examples():
    for i in range(number):
      if i == block_at:
        time.sleep(3600)
      yield {"inputs": f"{i} {'x' * (i % 7)}", "targets": str(i)}

  spec = {k: tf.TensorSpec((), tf.string) for k in ("inputs", "targets")}
  return tf.data.Dataset.from_generator(examples, output_signature=spec)


_add = functools.partial(
  seqio.TaskRegistry.add,
  source=seqio.FunctionDataSource(_dataset, splits=list(SIZES)),
  preprocessors=[seqio.preprocessors.tokenize, seqio.preprocessors.append_eos],
  output_features=FEATURES,
)
_add("run_last3", metric_fns=[exact_match, mean_score, mean_aux_score])
_add("run_broken_metric", metric_fns=[failing])
_add("run_countdown", metric_fns=[countdown])
_add(
  "run_many",
  source=seqio.FunctionDataSource(_many, splits=["test"]),
  metric_fns=[blocking_match],
)


def vocabulary():
  """The tasks' vocabulary, for gin."""
  return VOCAB
