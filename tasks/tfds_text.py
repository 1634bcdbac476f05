"""Registers a public TFDS data set as a text task in one call, where it can be downloaded."""

import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import seqio
import tensorflow as tf
import tensorflow_datasets as tfds

from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.prompts.values import NONE
from sgdx_t5x.tasks.registration import check_new
from sgdx_t5x.tasks.texts import register_texts

FORMAT = "tfds"  # in `sgdx ls tasks`


def register_tfds_text_task(
  name: str,
  tfds_name: str,
  prompts: Sequence[tuple[str, str]],
  *,
  vocabulary: Callable[[], seqio.Vocabulary],
  data: str = "full",
  splits: Mapping[str, str] | None = None,
) -> seqio.Task:
  """Registers a task on a TFDS data set, for pre-finetuning (PrefineDST has seven).

  Args:
    name: of the task.
    tfds_name: of the data set, "glue/mrpc:2.0.0" for instance. It is downloaded when first read,
      into --tfds_data_dir, unless it is there already.
    prompts: (inputs, target) with fields of the data set in braces: ("Same meaning? {sentence1}
      {sentence2}", "{label}"). A class label becomes its name, a list of texts its first text or
      "none" if it is empty; "{answers.text}" is a nested field. Each example uses one of the
      prompts, chosen by a hash of its text.
    vocabulary: a function of `vocabularies.py`.
    data: "sample" to mix it with the sample's tasks, whose names begin with "sample_".
    splits: mapping from SeqIO's splits to TFDS's (default: train and validation).

  Returns:
    The task.

  Raises:
    SgdxError: the name is taken, no prompts, or a prompt is malformed; when the task is used: a
      field that the data set does not have.
  """
  check_new(name)
  parsed = [tuple(_parts(name, text) for text in prompt) for prompt in prompts]
  if not parsed or any(len(prompt) != 2 for prompt in parsed):
    raise SgdxError(
      f"task {name!r}: prompts {prompts!r}",
      expected="one or more (inputs, target) pairs",
      fix='pass, for example, prompts=[("Same meaning? {sentence1} {sentence2}", "{label}")]',
    )
  if not re.search(r":\d+(\.(\d+|\*)){2}$", tfds_name):
    raise SgdxError(
      f"task {name!r}: data set {tfds_name!r}",
      expected="its name with a version, as SeqIO requires",
      fix=f"pass, for example, {tfds_name.partition(':')[0]}:2.0.0",
    )
  chosen = dict(splits or {"train": "train", "validation": "validation"})
  source = seqio.TfdsDataSource(tfds_name=tfds_name, splits=chosen)

  def as_text(dataset: tf.data.Dataset) -> tf.data.Dataset:
    features = source.tfds_dataset.builder.info.features

    def fill(example: Mapping[str, Any]) -> dict[str, tf.Tensor]:
      made = [
        tf.stack([_filled(name, prompt[i], example, features) for prompt in parsed]) for i in (0, 1)
      ]
      which = tf.strings.to_hash_bucket_fast(made[0][0], len(parsed))
      return {"inputs": made[0][which], "targets": made[1][which]}

    return dataset.map(fill)

  steps = [as_text, seqio.preprocessors.tokenize]
  return register_texts(name, data, FORMAT, source, steps, vocabulary)


_Part = tuple[str, str | None]  # text, and the field that follows it


def _parts(task: str, text: str) -> list[_Part]:
  try:
    return [(before, field) for before, field, _, _ in string.Formatter().parse(text)]
  except ValueError as e:
    raise SgdxError(
      f"task {task!r}: prompt {text!r}: {e}",
      expected="text with fields of the data set in braces",
      fix="write {{ and }} for literal braces",
    ) from None


def _filled(
  task: str, parts: Sequence[_Part], example: Mapping[str, Any], features: Any
) -> tf.Tensor:
  texts = []
  for before, field in parts:
    texts.append(tf.constant(before))
    if field is not None:
      texts.append(_field(task, field, example, features))
  return tf.strings.join(texts)


def _field(task: str, path: str, example: Any, features: Any) -> tf.Tensor:
  for name in path.split("."):
    known = list(features.keys()) if hasattr(features, "keys") else []
    if name not in known:
      raise SgdxError(
        f"task {task!r}: no field {path!r} in the data set",
        expected="a field or nested field of the data set, in braces",
        available=nearest(name, known),
        fix="correct the prompt; the data set card lists the fields",
      )
    example, features = example[name], features[name]
    features = getattr(features, "feature", features)  # of a sequence
  if isinstance(features, tfds.features.ClassLabel):
    # -1: a test split without labels
    which = tf.where(example < 0, tf.constant(features.num_classes, example.dtype), example)
    return tf.gather([*features.names, NONE], which)
  text = example if example.dtype == tf.string else tf.strings.as_string(example)
  if text.shape.rank == 0:
    return text
  return tf.cond(tf.size(text) > 0, lambda: text[0], lambda: tf.constant(NONE))
