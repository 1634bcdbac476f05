"""Robustness metrics, tested on simulated trackers whose robustness is known."""

import numpy as np
import pytest
import simulated_trackers
from places import DOCS
from simulated_trackers import rank_correlation, rank_correlations, simulate

from sgdx_t5x.corpus.schema import Service, Slot
from sgdx_t5x.metrics import frame_agreement

PAGE = DOCS / "metrics/why-schema-sensitivity-misleads.md"


@pytest.mark.parametrize("seed", [0, 1])
def test_retained_follows_the_known_robustness_and_sensitivity_does_not(seed):
  ranks = rank_correlations(seed)
  assert ranks["retained"] >= 0.95
  assert ranks["lost"] == pytest.approx(-ranks["retained"])
  assert abs(ranks["ss_jga"]) <= 0.5
  assert abs(ranks["jga_orig"]) <= 0.1  # accuracy and robustness are independent


def test_sensitivity_falls_when_a_tracker_gets_worse():
  high, middle, low = (simulate(0.9, robustness) for robustness in (0.9, 0.5, 0.1))
  assert low["ss_jga"] < 0.5 * high["ss_jga"]
  assert high["retained"] > 2 * middle["retained"] > 4 * low["retained"]
  good, bad = simulate(0.95, 0.8), simulate(0.5, 0.8)
  assert bad["jga_v1_5"] < 0.5 * good["jga_v1_5"]
  assert bad["ss_jga"] < 0.5 * good["ss_jga"]


def test_a_simulated_tracker_by_hand():
  """Variants lose nothing or everything: extremes that are not random; then one in between."""
  best = simulate(1.0, 1.0, num_frames=50)
  assert (best["jga_orig"], best["retained"], best["ss_jga"], best["agreement"]) == (1, 1, 0, 1)
  lost = simulate(1.0, 0.0, num_frames=50)
  assert (lost["jga_orig"], lost["retained"], lost["ss_jga"], lost["agreement"]) == (1, 0, 0, 1)
  # A frame of n slots is retained with probability r^n: the mean of r, ..., r^5.
  found = simulate(1.0, 0.8, num_frames=20_000)["retained"]
  assert found == pytest.approx(np.mean(0.8 ** np.arange(1, 6)), abs=0.01)


def test_its_agreement_is_that_of_states():
  service = Service("Bank_1", "", tuple(Slot(name, "", False) for name in "ab"), ())
  read = np.array([[[1, 1]], [[1, 1]], [[1, 0]], [[0, 0]], [[0, 0]]], dtype=bool)
  states = [{name: (name,) for name, known in zip("ab", x[0], strict=True) if known} for x in read]
  assert simulated_trackers._agreement(read) == frame_agreement(service, states) == 2 / 10


def test_rank_correlation_by_hand():
  assert rank_correlation([1, 2, 3], [10, 30, 40]) == pytest.approx(1)
  assert rank_correlation([1, 2, 3], [5, 4, 3]) == pytest.approx(-1)
  # Ranks 1.5, 1.5, 3 and 1, 2, 3: covariance 1.5 of deviations, sums of squares 1.5 and 2.
  assert rank_correlation([0, 0, 1], [1, 2, 3]) == pytest.approx(1.5 / np.sqrt(1.5 * 2))


def test_the_page_shows_what_the_simulation_prints():
  page = PAGE.read_text()
  for table in simulated_trackers.tables():
    assert table in page
