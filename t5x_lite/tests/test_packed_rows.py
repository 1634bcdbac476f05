"""Packed rows: none is lost, none is cut, and there is little padding."""

import jax
import numpy as np
import pytest
from tiny_model import tiny_model

from t5x import decoding
from t5x._infer import packed_rows
from t5x._infer.rows import Rows

FEATURE = "encoder_input_tokens"


@pytest.mark.parametrize(("count", "capacity"), [(1, 8), (7, 8), (300, 40), (1000, 512)])
def test_best_fit(count, capacity):
  sizes = np.random.default_rng(count).integers(0, capacity + 1, count)
  bins = packed_rows.best_fit(sizes, capacity)
  # Nothing is beside an empty row: it would be encoded from what it is beside.
  assert all(len(items) == 1 for items in bins if not sizes[items].all())
  assert sorted(item for items in bins for item in items) == list(range(count))
  filled = [sum(sizes[items]) for items in bins if sizes[items].all()]
  assert max(filled) <= capacity
  # Johnson 1973: at most 11/9 of the minimum number of bins, plus 4.
  assert len(filled) <= 11 / 9 * -(-sum(sizes) // capacity) + 4
  if count == 1000:
    assert sum(filled) > 0.97 * capacity * len(filled)


def _rows(lengths, full):
  rng = np.random.default_rng(0)
  features = [{FEATURE: rng.integers(1, 100, n).astype(np.int32)} for n in lengths]
  return Rows(features=features, full_shapes={FEATURE: (full,)}, dtypes={FEATURE: np.int32})


@pytest.mark.parametrize("partial", [True, False])
@pytest.mark.parametrize("full", [300, 700])
def test_pack(full, partial):
  lengths = np.random.default_rng(1).integers(1, full + 1, 200)
  rows = _rows(lengths, full)
  packed, left = packed_rows.pack(rows, range(200), FEATURE, partial)
  numbers = [n for x in packed for n in x.numbers]
  assert sorted(numbers + left) == list(range(200))
  assert bool(left) != partial
  assert {x.tokens.shape[1] for x in packed} == ({300} if full == 300 else {512, 700})
  for x in packed:
    assert x.tokens.size <= 8192
    tokens, segments = x.tokens.reshape(-1), x.segment_ids.reshape(-1)
    assert np.count_nonzero(segments) == sum(x.sizes)
    for number, size, start in zip(x.numbers, x.sizes, x.starts, strict=True):
      np.testing.assert_array_equal(tokens[start : start + size], rows.features[number][FEATURE])
      row = x.segment_ids[start // x.tokens.shape[1]]
      assert np.count_nonzero(row == segments[start]) == size  # no other row has its id


def test_an_empty_dataset_has_no_calls():
  assert packed_rows.pack(Rows(), [], FEATURE, True) == ([], [])


def test_few_rows_make_a_small_call():
  packed, left = packed_rows.pack(_rows([300, 200, 100], 512), [0, 1, 2], FEATURE, True)
  assert [x.tokens.shape for x in packed] == [(2, 512)]
  assert not left


def test_the_models_that_gain():
  """T5 Small (Raffel et al. 2020) gains, the network of the quick start does not."""
  small = {"emb_dim": 512, "num_heads": 8, "head_dim": 64, "mlp_dim": 2048}
  sample = {"emb_dim": 64, "num_heads": 4, "head_dim": 32, "mlp_dim": 128}
  assert tiny_model(decoding.beam_search, **small).gains_by_packing(512)
  assert not tiny_model(decoding.beam_search, **sample).gains_by_packing(224)


def test_encoded_side_by_side():
  model = tiny_model(decoding.beam_search)
  shapes = {FEATURE: (2, 16), "decoder_input_tokens": (2, 4)}
  params = jax.jit(lambda key: model.get_initial_variables(key, shapes)["params"])(
    jax.random.key(0)
  )
  rows = _rows([5, 9, 3, 16], 16)
  ((packed,), _) = packed_rows.pack(rows, range(4), FEATURE, True)
  assert packed.tokens.shape == (4, 16)  # three are needed
  encoded = jax.jit(model.encode_packed)(params, packed.tokens, packed.segment_ids)
  encoded = encoded.reshape(-1, 16)
  encode = jax.jit(model._encode)
  for number, size, start in zip(packed.numbers, packed.sizes, packed.starts, strict=True):
    padded = np.zeros((1, 16), np.int32)
    padded[0, :size] = rows.features[number][FEATURE]
    alone = encode(params, padded)[0, :size]
    np.testing.assert_allclose(encoded[start : start + size], alone, atol=1e-5)
