"""Unbatching keeps the order of examples, whatever the batches hold."""

import tensorflow as tf

from sgdx_t5x.records.unbatching import unbatched

BATCHES = ([2, 0, 1], [], [0, 0], [3])


def test_rows_are_those_of_the_batches():
  """A batch without examples, which sampling can produce, once crashed the process."""

  def batches():
    for sizes in BATCHES:
      values, lengths = tf.range(sum(sizes)), tf.constant(sizes, tf.int64)
      yield {
        "ragged": tf.RaggedTensor.from_row_lengths(values, lengths),
        "number": tf.range(10, 10 + len(sizes)),
      }

  kinds = {"number": tf.TensorSpec([None], tf.int32)}
  kinds["ragged"] = tf.RaggedTensorSpec([None, None], tf.int32)
  found = unbatched(tf.data.Dataset.from_generator(batches, output_signature=kinds))
  rows = [(x["ragged"].tolist(), x["number"].item()) for x in found.as_numpy_iterator()]
  assert rows == [([0, 1], 10), ([], 11), ([2], 12), ([], 10), ([], 11), ([0, 1, 2], 10)]
