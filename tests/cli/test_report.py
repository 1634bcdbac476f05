"""`sgdx report` from its command line: what is written, by hand; what is refused."""

import contextlib
import copy
import csv
import dataclasses
import gzip
import json
import lzma
import pathlib
import re
import shutil
import sys

import pytest
import tiny_corpus as tiny
from commands import assert_four_parts, sgdx

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.report import plot_style, plots, run_tables, runs

ALL = ("original", *tiny.VARIANTS)
TEXT = "wrong </script><b>value"  # of a prediction


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  return str(tiny.write_corpus(tmp_path_factory.mktemp("tiny")))


def states(**changes):
  """Gold states per variant, with some replaced: v1={(dialogue, turn, service): state}."""
  found = {variant: copy.deepcopy(tiny.GOLD) for variant in ALL}
  for variant, frames in changes.items():
    for (dialogue, turn, service), state in frames.items():
      found[variant][dialogue][turn][service] = state
  return found


FIRST = states(
  v1={("1_00000", 1, "Banks_1"): {"kind": ["Checking"]}},  # `to` is missed
  v2={
    ("1_00000", 1, "Banks_1"): {"kind": ["Savings"], "to": [TEXT]},
    ("1_00001", 0, "Homes_2"): {"intent": ["rent"], "area": ["Soho"]},
  },
)
SECOND = states(v2={("1_00001", 0, "Homes_2"): {}}, v5={("2_00000", 0, "Homes_2"): {}})


def write_predictions(folder, found):
  for variant, state in found.items():
    tiny.write_dialogues(folder / variant, state, variant)
  return folder


@pytest.fixture(autouse=True)
def no_drawing(monkeypatch, report):
  """Plots are not drawn, which takes most of a report's time; the `report` fixture has them all."""
  monkeypatch.setattr(plot_style, "FILE_FORMATS", ())
  monkeypatch.setattr(plot_style, "inline_svg", lambda figure: "<svg></svg>")


def score(corpus, folder, out, *args, frames=True):
  sources = [f"{variant}={folder / variant}" for variant in ALL]
  kept = ["--per-frame", out.with_suffix(".frames.jsonl")] if frames else []
  command = ["score", "--corpus", corpus, "--predictions", *sources, "--json", out]
  assert sgdx(*command, *kept, *args) == 0
  return out


@pytest.fixture(scope="module")
def scored(corpus, tmp_path_factory):
  """Two runs on the tiny corpus: predictions, with their scores beside them."""
  folder = tmp_path_factory.mktemp("runs")
  for name, found in (("first", FIRST), ("second", SECOND)):
    score(corpus, write_predictions(folder / f"{name}_predictions", found), folder / f"{name}.json")
  return folder


@pytest.fixture(scope="module")
def report(corpus, scored, tmp_path_factory):
  """A report of both runs, each named."""
  out = tmp_path_factory.mktemp("report") / "out"
  runs = (f"base={scored / 'first.json'}", f"our 2nd={scored / 'second.json'}")
  assert sgdx("report", *runs, "--corpus", corpus, "--out", out) == 0
  return out


def rows(report, name):
  """A table of a report, as a mapping from (row, column) to value."""
  with (report / "tables" / f"{name}.csv").open() as file:
    found = list(csv.DictReader(file))
  return {(row["row"], row["column"]): row["value"] for row in found if row["table"] != "about"}


def embedded(report):
  """The data of the error browser, extracted from the page."""
  text = (report / "report.html").read_text()
  (data,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
  return json.loads(data)


# --- what is written -----------------------------------------------------------------------


def test_every_file_of_the_report(report):
  names = {p.relative_to(report).as_posix() for p in report.rglob("*") if p.is_file()}
  plots = {"jga_by_variant", "jga_by_augmentation", "sensitivity_by_service", "error_kinds"}
  assert {f"plots/{name}.{end}" for name in plots for end in ("svg", "pdf", "png")} <= names
  assert {"errors/1-base.jsonl", "errors/2-our-2nd.jsonl", "report.html"} <= names
  tables = {name.rpartition(".")[0] for name in names if name.startswith("tables/")}
  assert {f"{name}.{end}" for name in tables for end in ("md", "tex", "csv")} <= names
  linked = set(
    re.findall(r'href="((?:plots|tables|errors)/[^"]+)"', (report / "report.html").read_text())
  )
  assert linked <= names
  assert {name for name in names if name.startswith(("plots/", "tables/"))} <= linked


def test_tables_hold_the_scores_as_fractions(report, scored):
  found = json.loads((scored / "first.json").read_text())["sgdx"]
  summary = rows(report, "summary")
  for group in ("all", "seen", "unseen"):
    assert float(summary[f"base, {group}", "JGA_v1-5"]) == found[group]["jga_v1_5"]
    assert float(summary[f"base, {group}", "SS_JGA"]) == found[group]["ss_jga"]
  # Of six frames v1 has one wrong, v2 two; the value of `to` shares letters with the gold one,
  # but `kind` is wrong too.
  variants = rows(report, "jga-by-schema-variant")
  assert float(variants["base, all", "v1"]) == pytest.approx(5 / 6)
  assert float(variants["base, all", "v2"]) == pytest.approx(4 / 6)
  assert float(variants["our 2nd, all", "v2"]) == pytest.approx(5 / 6)


def test_seeds_of_a_system_have_means(scored, tmp_path, capsys):
  runs = (f"a#0={scored / 'first.json'}", f"a#1={scored / 'second.json'}")
  alone = tmp_path / "alone.json"
  alone.write_text((scored / "first.json").read_text())
  assert sgdx("report", *runs, f"b={alone}", "--out", tmp_path / "out") == 0
  said = capsys.readouterr().out
  assert "Means over seeds" in said
  assert "signature a#0, a#1, b: sgdx|" in said  # the shared part is printed once
  assert said.count("sgdx|") == 1
  assert "one run twice" not in said
  means = rows(tmp_path / "out", "means-over-seeds")
  # 27 and 28 of 30 frames in v1 to v5 are right.
  assert float(means["a, all", "JGA_v1-5"]) == pytest.approx((27 / 30 + 28 / 30) / 2)
  assert float(means["a, all, sd", "JGA_v1-5"]) == pytest.approx((1 / 30) / 2**0.5)
  worst = [
    json.loads((scored / f).read_text())["sgdx"]["all"]["worst"]
    for f in ("first.json", "second.json")
  ]
  assert float(means["a, all", "worst"]) == pytest.approx(sum(worst) / 2)
  assert means["a, all", "seeds"] == "2"
  assert not [row for row, _ in means if row.startswith("b")]  # not named as a seed
  assert sgdx("report", runs[0], f"a#1={alone}", "--out", tmp_path / "out") == 0
  assert "alone.json have equal scores: one run twice?" in capsys.readouterr().out


def test_failures_by_hand(report):
  per_frame = rows(report, "slot-errors-per-100-frames-base")
  assert float(per_frame["missed", "v1"]) == pytest.approx(1 / 6)
  assert float(per_frame["wrong categorical choice", "v2"]) == pytest.approx(1 / 6)
  assert float(per_frame["spurious", "v2"]) == pytest.approx(1 / 6)
  assert float(per_frame["all", "v2"]) == pytest.approx(3 / 6)
  assert float(per_frame["missed", "% of v1-5"]) == 1 / 4
  slots = rows(report, "slots-base")
  # `to` of Banks_1, of four frames: wrong once with v1, once with v2.
  assert float(slots["Banks_1 to", "v1"]) == 0.75
  assert float(slots["Banks_1 to", "v1-5"]) == pytest.approx(1 - 2 / 20)
  assert float(slots["Banks_1 to", "v1-5 - orig"]) == pytest.approx(-2 / 20)
  assert (slots["Banks_1 to", "missed"], slots["Banks_1 to", "frames"]) == ("1", "4")


def test_comparison_by_hand(report):
  """The second run fixes both frames of Banks_1, and breaks slots of Homes_2."""
  overall = rows(report, "differences-our-2nd-minus-base")
  assert float(overall["v1", "all"]) == pytest.approx(1 / 6)
  assert float(overall["JGA_v1-5", "all"]) == pytest.approx(1 / 30)
  services = rows(report, "services-our-2nd-minus-base")
  assert (services["Banks_1", "fixed"], services["Banks_1", "broken"]) == ("2", "0")
  flipped = rows(report, "slots-that-flipped-our-2nd-minus-base")
  assert (flipped["Banks_1 to", "fixed"], flipped["Banks_1 to", "broken"]) == ("2", "0")
  assert (flipped["Homes_2 intent", "broken"], flipped["Homes_2 area", "fixed"]) == ("2", "1")


def test_every_failure_is_in_jsonl(report):
  found = [json.loads(line) for line in (report / "errors/1-base.jsonl").read_text().splitlines()]
  assert [row["id"] for row in found] == ["1_00000-002-Banks_1", "1_00001-000-Homes_2"]
  row = found[0]
  assert row["changes"] is True
  assert row["scores"]["v1"] == 0
  assert row["scores"]["original"] == 1
  assert row["said"][-1] == ["USER", "user turn 1 of 1_00000"]
  to = next(failure for failure in row["failures"] if failure["slot"] == "to")
  assert to["gold"] == ["Anna Lee", "Anna"]
  assert to["kinds"] == {"v1": "missed", "v2": "wrong value"}
  assert (to["predicted"]["v1"], to["predicted"]["v2"]) == (None, TEXT)
  assert to["wording"]["v1"] == ["to_v1", "to said like v1"]


def test_the_page_holds_examples_and_all_counts(report):
  data = embedded(report)
  assert data["runs"] == ["base", "our 2nd"]
  assert {frame["id"] for frame in data["frames"] if frame["run"] == 0} == {
    "1_00000-002-Banks_1",
    "1_00001-000-Homes_2",
  }
  cell = {"run": 0, "service": "Banks_1", "slot": "to", "variant": "v2", "kind": "wrong value"}
  assert {**cell, "frames": 1, "changes": 1, "broken": 0} in data["totals"]
  assert data["services"]["Homes_2"]["seen"] is False
  assert data["services"]["Banks_1"]["variants"]["v3"]["slots"]["kind"][0] == "amount"
  text = (report / "report.html").read_text()
  assert TEXT not in text


def test_no_examples_leave_nothing_of_the_corpus_in_the_page(corpus, scored, tmp_path):
  runs = (scored / "first.json", scored / "second.json", "--corpus", corpus)
  assert sgdx("report", *runs, "--examples", "0", "--out", tmp_path / "out") == 0
  page = (tmp_path / "out/report.html").read_text()
  assert "Kinds of slot errors" in page
  assert "application/json" not in page
  for said in ("Anna Lee", "wrong &lt;", "Soho"):
    assert said not in page


def test_a_folder_is_scored_first(corpus, scored, tmp_path, capsys):
  out = tmp_path / "out"
  assert sgdx("report", scored / "first_predictions", "--corpus", corpus, "--out", out) == 0
  assert str(out / "report.html") in capsys.readouterr().out
  made = json.loads((out / "scores/first_predictions.json").read_text())
  known = json.loads((scored / "first.json").read_text())
  assert {**made, "per_frame": None} == {**known, "per_frame": None}
  assert sgdx("diff", out / "scores/first_predictions.json", scored / "second.json") == 0
  # Again into the same folder: a report is replaced.
  mine = out / "tables/mine.tex"
  mine.write_text("by hand")
  assert sgdx("report", scored / "second.json", "--out", out) == 1
  assert mine.read_text() == "by hand"
  mine.unlink()
  assert sgdx("report", scored / "second.json", "--out", out) == 0
  assert f"report: {out}/report.html" in capsys.readouterr().out
  assert not (out / "scores").exists()
  assert embedded(out)["dialogues"] == {}  # no --corpus


def write_rows(file, found):
  tiny.write_rows(file, [row for v, state in found.items() for row in tiny.example_rows(state, v)])


def test_checkpoints_are_drawn_and_the_last_is_shown(corpus, tmp_path, monkeypatch):
  monkeypatch.setattr(plot_style, "FILE_FORMATS", ("svg",))
  folder = tmp_path / "eval"
  folder.mkdir()
  for step, found in ((900, FIRST), (1000, SECOND), (1100, FIRST)):
    write_rows(folder / f"task-{step:06d}.jsonl", found)
  out = tmp_path / "out"
  command = ("report", folder, "--corpus", corpus, "--out", out)
  assert sgdx(*command) == 0
  table = rows(out, "checkpoints-eval")
  assert [float(table[step, "JGA_v1-5"]) for step in ("900", "1,000", "1,100")] == [
    pytest.approx(27 / 30),
    pytest.approx(28 / 30),
    pytest.approx(27 / 30),
  ]
  assert (out / "plots/by_step.svg").exists()
  assert "best JGA_v1-5 at step 1,000" in (out / "report.html").read_text()
  assert float(rows(out, "jga-by-schema-variant")["all", "v1"]) == pytest.approx(5 / 6)


def test_steps_have_the_same_variants_or_are_none(corpus, tmp_path, capsys):
  """An evaluation that was cut short is refused; dates in names are no steps."""
  folder, out = tmp_path / "eval", tmp_path / "out"
  folder.mkdir()
  for date, variant in ((20240501, "original"), (20240502, "v1")):
    write_rows(folder / f"answers-{variant}-{date}.jsonl", {variant: FIRST[variant]})
  command = ("report", folder, "--corpus", corpus, "--out", out, "--allow-missing")
  assert sgdx(*command) == 0
  table = rows(out, "jga-by-schema-variant")
  assert table["all", "v1"]
  assert table["all", "JGA_orig"]
  write_rows(folder / "answers-original-20240503.jsonl", {"original": FIRST["original"]})
  capsys.readouterr()
  assert sgdx(*command) == 1
  assert "20240502: v1; 20240503: original" in capsys.readouterr().err


def test_files_with_and_without_a_step_are_not_mixed(corpus, tmp_path, capsys):
  """Regression: the file without a step was left out silently."""
  write_rows(tmp_path / "task-000900.jsonl", FIRST)
  write_rows(tmp_path / "task.jsonl", FIRST)
  assert sgdx("report", tmp_path, "--corpus", corpus, "--out", tmp_path / "out") == 1
  assert "with and without a step" in capsys.readouterr().err


def test_services_show_the_number_that_p_is_of(corpus, scored, tmp_path):
  """Regression: without v1 to v5, p and order were of the first variant, which was not shown."""
  for name in ("first", "second"):
    sources = [f"{v}={scored / f'{name}_predictions' / v}" for v in ("v1", "v2")]
    out = tmp_path / f"{name}.json"
    command = ("score", "--corpus", corpus, "--predictions", *sources, "--json", out)
    assert sgdx(*command, "--per-frame", out.with_suffix(".frames.jsonl")) == 0
  assert sgdx("report", *sorted(tmp_path.glob("*.json")), "--out", tmp_path / "out") == 0
  (table,) = (tmp_path / "out/tables").glob("services-second-minus-first.md")
  header = next(line for line in table.read_text().splitlines() if line.startswith("|"))
  assert header.startswith("|  | JGA_orig | v1 | p (v1) | SS_JGA ")


# --- what is missing, or refused -----------------------------------------------------------


def test_runs_without_frames_still_give_tables(corpus, scored, tmp_path, capsys):
  lone = score(corpus, scored / "first_predictions", tmp_path / "lone.json", frames=False)
  shutil.copy(scored / "second.json", tmp_path / "moved.json")  # without its frames
  capsys.readouterr()
  out = tmp_path / "out"
  assert sgdx("report", lone, tmp_path / "moved.json", "--out", out) == 0
  said = capsys.readouterr().out
  assert "lone.json has no per-frame scores; score again with --per-frame" in said
  assert re.search(r"moved: its file of per-frame scores, .*second.frames.jsonl, is missing", said)
  text = (out / "report.html").read_text()
  assert "no paired comparison: lone, moved without per-frame scores" in text
  assert "error-browser" not in re.findall(r'<section id="([^"]+)"', text)
  assert float(rows(out, "summary")["lone, all", "JGA_orig"]) == 1
  assert not (out / "errors").exists()


def test_the_first_run_is_the_baseline_with_or_without_a_name():
  assert list(runs.parse_names(["a/first.json", "ours=b.json", "c/third.json"])) == [
    "first", "ours", "third",
  ]  # fmt: skip


@pytest.mark.parametrize("extension", ["", ".json", ".jsonl"])
def test_a_folder_may_hold_a_file_per_variant(corpus, tmp_path, extension):
  names = ("original", "v1", "v5", "corrupt_2", "notes")
  paths = {name: tmp_path / f"{name}{extension}" for name in names}
  for path in paths.values():
    path.touch() if extension else path.mkdir()
  del paths["notes"]
  assert runs._sources(tmp_path, "test", open_corpus(corpus), {}) == {None: paths}


def test_a_folder_of_ones_own_variants_has_the_order_of_their_schemas(corpus, tmp_path):
  own = {}
  for name in ("zeta", "alpha", "v2", "original"):
    (tmp_path / "run" / name).mkdir(parents=True)
    schema = tmp_path / name / "test/schema.json"
    schema.parent.mkdir(parents=True)
    shutil.copy(pathlib.Path(corpus, "sgd_x/data/v2/test/schema.json"), schema)
    if name in ("zeta", "alpha"):
      own[name] = tmp_path / name
  found = runs._sources(tmp_path / "run", "test", open_corpus(corpus), own)
  assert list(found[None]) == ["original", "v2", "zeta", "alpha"]


def test_variants_of_ones_own_are_reported(corpus, scored, tmp_path, capsys):
  """Regression: only original and v1 to v5 were read, and --schemas had no effect."""
  for name, variant in (("mine", "v1"), ("other", "v2")):
    schema = tmp_path / name / "test/schema.json"
    schema.parent.mkdir(parents=True)
    shutil.copy(pathlib.Path(corpus, f"sgd_x/data/{variant}/test/schema.json"), schema)
  found = tmp_path / "run"
  shutil.copytree(scored / "first_predictions/original", found / "original")
  tiny.write_dialogues(found / "mine", FIRST["v1"], "v1")
  out, own = tmp_path / "out", ("--schemas", f"mine={tmp_path / 'mine'}")
  assert sgdx("report", found, "--corpus", corpus, "--out", out, *own) == 0
  made = out / "scores/run.json"
  report = json.loads(made.read_text())
  assert list(report["variants"]) == ["original", "mine"]
  capsys.readouterr()
  wrong = ("--schemas", f"mine={tmp_path / 'other'}")
  assert sgdx("report", made, "--corpus", corpus, "--out", tmp_path / "again", *wrong) == 1
  assert_four_parts(capsys.readouterr().err, "the schemas of mine are not those that run was")


def test_a_shard_of_predictions_is_scored(corpus, tmp_path):
  """T5X names its files like this; regression: it was taken for a score report."""
  file = tmp_path / "task.jsonl-00000-of-00001"
  write_rows(file, FIRST)
  out = tmp_path / "out"
  command = ("report", file, "--corpus", corpus, "--out", out)
  assert sgdx(*command) == 0


def test_scores_behind_a_link_are_found(scored, tmp_path):
  (tmp_path / "latest.json").symlink_to(scored / "first.json")
  assert runs.read_run("a", tmp_path / "latest.json").table is not None


def test_errors_are_left_out_where_no_frame_has_a_jga(scored, monkeypatch):
  """Of a service without slots."""
  run = runs.read_run("first", scored / "first.json")
  assert run_tables.errors(run) is not None
  run.rows.groups["all"] = dataclasses.replace(run.rows.groups["all"], num_frames=0)
  assert run_tables.errors(run) is None


def test_a_variant_that_is_called_like_a_kind_of_error(scored):
  """Regression: its failures and those of the kind were counted together."""
  run = runs.read_run("first", scored / "first.json")

  def renamed(by_variant):
    return {"missed" if name == "v1" else name: value for name, value in by_variant.items()}

  failures = {}
  for key, of_frame in run.table.failures.items():
    failures[key] = [dataclasses.replace(x, kinds=renamed(x.kinds)) for x in of_frame]
  table = dataclasses.replace(run.table, failures=failures)
  report = {**run.report, "variants": renamed(run.report["variants"])}
  slots = run_tables.slots(dataclasses.replace(run, table=table, report=report))
  for row, expected in zip(slots.rows, run_tables.slots(run).rows, strict=True):
    assert row[2] == expected[2]  # frames that are right with v1
    assert row[-6:] == expected[-6:]  # errors by kind, frames


def test_errors_of_other_variants_than_sgdxs_are_drawn():
  counts = {"mine": {"corrupt_3": {"missed": 3}, "corrupt_4": {"missed": 5}}}
  figure = plots.error_kinds(counts, {"mine": 10})
  [line] = figure.axes[0].lines
  assert list(line.get_ydata()) == [30, 50]


@pytest.mark.parametrize("module", [gzip, lzma])
def test_compressed_scores_are_read(scored, tmp_path, module):
  suffix = "gz" if module is gzip else "xz"
  compressed = tmp_path / f"first.json.{suffix}"
  compressed.write_bytes(module.compress((scored / "first.json").read_bytes()))
  shutil.copy(scored / "first.frames.jsonl", tmp_path)
  assert list(runs.parse_names([str(compressed)])) == ["first"]
  run, plain = (runs.read_run("first", path) for path in (compressed, scored / "first.json"))
  assert run.report == plain.report
  assert run.table.checksum == plain.table.checksum
  frames = tmp_path / "first.frames.jsonl"
  packed = frames.with_name(f"{frames.name}.{suffix}")
  packed.write_bytes(module.compress(frames.read_bytes()))
  frames.unlink()
  both_compressed = runs.read_run("first", compressed).table
  assert both_compressed.checksum == plain.table.checksum
  assert both_compressed.failures == plain.table.failures
  for content in (compressed.read_bytes()[:-20], b"{}"):
    compressed.write_bytes(content)
    with pytest.raises(SgdxError, match=f"first.json.{suffix}: not a complete compressed file"):
      runs.read_run("first", compressed)


def test_other_rules_are_refused_or_marked(corpus, scored, tmp_path, capsys):
  other = tmp_path / "exact.json"
  score(corpus, scored / "second_predictions", other, "--fuzzy", "exact")
  command = ("report", scored / "first.json", other, "--out", tmp_path / "out")
  capsys.readouterr()
  assert sgdx(*command) == 1
  said = capsys.readouterr().err
  assert "first has fuzzy:difflib; exact has fuzzy:exact" in said
  assert "--force" in said
  assert not (tmp_path / "out").exists()
  assert sgdx(*command, "--force") == 0
  assert "NOT COMPARABLE" in capsys.readouterr().out
  tables = list((tmp_path / "out/tables").iterdir())
  assert tables
  assert all("NOT COMPARABLE" in table.read_text() for table in tables)
  assert "no paired comparison" in (tmp_path / "out/report.html").read_text()


def test_runs_of_other_data_are_shown_without_texts(corpus, scored, tmp_path):
  """Dialogue ids are the same in other corpora, so the texts would be wrong."""
  edit_json(scored / "second.json", tmp_path / "other.json", rename_corpus)
  shutil.copy(scored / "second.frames.jsonl", tmp_path)
  out = tmp_path / "out"
  command = ("report", scored / "first.json", tmp_path / "other.json", "--corpus", corpus)
  assert sgdx(*command, "--force", "--out", out) == 0
  data = embedded(out)
  assert data["dialogues"] == {}
  assert all(service["variants"] == {} for service in data["services"].values())
  assert "dialogues and slot names are not shown" in (out / "report.html").read_text()


def edit_json(source, target, change):
  report = json.loads(source.read_text())
  change(report)
  target.write_text(json.dumps(report))


def rename_corpus(report):
  report["signature"] = re.sub(r"corpus:[^|]*", "corpus:tiny:0000", report["signature"])


def test_failures_that_are_not_known_are_not_none(corpus, scored, tmp_path):
  """Per-frame score files of older versions do not record failures."""
  lines = (scored / "first.frames.jsonl").read_text().splitlines()
  rows = [json.loads(line) for line in lines]
  rows[0].pop("failures")
  old = [{key: x for key, x in row.items() if key != "failures"} for row in rows]
  text = "".join(f"{json.dumps(row)}\n" for row in old)
  (tmp_path / "first.frames.jsonl").write_text(text)
  shutil.copy(scored / "first.json", tmp_path / "old.json")
  out = tmp_path / "out"
  command = ("report", tmp_path / "old.json", scored / "first.json", "--corpus", corpus)
  assert sgdx(*command, "--out", out) == 0
  names = [file.name for file in (out / "tables").iterdir()]
  assert any("-minus-" in name and name.startswith("services") for name in names)
  assert not any("flipped" in name for name in names)
  assert embedded(out)["unknown"] == [0]
  assert "lists no errors; with the predictions, score again" in (out / "report.html").read_text()


def test_only_a_report_is_replaced(scored, tmp_path, monkeypatch, capsys):
  """No user files are lost, neither beside a page nor among the report's inputs."""
  tests = tmp_path / "tests"
  tests.mkdir()
  (tests / "report.html").write_text("of another tool")
  (tests / "plots").mkdir()
  assert sgdx("report", scored / "first.json", "--out", tests) == 1
  assert (tests / "report.html").read_text() == "of another tool"
  (tests / "files.txt").write_bytes(b"\xff\n")
  assert sgdx("report", scored / "first.json", "--out", tests) == 1
  inside = tmp_path / "inside"
  (inside / "scores").mkdir(parents=True)
  (inside / "files.txt").write_text("files.txt\nscores/first.json\n")
  run = inside / "scores/first.json"
  shutil.copy(scored / "first.json", run)
  assert sgdx("report", run, "--out", inside) == 2
  assert run.is_file()
  assert "which this command reads" in capsys.readouterr().err
  here = tmp_path / "here"
  here.mkdir()
  monkeypatch.chdir(here)
  lone = tmp_path / "lone.json"
  edit_json(scored / "first.json", lone, lambda report: report.update(per_frame=None))
  assert sgdx("report", lone, "--out", ".") == 0
  assert (here / "report.html").is_file()


@pytest.mark.parametrize(
  "change",
  [
    lambda report: report.update(sgdx={}),
    lambda report: report["sgdx"].update(seen=None),
    lambda report: report["sgdx"].update(services=[]),
    lambda report: report["sgdx"]["all"].update(num_frames=None),
    lambda report: report["sgdx"]["all"].update(jga_v3=float("nan")),
    lambda report: report["sgdx"]["all"].update(jga_v3="0.5"),
    lambda report: report["sgdx"]["all"].update(ci95={"jga_v3": [None, 1]}),
    lambda report: report["sgdx"]["services"].pop("Banks_1"),
    lambda report: report.update(predict_nothing={}),
    lambda report: report["variants"].update(v1=[]),
  ],
)
def test_broken_reports_are_refused(scored, tmp_path, capsys, change):
  edit_json(scored / "first.json", tmp_path / "first.json", change)
  shutil.copy(scored / "first.frames.jsonl", tmp_path)
  assert sgdx("report", tmp_path / "first.json", "--out", tmp_path / "out") == 1
  assert "run `sgdx score` again" in capsys.readouterr().err
  assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
  "change",
  [
    lambda row: row.update(turn=10**12),
    lambda row: row.update(service=["Banks_1"]),
    lambda row: row["failures"][0].update(slot=["to"]),
    lambda row: row["failures"][0].update(kinds=["missed"]),
    lambda row: row["failures"][0].update(kinds={"v1": "strange"}),
    lambda row: row["failures"][0].pop("gold"),
    lambda row: row["failures"][0]["predicted"].pop("v3"),
  ],
)
def test_broken_frames_are_refused(scored, tmp_path, capsys, change):
  lines = (scored / "first.frames.jsonl").read_text().splitlines()
  number = next(i for i, line in enumerate(lines) if i and '"failures"' in line)
  row = json.loads(lines[number])
  change(row)
  lines[number] = json.dumps(row)
  (tmp_path / "first.frames.jsonl").write_text("\n".join(lines) + "\n")
  shutil.copy(scored / "first.json", tmp_path)
  assert sgdx("report", tmp_path / "first.json", "--out", tmp_path / "out") == 1
  assert f"first.frames.jsonl, line {number + 1}" in capsys.readouterr().err


@pytest.mark.parametrize(
  ("args", "said"),
  [
    (["{first}", "--out", "{full}"], "already exists and is not empty"),
    (["{first}", "{first}", "--out", "{new}"], "two runs are named first"),
    (["a={first}", "a={second}", "--out", "{new}"], "with unique names"),
    (["{folder}", "--out", "{new}"], "but there is no --corpus"),
    (["{missing}", "--out", "{new}"], "no file or folder at"),
    (["{frames}", "--out", "{new}"], "not a report of `sgdx score`"),
    (["{first}", "--out", "{new}", "--corpus", "sample"], "is not the corpus of first"),
    (["{first}", "--out", "{new}", "--examples", "-1"], "--examples -1"),
  ],
)
def test_refusals(scored, tmp_path, capsys, args, said):
  (tmp_path / "full").mkdir()
  (tmp_path / "full/thesis.tex").write_text("precious")
  places = {
    "first": scored / "first.json",
    "second": scored / "second.json",
    "frames": scored / "first.frames.jsonl",
    "folder": scored / "first_predictions",
    "missing": scored / "nothing.json",
    "full": tmp_path / "full",
    "new": tmp_path / "new",
  }
  assert sgdx("report", *(arg.format(**places) for arg in args)) in (1, 2)
  error = capsys.readouterr().err
  assert said in error
  assert "fix:" in error
  assert not (tmp_path / "new").exists()
  assert (tmp_path / "full/thesis.tex").read_text() == "precious"


def test_frames_of_another_run_are_refused(scored, tmp_path, capsys):
  shutil.copy(scored / "first.json", tmp_path)
  shutil.copy(scored / "second.frames.jsonl", tmp_path / "first.frames.jsonl")
  assert sgdx("report", tmp_path / "first.json", "--out", tmp_path / "out") == 1
  assert "were written by different runs" in capsys.readouterr().err


def test_missing_libraries_are_told_before_the_work(scored, tmp_path, capsys, monkeypatch):
  monkeypatch.setitem(sys.modules, "jinja2", None)
  assert sgdx("report", scored / "first.json", "--out", tmp_path / "out") == 1
  assert 'pip install "sgdx_t5x[report]"' in capsys.readouterr().err


@pytest.mark.parametrize(
  ("args", "said"),
  [
    (["{first}", "--allow-missing"], "--allow-missing, but every RUN is already scored"),
    (["{model_dir}", "--corpus", "{corpus}"], "is a MODEL_DIR"),
    (["{other_report}", "--corpus", "{corpus}"], "is a report"),
  ],
)
def test_mistakes_of_a_newcomer(corpus, scored, tmp_path, capsys, args, said):
  (tmp_path / "model/checkpoint_10").mkdir(parents=True)
  (tmp_path / "old").mkdir()
  (tmp_path / "old/report.html").write_text("")
  places = {
    "first": scored / "first.json",
    "missing": tmp_path / "nothing",
    "model_dir": tmp_path / "model",
    "other_report": tmp_path / "old",
    "corpus": corpus,
  }
  command = ["report", *(arg.format(**places) for arg in args), "--out", tmp_path / "out"]
  assert sgdx(*command) in (1, 2)
  error = capsys.readouterr().err
  assert said in error
  assert "fix:" in error


def test_broken_frames_are_told_apart(report):
  """Frames that are right in the first run and wrong in the second, with the variants."""
  found = {frame["id"]: frame["broken"] for frame in embedded(report)["frames"] if frame["run"]}
  # The former is wrong with v2 in both runs, though for other slots.
  assert found == {"1_00001-000-Homes_2": [], "2_00000-000-Homes_2": ["v5"]}


def test_a_report_shows_its_progress_on_a_terminal(corpus, scored, tmp_path, monkeypatch, capsys):
  """Regression: a report on SGD was silent for 14 s."""
  shown = []

  @contextlib.contextmanager
  def progress(unit):
    yield lambda task, done, total, unit=unit: shown.append((task, done, total, unit))

  monkeypatch.setattr("sgdx_t5x.cli.progress.progress", progress)
  path = scored / "first_predictions"
  assert sgdx("report", f"a={path}", "--corpus", corpus, "--out", tmp_path / "out") == 0
  assert f"report: {tmp_path / 'out' / 'report.html'}" in capsys.readouterr().out
  last = {task: (done, total, unit) for task, done, total, unit in shown}
  assert last.pop("reading dialogues of test") == (1, None, "dialogues")
  assert list(last) == [
    "reading predictions",
    "computing scores",
    "making sections",
    "saving plots",
  ]
  assert all(done == total for done, total, _ in last.values())
  assert last["making sections"][2] == "parts"


def test_a_partial_report_says_why_once_above_the_tables(corpus, tmp_path):
  """Both runs lack the same dialogue: their comparison does not repeat it."""
  for name, found in (("first", FIRST), ("second", SECOND)):
    some = {v: {d: t for d, t in state.items() if d != "2_00000"} for v, state in found.items()}
    folder = write_predictions(tmp_path / f"{name}_predictions", some)
    score(corpus, folder, tmp_path / f"{name}.json", "--allow-missing")
  out = tmp_path / "out"
  scores = (f"{name}={tmp_path / name}.json" for name in ("first", "second"))
  assert sgdx("report", *scores, "--out", out) == 0
  page = (out / "report.html").read_text()
  (reason,) = re.findall(r"PARTIAL: [^<]*", page)
  assert reason.startswith("PARTIAL: first, second: 1 of 6 frames of original, v1, v2")
  assert page.index(reason) < page.index('<figure class="table">')
