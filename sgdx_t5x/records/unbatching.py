"""Unbatches examples in tf.data, each at the cost of a slice."""

import tensorflow as tf


def unbatched(batches: tf.data.Dataset) -> tf.data.Dataset:
  """Returns `batches.unbatch()`, with rows of ragged tensors as tensors.

  Args:
    batches: of {name: tensor [rows, ...] or ragged tensor [rows, any]}.

  No function is called per example: `unbatch` itself makes a variant tensor of each ragged row,
  which a `map` has to decode, in another thread, and that takes three times as long.
  """
  spec = batches.element_spec
  ragged = [name for name, feature in spec.items() if isinstance(feature, tf.RaggedTensorSpec)]

  @tf.autograph.experimental.do_not_convert  # converting takes longer than tracing
  def rows(batch):
    dense = {name: batch[name] for name in spec if name not in ragged}
    return tf.data.Dataset.zip(
      (tf.data.Dataset.from_tensor_slices(dense), *(_rows(batch[name]) for name in ragged))
    )

  @tf.autograph.experimental.do_not_convert
  def named(dense, *rows):
    return {**dense, **dict(zip(ragged, rows, strict=True))}

  @tf.autograph.experimental.do_not_convert
  def has_rows(batch):
    feature = batch[next(iter(spec))]
    return (feature.nrows() if isinstance(feature, tf.RaggedTensor) else tf.shape(feature)[0]) > 0

  # TensorFlow's `rebatch` kills the process if given no lengths at all.
  return batches.filter(has_rows).flat_map(rows).map(named)


def _rows(ragged: tf.RaggedTensor) -> tf.data.Dataset:
  """Returns the rows of a ragged tensor, each a tensor; repeated forever."""
  one_more = tf.zeros([1], ragged.dtype)  # without it, empty rows at the end would be lost
  values = tf.concat([ragged.flat_values, one_more], axis=0)
  return tf.data.Dataset.from_tensors(values).rebatch(ragged.row_lengths())
