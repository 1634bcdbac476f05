"""Examples -> batches of model features."""

from __future__ import annotations

from collections.abc import Mapping

import seqio
import tensorflow as tf


def makes_one_row_of_each(converter: seqio.FeatureConverter) -> bool:
  """Whether a converter is SeqIO's own; a custom one may filter examples."""
  own = seqio.EncDecFeatureConverter
  return isinstance(converter, own) and type(converter)._convert_features is own._convert_features


def convert_and_batch(
  ds: tf.data.Dataset,
  converter: seqio.FeatureConverter,
  lengths: Mapping[str, int],
  batch_size: int,
  drop_remainder: bool,
  trimmed: bool,
) -> tf.data.Dataset:
  """Returns `converter(ds, lengths).batch(batch_size, drop_remainder)`.

  SeqIO's converter for encoder-decoders runs some 30 operations on each example, which is more than
  half of the work of reading T5DST; where it packs nothing, batches are converted as a whole.

  Args:
      ds: examples of task features.
      converter: converts task features to model features.
      lengths: {task feature: length}.
      batch_size: rows per batch.
      drop_remainder: drop the last batch if it has fewer.
      trimmed: examples are no longer than `lengths`; else SeqIO's converter checks each.
  """
  of_examples = converter(ds, lengths)  # raises if something is wrong; not run if not returned
  if not (trimmed and _is_plain(converter)):
    return of_examples.batch(batch_size, drop_remainder)
  names = list(converter.TASK_FEATURES)
  ds = ds.map(lambda example: {name: example[name] for name in names})
  ds = ds.padded_batch(batch_size, {name: [lengths[name]] for name in names}, None, drop_remainder)

  def convert(rows):
    inputs, targets = rows["inputs"], rows["targets"]
    return {
      "encoder_input_tokens": inputs,
      "decoder_target_tokens": targets,
      "decoder_input_tokens": tf.pad(
        targets[:, :-1], [[0, 0], [1, 0]], constant_values=converter.bos_id
      ),
      "decoder_loss_weights": tf.cast(targets != 0, tf.int32),
    }

  return ds.map(convert)


def _is_plain(converter: seqio.FeatureConverter) -> bool:
  """Whether a converter is SeqIO's for encoder-decoders, with nothing changed or packed."""
  return type(converter) is seqio.EncDecFeatureConverter and not (
    converter.pack or converter._passthrough_features
  )
