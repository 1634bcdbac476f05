"""A SeqIO task with the synthetic frames of span_frames.py."""

import functools

import numpy as np
import seqio
import span_frames
import tensorflow as tf

from sgdx_t5x.spandst import answers

NAME = "made_up_spans"


def vocabulary() -> seqio.Vocabulary:
  """The vocabulary of all features."""
  return seqio.PassThroughVocabulary(size=span_frames.VOCAB_SIZE)


def _dataset(split, shuffle_files, seed=None):
  del shuffle_files, seed
  number, first = {"train": (1200, 1), "validation": (60, 2)}[split]
  signature = {name: tf.TensorSpec([None], tf.int32) for name in span_frames.LENGTHS}
  frames = functools.partial(span_frames.frames, number, first)
  return tf.data.Dataset.from_generator(lambda: iter(frames()), output_signature=signature)


def right_slots(targets, predictions):
  """Accuracy on all slots, and on those with a gold answer."""
  right, changed = [], []
  for rows, vector in zip(targets, predictions, strict=True):
    wanted = {slot: rest for slot, *rest in answers.target_rows(rows) if rest[0] <= answers.MEMORY}
    for number, found in enumerate(answers.read_answer(vector).slots, start=1):
      expected = wanted.get(number, [answers.KEEP, 0, 0])
      right.append([found.kind, found.first, found.last] == expected)
      changed.append(number in wanted)
  right, changed = np.array(right), np.array(changed)
  return {"slots": right.mean(), "changes": right[changed].mean()}


seqio.TaskRegistry.add(
  NAME,
  source=seqio.FunctionDataSource(_dataset, splits=["train", "validation"]),
  preprocessors=[],
  output_features={
    name: seqio.Feature(vocabulary(), add_eos=False) for name in span_frames.LENGTHS
  },
  metric_fns=[right_slots],
)
