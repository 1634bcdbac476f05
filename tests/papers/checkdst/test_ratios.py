"""Ratios of counts: by hand, and with the same intervals as means over frames."""

import math

import numpy as np
import pytest

from sgdx_t5x import metrics
from sgdx_t5x.papers.checkdst.ratios import (
  Counts,
  Ratio,
  frames_with,
  ratio_intervals,
  ratios,
  share,
)

STATISTICS = {
  "recall": share("right", "gold"),
  "f1": Ratio({"right": 2}, {"gold": 1, "predicted": 1}),
  "drop": Ratio({"right": 1, "gold": -1}, {"gold": 1}),
  "never": share("right", "none"),
}


def counts(dialogues, **columns):
  values = np.array(list(columns.values()), dtype=float)
  return Counts(tuple(columns), values, np.array(list(dialogues), dtype=str))


def test_by_hand():
  found = counts("aab", right=[1, 0, 2], gold=[2, 1, 2], predicted=[1, 0, 3], none=[0, 0, 0])
  numbers = ratios(STATISTICS, found)
  assert math.isnan(numbers.pop("never"))
  assert numbers == {"recall": 3 / 5, "f1": 6 / 9, "drop": -2 / 5}
  assert ratios(STATISTICS, found.take(np.array([True, False, False])))["recall"] == 1 / 2


def test_frames_that_count():
  found = counts("aab", right=[1, 0, 2], gold=[2, 0, 0], predicted=[1, 0, 3], none=[0, 0, 0])
  assert {key: x.tolist() for key, x in frames_with(STATISTICS, found).items()} == {
    "recall": [True, False, False],
    "f1": [True, False, True],
    "drop": [True, False, False],
    "never": [False, False, False],
  }


def test_a_mean_of_frames_has_the_interval_that_it_always_had():
  rng = np.random.default_rng(0)
  dialogues = np.array([f"d{i // 3}" for i in range(60)])
  values = np.where(rng.random(60) < 0.2, np.nan, rng.random(60))
  samples = metrics.BootstrapSamples.draw(dialogues, 200)
  found = counts(dialogues, x=np.nan_to_num(values), n=~np.isnan(values))
  ends = ratio_intervals({"mean": share("x", "n")}, found, samples)["mean"]
  assert ends == pytest.approx(metrics.mean_interval(values, dialogues, samples), abs=1e-12)


def test_dialogues_of_a_part_are_weighed_as_they_were_drawn():
  dialogues = np.array(list("abcd"))
  samples = metrics.BootstrapSamples.draw(dialogues, 100)
  values = np.array([1.0, 0, 1, 0])
  part = counts(list("bcd"), x=values[1:], n=[1, 1, 1])
  ends = ratio_intervals({"mean": share("x", "n")}, part, samples)["mean"]
  assert ends == pytest.approx(metrics.mean_interval(values[1:], dialogues[1:], samples))


def test_one_dialogue_has_no_interval():
  samples = metrics.BootstrapSamples.draw(np.array(["a", "b"]), 100)
  found = counts("aab", x=[1, 0, 0], n=[1, 1, 0])
  assert all(map(math.isnan, ratio_intervals({"m": share("x", "n")}, found, samples)["m"]))
