"""Rows of scores, and the columns in which tables show them."""

import math

import numpy as np
import pytest

from sgdx_t5x.metrics import summarise
from sgdx_t5x.metrics.bootstrap import BootstrapSamples, summary_intervals
from sgdx_t5x.scoring.columns import JGA, Column, columns
from sgdx_t5x.scoring.rows import Row, Rows

DATA = {"jga_orig": 0.726, "jga_v1": None, "num_frames": 10, "num_dialogues": 2}
ENDS = {"jga_orig": [0.7, 0.75], "jga_v1": None}


def all_columns(metric):
  fields = vars(metric).values()
  return [x for field in fields for x in (field if isinstance(field, tuple) else (field,))]


@pytest.mark.parametrize("variants", [("original",), ("original", "mine"), ("v1", "mine")])
@pytest.mark.parametrize("name", ["jga", "average_goal_accuracy"])
def test_every_number_of_a_row_has_a_column_and_an_interval(name, variants):
  """Fails if a new frame statistic has no heading yet.

  Agreement is not computed from scores: `scoring.score` adds it to the row of JGA.
  """
  scores, ids = dict.fromkeys(variants, np.ones(2)), np.array(["a", "b"])
  row = summarise(scores, name=name)
  of_metric = all_columns(columns(name, variants))
  keys = {x.key for x in of_metric if name == "jga" or "cjga" not in x.key}
  keys -= {"agreement"}
  assert keys == set(row)
  assert set(summary_intervals(scores, ids, BootstrapSamples.draw(ids, 2), name=name)) == keys


def test_headings_name_the_metric_where_nothing_else_does():
  assert [x.heading for x in JGA.per_variant] == ["JGA_orig", "v1", "v2", "v3", "v4", "v5"]
  assert [x.heading for x in JGA.summary] == ["JGA_v1-5", "Diff_rel", "SS_JGA"]
  other = columns("active_intent_accuracy")
  assert other.original == Column(
    "active_intent_accuracy_orig", "orig", "original", "mean_orig", "original"
  )
  assert (other.mean.full, JGA.mean.full, JGA.mean.plain) == ("mean_v1-5", "JGA_v1-5", "v1-5")
  assert (other.sensitivity.heading, JGA.sensitivity.plain) == ("SS", "SS")


def test_a_row_is_read_and_written_as_it_was():
  for data in (DATA, {**DATA, "ci95": ENDS}):
    assert Row.from_json(data).to_json() == data
  groups = dict.fromkeys(("all", "seen", "unseen"), DATA)
  for data in (groups, {**groups, "domains": {"Banks": DATA}, "services": {"Banks_1": DATA}}):
    assert Rows.from_json(data).to_json() == data


def test_numbers_of_a_row():
  row = Row.from_json({**DATA, "ci95": ENDS})
  assert (row.num_frames, row.num_dialogues) == (10, 2)
  assert [row.has(key) for key in ("jga_orig", "jga_v1", "ss_jga")] == [True, False, False]
  assert row.percent("jga_orig") == pytest.approx(72.6)
  assert math.isnan(row.percent("jga_v1"))
  assert row.interval("jga_orig") == pytest.approx((70, 75))
  assert row.interval("jga_v1") is None
  assert row.cell("jga_orig") == (0.726, "72.6", None)
  assert row.cell_with_interval("jga_orig") == (0.726, "72.6 [70.0, 75.0]", (0.7, 0.75))
  assert str(row.cell_with_interval("jga_v1")) == "-"


@pytest.mark.parametrize(
  "change",
  [
    {"jga_orig": math.inf},
    {"jga_orig": "0.5"},
    {"ci95": {"jga_orig": [None, 1]}},
    {"ci95": {"jga_orig": 1}},
    {"num_frames": math.nan},
  ],
)
def test_what_is_no_number_is_refused(change):
  with pytest.raises((TypeError, ValueError)):
    Row.from_json({**DATA, **change})
