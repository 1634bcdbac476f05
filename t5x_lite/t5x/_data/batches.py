"""Examples -> batches of model features."""

from __future__ import annotations

from collections.abc import Mapping

import seqio
import tensorflow as tf

from t5x._data.packing import PACKING_WINDOW, order_for_packing, pack, reorder_for_packing

_WINDOW = 64  # examples that are converted at once where rows are needed, not batches


def makes_one_row_of_each(converter: seqio.FeatureConverter) -> bool:
  """Whether a converter is SeqIO's own; a custom one may filter examples."""
  convert = getattr(type(converter), "_convert_features", None)
  return convert is seqio.EncDecFeatureConverter._convert_features


def quick_converter(converter: seqio.FeatureConverter) -> seqio.FeatureConverter:
  """Returns a converter that makes the same rows of examples that are trimmed, in less time.

  One that packs reorders the examples too (`reorder_for_packing`). It is `converter` itself where
  that is not SeqIO's for encoder-decoders.
  """
  if type(converter) is not seqio.EncDecFeatureConverter or converter._passthrough_features:
    return converter
  if not converter.pack:
    return _Padding(converter.bos_id)
  return converter if converter._use_custom_packing_ops else _Packing(converter.bos_id)


def convert_and_batch(
  ds: tf.data.Dataset,
  converter: seqio.FeatureConverter,
  lengths: Mapping[str, int],
  batch_size: int,
  drop_remainder: bool,
  trimmed: bool,
) -> tf.data.Dataset:
  """Returns `converter(ds, lengths).batch(batch_size, drop_remainder)`, reordered for packing.

  Args:
      ds: examples of task features.
      converter: converts task features to model features.
      lengths: {task feature: length}.
      batch_size: rows per batch.
      drop_remainder: drop the last batch if it has fewer.
      trimmed: examples are no longer than `lengths`; else SeqIO's converter checks each.
  """
  if trimmed:
    converter = quick_converter(converter)
  if converter.pack and not isinstance(converter, _Packing):
    ds = reorder_for_packing(ds, converter, lengths)
  rows = converter(ds, lengths)  # raises if something is wrong; not run if not returned
  if isinstance(converter, _Padding):
    return converter.batches(ds, lengths, batch_size, drop_remainder)
  return rows.batch(batch_size, drop_remainder)


class _Padding(seqio.EncDecFeatureConverter):
  """SeqIO's converter for encoder-decoders without packing, run on many examples at once.

  SeqIO runs some 30 operations on each example, which is more than half of the work of reading
  T5DST, and takes half a second to prepare each data set. Like it, this one raises for examples
  that are too long.
  """

  def __init__(self, bos_id: int):
    super().__init__(pack=False, apply_length_check=False, bos_id=bos_id)

  def _convert_features(self, ds, task_feature_lengths):
    number = ds.cardinality()
    rows = self.batches(ds, task_feature_lengths, _WINDOW, drop_remainder=False).unbatch()
    return rows.apply(tf.data.experimental.assert_cardinality(number)) if number >= 0 else rows

  def batches(self, ds, lengths: Mapping[str, int], batch_size: int, drop_remainder: bool):
    """Returns batches of model features, `[batch_size, length]`."""
    names = list(self.TASK_FEATURES)

    @tf.autograph.experimental.do_not_convert  # converting takes longer than tracing
    def tokens(example):
      return {name: example[name] for name in names}

    @tf.autograph.experimental.do_not_convert
    def convert(rows):
      inputs, targets = rows["inputs"], rows["targets"]
      return {
        "encoder_input_tokens": inputs,
        "decoder_target_tokens": targets,
        "decoder_input_tokens": _shifted(targets, self.bos_id),
        "decoder_loss_weights": tf.cast(targets != 0, tf.int32),
      }

    shapes = {name: [lengths[name]] for name in names}
    return ds.map(tokens).padded_batch(batch_size, shapes, None, drop_remainder).map(convert)


class _Packing(seqio.EncDecFeatureConverter):
  """SeqIO's converter for encoder-decoders after `reorder_for_packing`, with the same rows.

  Both run on many examples at once, which takes half of the time.
  """

  def __init__(self, bos_id: int):
    super().__init__(pack=True, apply_length_check=False, bos_id=bos_id)

  def _convert_features(self, ds, task_feature_lengths):
    names = list(self.TASK_FEATURES)
    lengths = [task_feature_lengths[name] for name in names]

    @tf.autograph.experimental.do_not_convert  # converting takes longer than tracing
    def tokens(example):
      features = {n: example[n][:length] for n, length in zip(names, lengths, strict=True)}
      return features, tf.stack([tf.size(x) for x in features.values()])

    @tf.autograph.experimental.do_not_convert
    def reorder(features, sizes):
      order = tf.numpy_function(lambda x: order_for_packing(x, lengths), [sizes], tf.int64)
      order.set_shape([None])
      return {name: tf.gather(x, order) for name, x in features.items()}

    @tf.autograph.experimental.do_not_convert
    def convert(features):
      rows = tf.numpy_function(
        lambda *x: pack(x, lengths), [features[n] for n in names], [tf.int32] * 6, stateful=False
      )
      inputs, inputs_positions, inputs_segments, targets, positions, segments = (
        tf.ensure_shape(x, [None, lengths[i // 3]]) for i, x in enumerate(rows)
      )
      starts = segments != _shifted(segments)  # also in the padding that follows an example
      return {
        "encoder_input_tokens": inputs,
        "decoder_target_tokens": targets,
        "decoder_input_tokens": tf.where(starts, self.bos_id, _shifted(targets, self.bos_id)),
        "decoder_loss_weights": tf.cast(targets != 0, tf.int32),
        "encoder_segment_ids": inputs_segments,
        "decoder_segment_ids": segments,
        "encoder_positions": inputs_positions,
        "decoder_positions": positions,
      }

    shapes = {n: [length] for n, length in zip(names, lengths, strict=True)}
    ds = ds.map(tokens).padded_batch(PACKING_WINDOW, (shapes, [len(names)]))
    ds = ds.map(reorder, tf.data.AUTOTUNE)
    # As many examples as SeqIO packs at a time: a row never holds those of two such groups.
    return ds.rebatch(max(lengths)).map(convert, tf.data.AUTOTUNE).unbatch()


def _shifted(x: tf.Tensor, start_token: int = 0) -> tf.Tensor:
  """Moves each row of `x`, `[R, L]`, to the right by one, with `start_token` at its start."""
  return tf.pad(x[:, :-1], [[0, 0], [1, 0]], constant_values=start_token)
