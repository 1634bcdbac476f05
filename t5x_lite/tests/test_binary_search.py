"""Binary search over bits, and the masks made with it, against sorting."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t5x import binary_search

INT32, FLOAT32 = np.iinfo(np.int32), np.finfo(np.float32)


@pytest.mark.parametrize(
  ("search", "numbers"),
  [
    (binary_search.int32_bsearch, [INT32.min, -17, -1, 0, 1, 2**20 + 3, INT32.max]),
    (binary_search.float32_bsearch, [FLOAT32.min, -0.1, 0.0, 1e-30, 3.25, 1e30, FLOAT32.max]),
  ],
)
def test_the_largest_number_that_is_not_above_is_found(search, numbers):
  dtype = jnp.int32 if search is binary_search.int32_bsearch else jnp.float32
  limits = jnp.asarray(numbers, dtype)
  found = jax.jit(lambda: search(limits.shape, lambda x: x > limits))()
  assert (found == limits).all()  # XLA treats subnormal numbers as 0
  info = INT32 if dtype == jnp.int32 else FLOAT32
  always, never = (search((2, 3), lambda x, v=v: jnp.full(x.shape, v)) for v in (True, False))
  assert (always == info.min).all()
  assert (never == info.max).all()
  assert always.shape == (2, 3)


def test_predicates_see_finite_numbers_only():
  def predicate(x):
    return jnp.where(jnp.isfinite(x), x > 2.0, jnp.isnan(x) & False)

  assert binary_search.float32_bsearch((), predicate) == 2.0


@pytest.mark.parametrize("k", [1, 2, 5])
def test_topk_keeps_what_sorting_keeps(k):
  x = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4, 9)), jnp.float32)
  kth = jnp.sort(x, axis=-1)[..., -k, None]
  np.testing.assert_array_equal(binary_search.topk_mask(x, k, -7.0), jnp.where(x < kth, -7.0, x))


def test_ties_stay():
  np.testing.assert_array_equal(
    binary_search.topk_mask(jnp.asarray([5.0, 2.0, 2.0, 1.0]), 2, -1.0), [5, 2, 2, -1]
  )
  equal = jnp.zeros(4)
  np.testing.assert_array_equal(binary_search.topp_mask(equal, 0.3, -1.0), equal)


@pytest.mark.parametrize(("p", "kept"), [(0.1, 1), (0.49, 1), (0.55, 2), (0.76, 3), (0.99, 4)])
def test_topp_keeps_the_fewest_tokens_that_hold_p(p, kept):
  logits = jnp.log(jnp.asarray([[0.125, 0.5, 0.125 / 2, 0.25, 0.125 / 2]]))
  got = binary_search.topp_mask(logits, p, -jnp.inf)
  order = np.argsort(-np.asarray(logits[0]), kind="stable")
  expected = np.full((1, 5), -np.inf)
  number = {1: 1, 2: 2, 3: 3, 4: 5}[kept]  # the last two are equally probable
  expected[0, order[:number]] = np.asarray(logits)[0, order[:number]]
  np.testing.assert_array_equal(got, expected.astype(np.float32))
