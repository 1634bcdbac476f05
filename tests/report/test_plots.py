"""Plots of a report: what is drawn equals the numbers; names, files and inline SVG are safe."""

import copy
import dataclasses
import re
import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from commands import python_code

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics import FrameScores
from sgdx_t5x.report import plot_style, plots
from sgdx_t5x.report.runs import Run
from sgdx_t5x.scoring.rows import Row

matplotlib = pytest.importorskip("matplotlib", reason="plots need the extra `report`")

ODD = "$x^2$ 100%_<b>&\"'</b> ]]>"
KEYS = ("jga_orig", "jga_v1", "jga_v2", "jga_v3", "jga_v4", "jga_v5", "jga_v1_5", "ss_jga")
NOTHING = dict.fromkeys(KEYS) | {"num_frames": 0, "ci95": {}}


def row(*values, num_frames=1200):
  """A row of report["sgdx"]; an interval is from 3 points below a number to 2 above it."""
  numbers = dict(zip(KEYS, values, strict=True))
  ends = {key: [x - 0.03, x + 0.02] for key, x in numbers.items() if x is not None}
  return numbers | {"num_frames": num_frames, "ci95": ends}


ALL = row(0.70, 0.60, 0.55, 0.50, 0.45, 0.40, 0.50, 0.30)
SEEN = row(0.80, 0.70, 0.65, 0.60, 0.55, 0.50, 0.60, 0.25, num_frames=800)
UNSEEN = row(0.50, 0.40, 0.35, 0.30, 0.25, 0.20, 0.30, 0.40, num_frames=400)


def make_run(name="base", table=True, **changes):
  services = {
    "Boats_1": row(*[None] * 6, 0.6, 0.2),
    "Boats_2": row(*[None] * 6, 0.3, 0.5),
    "Cars_1": NOTHING,
  }
  sgdx = {"all": ALL, "seen": SEEN, "unseen": UNSEEN, "services": services} | changes
  floor = {group: {"jga_orig": 0.05} for group in ("all", "seen", "unseen")}
  ids, turns = np.array(["a", "b", "c"]), np.zeros(3, np.int32)
  names, is_seen = np.array(["Boats_1", "Boats_2", "Boats_1"]), np.array([True, False, True])
  scores = FrameScores(ids, ids, turns, names, is_seen, {})
  table = SimpleNamespace(frames=scores) if table else None
  variants = dict.fromkeys(("original", "v1", "v2", "v3", "v4", "v5"))
  return Run(name, {"variants": variants, "sgdx": sgdx, "predict_nothing": floor}, table)


def at_steps(run, *steps):
  return dataclasses.replace(run, steps=tuple((step, Row.from_json(x)) for step, x in steps))


def texts(svg):
  return ["".join(x.itertext()) for x in ElementTree.fromstring(svg).iter() if x.tag[-4:] == "text"]


def intervals(axes):
  """(x, low, high) of all vertical lines in the axes' collections."""
  segments = [s for lines in axes.collections for s in lines.get_segments()]
  return sorted((s[0][0], s[0][1], s[1][1]) for s in segments if s[0][0] == s[1][0])


def titles(figure):
  return [axes.get_title(loc="left") for axes in figure.axes]


def names_in_legend(figure):
  return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


# --- JGA -----------------------------------------------------------------------------------


def test_jga_by_variant_draws_the_reports_numbers_with_intervals():
  figure = plots.jga_by_variant([make_run()])

  assert titles(figure) == ["all, n = 1,200", "seen, n = 800", "unseen, n = 400"]
  unseen = figure.axes[2]
  np.testing.assert_allclose(unseen.lines[0].get_ydata(), [50, 40, 35, 30, 25, 20])
  np.testing.assert_allclose(intervals(unseen)[1], (1, 37, 42))  # v1: 40, 3 below and 2 above
  assert len(intervals(unseen)) == 6
  np.testing.assert_allclose(unseen.lines[1].get_ydata(), [5, 5])
  assert names_in_legend(figure) == ["base", "predict nothing"]
  assert "base JGA_orig 70.0%, v1 60.0%" in plot_style.describe(figure)


def test_a_group_without_frames_and_a_version_without_predictions_are_left_out():
  values = (None, None, 0.4, None, None, None, None, None)
  run = make_run(all=row(*values), seen=row(*values), unseen=row(*values, num_frames=0))
  del run.report["sgdx"]["all"]["ci95"]  # --bootstrap-samples 0
  figure = plots.jga_by_variant([run])
  assert [title.split(",")[0] for title in titles(figure)] == ["all", "seen"]
  assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["v2"]
  assert intervals(figure.axes[0]) == []
  assert plots.jga_by_augmentation([run]) is None  # no v1-5


def test_a_run_without_numbers_is_left_out_and_the_others_keep_their_look():
  runs = [make_run("empty", all=NOTHING, seen=NOTHING, unseen=NOTHING, services={}), make_run()]
  figure = plots.jga_by_variant(runs)
  alone = plots.jga_by_variant(runs[1:])
  assert names_in_legend(figure) == ["base", "predict nothing"]
  assert "empty" not in plot_style.describe(figure)
  assert figure.axes[0].lines[0].get_color() != alone.axes[0].lines[0].get_color()


def test_jga_by_augmentation_draws_both_scores_and_the_variants_of_each_run():
  other = make_run("backtrans", all=row(0.72, 0.70, 0.69, 0.68, 0.67, 0.66, 0.68, 0.10))
  figure = plots.jga_by_augmentation([make_run(), other])
  drawn = [line.get_ydata() for line in figure.axes[0].lines]
  expected = [[70], [50], [60, 55, 50, 45, 40], [72], [68], [70, 69, 68, 67, 66]]
  for found, values in zip(drawn, expected, strict=True):
    np.testing.assert_allclose(found, values)
  ends = [(low, high) for _, low, high in intervals(figure.axes[0])]
  np.testing.assert_allclose(ends, [(67, 72), (47, 52), (69, 74), (65, 70)])
  labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
  assert labels == ["base", "backtrans"]


# --- services, failures, steps -------------------------------------------------------------


def test_services_are_placed_named_and_marked_seen_or_unseen():
  figure = plots.sensitivity_by_service([make_run(), make_run("blind", table=False)])
  marked, blind = figure.axes
  found = {tuple(x): line for line in marked.lines for x in np.round(line.get_xydata(), 6).tolist()}
  assert set(found) == {(20, 60), (50, 30)}  # SS_JGA, JGA_v1-5
  assert found[20, 60].get_fillstyle() == "full"
  assert found[50, 30].get_fillstyle() == "none"
  assert sorted(text.get_text() for text in marked.texts) == ["Boats_1", "Boats_2"]
  assert {line.get_fillstyle() for line in blind.lines if len(line.get_xdata())} == {"full"}
  assert names_in_legend(figure) == ["seen", "unseen"]
  np.testing.assert_allclose(intervals(marked), [(20, 57, 62), (50, 27, 32)])
  assert names_in_legend(plots.sensitivity_by_service([make_run(table=False)])) == []


def test_names_of_services_overlap_nothing_and_are_left_out_where_there_is_no_room():
  random = np.random.default_rng(0)
  crowd = {f"Service_{i}": row(*[None] * 6, *random.uniform(0.2, 0.8, 2)) for i in range(40)}
  crowd["S" * 40] = row(*[None] * 6, 0.9, 0.9)
  crowd["T" * 200] = row(*[None] * 6, 0.1, 0.1)
  figure = plots.sensitivity_by_service([make_run(services=crowd)])
  figure.draw_without_rendering()  # places the annotations
  axes, renderer = figure.axes[0], figure.canvas.get_renderer()
  # The box of the text alone: an annotation's box would include its line.
  boxes = {x.get_text(): matplotlib.text.Text.get_window_extent(x, renderer) for x in axes.texts}
  places = axes.transData.transform(
    [[100 * x["ss_jga"], 100 * x["jga_v1_5"]] for x in crowd.values()]
  )
  assert 20 < len(boxes) < 42
  assert "S" * 40 in boxes
  assert "T" * 200 not in boxes
  for name, box in boxes.items():
    assert not any(box.overlaps(other) for key, other in boxes.items() if key != name)
    assert not any(box.contains(*place) for place in places)
  assert not axes.collections  # more than 25 services: no intervals


def test_failures_are_per_100_frames_and_shares_of_those_with_variants():
  counts = {
    "base": {
      "original": {"missed": 50, "spurious": 30},
      "v1": {"missed": 120, "spurious": 30},
      "v2": {"missed": 60, "spurious": 90},
    },
    "none failed": {},
    "no frames": {"v1": {"missed": 1}},
  }
  figure = plots.error_kinds(counts, {"base": 200, "none failed": 200, "no frames": 0})
  (axes,) = figure.axes
  missed, spurious = axes.lines
  np.testing.assert_allclose(missed.get_ydata(), [25, 60, 30])
  np.testing.assert_allclose(spurious.get_ydata(), [15, 15, 45])
  labels = [text.get_text() for text in axes.get_legend().get_texts()]
  assert labels == ["missed 60%", "spurious 40%"]  # 180 and 120 of 300
  assert axes.get_legend().get_title().get_text() == "% of errors, v1+v2"
  assert plots.error_kinds({"base": {"v1": {"missed": 0}}}, {"base": 200}) is None


def test_scores_by_step_mark_the_best_checkpoints_in_both_panels():
  later = row(0.75, *[None] * 5, 0.45, 0.35)
  run = at_steps(make_run(), (1000, ALL), (2000, later))
  figure = plots.by_step([run, make_run("final only")])
  jga, sensitivity = figure.axes
  by_look = [(line.get_xdata(), line.get_ydata(), line.get_markersize()) for line in jga.lines]
  curves = [(list(x), list(y)) for x, y, size in by_look if size == 4]
  np.testing.assert_allclose(curves, [([1000, 2000], [70, 75]), ([1000, 2000], [50, 45])])
  best = [(*x, *y) for x, y, size in by_look if size > 4]
  np.testing.assert_allclose(best, [(2000, 75), (1000, 50)])  # by JGA_orig, by JGA_v1-5
  rings = [(*line.get_xdata(), *line.get_ydata()) for line in sensitivity.lines[1:]]
  np.testing.assert_allclose(rings, [(2000, 35), (1000, 30)])
  np.testing.assert_allclose(intervals(sensitivity), [(1000, 27, 32), (2000, 32, 37)])
  assert "final only" not in names_in_legend(figure)
  assert plots.by_step([at_steps(run, (1000, ALL))]) is None


def test_nothing_to_draw_is_none():
  empty = make_run(all=NOTHING, seen=NOTHING, unseen=NOTHING, services={"Cars_1": NOTHING})
  empty = at_steps(empty, (1, NOTHING), (2, NOTHING))
  for draw in (
    plots.jga_by_variant,
    plots.jga_by_augmentation,
    plots.sensitivity_by_service,
    plots.by_step,
  ):
    assert draw([]) is None
    assert draw([empty]) is None
  assert plots.error_kinds({}, {}) is None


# --- names, files, inline SVG --------------------------------------------------------------


def test_names_are_literal_and_long_or_unprintable_ones_do_no_harm(tmp_path):
  services = {ODD: row(*[None] * 6, 0.6, 0.2)}
  runs = [make_run(ODD, services=services), make_run("n" * 60), make_run("字\x00\udc80\u202e\nx")]
  runs = [at_steps(run, (1, ALL), (2, ALL)) for run in runs]
  counts = {run.name: {"v1": {"missed": 1}} for run in runs}
  drawn = {
    "variant": plots.jga_by_variant(runs),
    "augmentation": plots.jga_by_augmentation(runs[:1]),
    "service": plots.sensitivity_by_service(runs[:1]),
    "failures": plots.error_kinds(counts, {run.name: 10 for run in runs}),
    "step": plots.by_step(runs),
  }
  for figure in drawn.values():
    svg = plot_style.inline_svg(figure)
    assert ODD in " ".join(texts(svg))
    assert "<b>" not in svg
    assert ODD in plot_style.describe(figure)
  assert "字\ufffd\ufffd\ufffd x" in texts(plot_style.inline_svg(drawn["variant"]))
  plot_style.save(drawn["variant"], tmp_path, "odd")


def test_files_are_the_same_byte_for_byte_whatever_the_users_settings(tmp_path):
  for name, settings in (("a", {}), ("b", {"font.size": 30.0, "axes.facecolor": "red"})):
    (tmp_path / name).mkdir()
    with matplotlib.rc_context(settings):
      before = dict(matplotlib.rcParams)
      plot_style.save(plots.jga_by_variant([make_run()]), tmp_path / name, "plot")
      assert dict(matplotlib.rcParams) == before
  for form in plot_style.FILE_FORMATS:
    found = [(tmp_path / name / f"plot.{form}").read_bytes() for name in "ab"]
    assert found[0] == found[1], form
  pdf = (tmp_path / "a" / "plot.pdf").read_bytes()
  assert b"/CIDFontType2" in pdf  # TrueType
  assert b"CreationDate" not in pdf


def test_inline_svgs_stand_together_in_a_page_and_take_its_colour():
  first = plot_style.inline_svg(plots.jga_by_variant([make_run()]))
  second = plot_style.inline_svg(plots.jga_by_variant([make_run("other")]))
  ids = [re.findall(r'\bid="([^"]+)"', svg) for svg in (first, second)]
  assert ids[0]
  assert len(set(ids[0] + ids[1])) == len(ids[0] + ids[1])
  referred = set(re.findall(r'(?:url\(#|href="#)([^")]+)', first))
  assert referred == set(ids[0])
  root = ElementTree.fromstring(first)
  assert "viewBox" in root.attrib
  assert not {"width", "height"} & set(root.attrib)
  assert root.get("aria-label").startswith("JGA by schema variant")
  assert {element.tag.partition("}")[2] for element in root.iter()}.isdisjoint(
    {"style", "metadata"}
  )
  assert re.findall(r"https?://[^\"]+", first) == ["http://www.w3.org/2000/svg"]
  assert not first.startswith("<?xml")
  colours = set(re.findall(r"(?:fill|stroke): ([^;\"]+)", first))
  assert colours == {"currentColor", "none", "#0072b2"}


def test_matplotlib_is_loaded_late_and_if_missing_the_fix_is_told(monkeypatch):
  code = "import sys, sgdx_t5x.report.plots; print('matplotlib' in sys.modules)"
  done = python_code(code)
  assert done.stdout == "False\n"
  monkeypatch.setitem(sys.modules, "matplotlib", None)
  with pytest.raises(SgdxError) as caught:
    plots.jga_by_variant([make_run()])
  assert caught.value.fix == 'pip install "sgdx_t5x[report]"'


def test_drawing_changes_no_report():
  run = make_run()
  before = copy.deepcopy(run.report)
  plots.jga_by_variant([run])
  plots.sensitivity_by_service([run])
  assert run.report == before
