"""Batches converted as a whole, against SeqIO's converter applied to each example."""

import numpy as np
import pytest
import seqio
import tensorflow as tf

from t5x import utils
from t5x._data.batches import convert_and_batch, quick_converter
from t5x._data.packing import reorder_for_packing

LENGTHS = {"inputs": 12, "targets": 5}


class _Own(seqio.EncDecFeatureConverter):
  """A custom converter: target tokens divisible by 3 count double."""

  def _convert_example(self, features):
    converted = super()._convert_example(features)
    weights = converted["decoder_loss_weights"]
    weights *= 1 + tf.cast(converted["decoder_target_tokens"] % 3 == 0, tf.int32)
    return {**converted, "decoder_loss_weights": weights}


def _examples(longest):
  """21 examples, some empty, with a feature that no model reads."""
  rng = np.random.default_rng(0)
  for i in range(21):
    row = {n: rng.integers(1, 99, rng.integers(0, k)).astype(np.int32) for n, k in longest.items()}
    yield {**row, "inputs_pretokenized": f"text {i}"}


def _dataset(longest):
  tokens = tf.TensorSpec([None], tf.int32)
  spec = {"inputs": tokens, "targets": tokens, "inputs_pretokenized": tf.TensorSpec([], tf.string)}
  return tf.data.Dataset.from_generator(lambda: _examples(longest), output_signature=spec)


@pytest.mark.parametrize(
  "converter",
  [
    seqio.EncDecFeatureConverter(pack=False),
    seqio.EncDecFeatureConverter(pack=False, bos_id=7),
    seqio.EncDecFeatureConverter(pack=True),
    seqio.EncDecFeatureConverter(pack=True, bos_id=7),
    _Own(pack=False),
  ],
  ids=["plain", "bos", "packed", "packed-bos", "own"],
)
@pytest.mark.parametrize("drop", [pytest.param(False, marks=pytest.mark.long), True])
def test_equal(converter, drop):
  ds = _dataset({"inputs": 13, "targets": 6})
  found = convert_and_batch(ds, converter, LENGTHS, 4, drop_remainder=drop, trimmed=True)
  if converter.pack:
    ds = reorder_for_packing(ds, converter, LENGTHS)
  wanted = converter(ds, LENGTHS).batch(4, drop_remainder=drop)
  found, wanted = list(found.as_numpy_iterator()), list(wanted.as_numpy_iterator())
  assert len(found) == len(wanted)
  for batch, right in zip(found, wanted, strict=True):
    assert batch.keys() == right.keys()
    for name, array in right.items():
      assert batch[name].dtype == array.dtype
      np.testing.assert_array_equal(batch[name], array, err_msg=name)


@pytest.mark.parametrize("bos_id", [0, 7])
def test_rows_of_the_quick_converter_are_seqios(bos_id):
  """As many as the examples, which is known before reading where SeqIO knows it."""
  converter = seqio.EncDecFeatureConverter(pack=False, bos_id=bos_id)
  ds = _dataset(LENGTHS).apply(tf.data.experimental.assert_cardinality(21))
  found, wanted = quick_converter(converter)(ds, LENGTHS), converter(ds, LENGTHS)
  assert found.element_spec == wanted.element_spec
  assert found.cardinality() == wanted.cardinality() == 21
  for row, right in zip(found.as_numpy_iterator(), wanted.as_numpy_iterator(), strict=True):
    for name, array in right.items():
      np.testing.assert_array_equal(row[name], array, err_msg=name)
  own = _Own(pack=False)
  assert quick_converter(own) is own
  too_long = quick_converter(converter)(_dataset({"inputs": 40, "targets": 6}), LENGTHS)
  with pytest.raises(tf.errors.OpError):
    list(too_long)


def test_the_shapes_are_known_before_reading():
  """Programs are compiled for these shapes."""
  converter = seqio.EncDecFeatureConverter(pack=False)
  ds = convert_and_batch(
    _dataset(LENGTHS), converter, LENGTHS, 4, drop_remainder=True, trimmed=True
  )
  shapes = {name: spec.shape.as_list() for name, spec in ds.element_spec.items()}
  assert shapes.pop("encoder_input_tokens") == [4, 12]
  assert list(shapes.values()) == [[4, 5]] * 3


def test_examples_that_are_not_trimmed_are_checked():
  """With `trim_output_features=False`, overlong examples raise SeqIO's error; they are not cut."""
  converter = seqio.EncDecFeatureConverter(pack=False)
  ds = _dataset({"inputs": 40, "targets": 6})
  ds = convert_and_batch(ds, converter, LENGTHS, 4, drop_remainder=True, trimmed=False)
  with pytest.raises(tf.errors.InvalidArgumentError):
    list(ds)


def test_what_is_missing_is_said():
  ds = tf.data.Dataset.from_tensor_slices({"inputs": tf.zeros([3, 4], tf.int32)})
  converter = seqio.EncDecFeatureConverter(pack=False)
  with pytest.raises(ValueError, match="targets"):
    convert_and_batch(ds, converter, LENGTHS, 4, drop_remainder=True, trimmed=True)


def test_the_end_of_batches_can_be_reached_twice():
  batches = utils.DevicePrefetcher([{"x": np.ones(2)}])
  assert len(list(batches)) == 1
  assert list(batches) == []


def test_an_error_of_the_data_is_raised_again():
  batches = utils.DevicePrefetcher(1 / n for n in (0,))
  for _ in range(2):
    with pytest.raises(ZeroDivisionError):
      next(batches)
