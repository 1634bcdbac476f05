"""Learning rates against Google's T5X (golden set A)."""

import jax
import numpy as np
import pytest

from t5x import schedules
from t5x.errors import T5XError


def test_all_recorded_schedules(golden_set):
  for case in golden_set.json("lr.json"):
    schedule = schedules.create_learning_rate_scheduler(**case["kwargs"])
    # Step by step and not jitted, as recorded: late in a run a cosine turns one rounding of the
    # step into a relative error of 1e-2.
    rates = [schedule(np.int32(step)) for step in case["steps"]]
    np.testing.assert_allclose(rates, case["values"], rtol=1e-6, err_msg=str(case["kwargs"]))


@pytest.mark.parametrize("period", [1_700, 1_900, 6_300])
def test_decay_every_is_exact_in_a_jitted_step(period):
  """By hand: a compiler may multiply by 1 / period, which rounds multiples of these down."""
  schedule = schedules.create_learning_rate_scheduler(
    "decay_every", decay_factor=0.5, steps_per_decay=period
  )
  steps = [period - 1, period, 2 * period, 4 * period]
  assert [float(jax.jit(schedule)(step)) for step in steps] == [1.0, 0.5, 0.25, 0.0625]


def test_unknown_factor_is_named():
  with pytest.raises(T5XError, match="'linear_warm'"):
    schedules.create_learning_rate_scheduler("constant * linear_warm")
