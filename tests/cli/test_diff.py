"""`sgdx diff` from its command line, and the file of scores per frame that it reads."""

import argparse
import dataclasses
import json

import numpy as np
import pytest

import sgdx_t5x
from sgdx_t5x.cli import diff
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.metrics import Failure, FrameScores
from sgdx_t5x.scoring.compare import compare, comparison_report
from sgdx_t5x.scoring.frame_table import pooled
from sgdx_t5x.scoring.score_files import read_frames, scores_checksum, write_frames

ALL = ("original", "v1", "v2", "v3", "v4", "v5")
# Five frames of three dialogues; Banks_1 is seen.
FRAMES = (
  ("1_00000", 0, "Banks_1"),
  ("1_00000", 2, "Banks_1"),
  ("1_00001", 0, "Banks_1"),
  ("1_00001", 0, "Homes_2"),
  ("2_00000", 0, "Homes_2"),
)
GOLD = (1.0, 1.0, 1.0, 1.0, 1.0)
INTENT = (1.0, np.nan, 0.0, 1.0, 1.0)


def system(**jga):
  """Scores of the five frames, all correct unless a variant's JGA is given."""
  dialogues, turns, services = zip(*FRAMES, strict=True)
  ids = [f"{d}-{t:03d}-{s}" for d, t, s in FRAMES]
  columns = (np.array(ids), np.array(dialogues), np.array(turns, dtype=np.int32))
  columns += (np.array(services), np.array([s == "Banks_1" for s in services]))
  return {
    v: FrameScores(
      *columns,
      {
        "joint_goal_accuracy": np.array(jga.get(v, GOLD)),
        "active_intent_accuracy": np.array(INTENT),
      },
    )
    for v in ALL
  }


def signature(frames=5, state="complete", **fields):
  values = {"corpus": "tiny:1a2b", "split": "test", "variants": "+".join(ALL), "fuzzy": "difflib"}
  values |= {"jga": "official-per-frame", "zero_mean": "zero", "frames": frames, **fields}
  return "|".join(("sgdx", *(f"{k}:{v}" for k, v in values.items()), state, "version:1"))


def write(path, scores, **fields):
  frames = len(next(iter(scores.values())))
  write_frames(path, signature(**{"frames": frames, **fields}), scores)
  return path


def write_report(path, frames, checksum=None, warnings=()):
  """Writes a report; `frames` names its per-frame file, `checksum` defaults to the true one."""
  state = "PARTIAL" if warnings else "complete"
  if frames and checksum is None:
    there = (path.parent / frames).is_file() and frames.endswith(".jsonl")
    checksum = read_frames(path.parent / frames).checksum if there else "?"
  report = {
    "format": "sgdx-score/1",
    "signature": signature(state=state),
    "warnings": list(warnings),
    "per_frame": frames and {"file": frames, "checksum": checksum},
  }
  path.write_text(json.dumps(report, indent=2))
  return path


@pytest.fixture
def pair(tmp_path):
  """A is right everywhere except v1's last frame; B loses two frames of v1 and wins that one."""
  a = write(tmp_path / "a.jsonl", system(v1=(1, 1, 1, 1, 0)))
  b = write(tmp_path / "b.jsonl", system(v1=(0, 1, 0.93, 1, 1)))
  return a, b


def run(*args):
  parser = argparse.ArgumentParser()
  diff.add_parser(parser.add_subparsers())
  parsed = parser.parse_args(["diff", *map(str, args)])
  return parsed.run(parsed)


def report_of(*args, capsys):
  assert run(*args, "--format", "json") == 0
  return json.loads(capsys.readouterr().out)


# --- the file ------------------------------------------------------------------------------


def test_scores_come_back_as_they_were(tmp_path):
  scores = system(v1=(0.93, 0, 1 / 3, 1, 1))
  table = read_frames(write(tmp_path / "a.jsonl", scores))
  assert table.signature == signature()
  assert table.metrics == ("joint_goal_accuracy", "active_intent_accuracy")
  assert list(table.scores) == list(ALL)
  for variant in ALL:
    for field in ("frame_ids", "dialogue_ids", "turns", "services", "seen"):
      wrote, read = (getattr(x[variant], field) for x in (scores, table.scores))
      assert np.array_equal(wrote, read), field
    assert wrote.dtype == read.dtype
    for key, values in scores[variant].metrics.items():
      assert np.array_equal(values, table.scores[variant].metrics[key], equal_nan=True)
  assert [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]


def test_half_characters_of_predictions_come_back(tmp_path):
  """Models write them, and JSON may hold them; the file was refused as truncated."""
  wrong = Failure("kind", ("x",), dict.fromkeys(ALL, "x") | {"v3": "\ud83d x"}, {"v3": "missed"})
  scores, failures = system(), {"1_00001-000-Homes_2": (wrong,)}
  write_frames(tmp_path / "a.jsonl", signature(), scores, failures)
  assert read_frames(tmp_path / "a.jsonl").failures == failures


def test_lines_are_what_is_documented(tmp_path):
  """Only frames that all variants share are written; NA is null."""
  scores = system(v1=(1, 0.93, 1, 1, 1))
  scores = {v: s.take(np.array([1, 0])) if v == "v2" else s for v, s in scores.items()}
  write_frames(tmp_path / "a.jsonl", "sgdx|x", {v: scores[v] for v in ("v1", "v2")})
  head, *rows = map(json.loads, (tmp_path / "a.jsonl").read_text().splitlines())
  assert head == {
    "format": "sgdx-frames/1",
    "signature": "sgdx|x",
    "checksum": scores_checksum(read_frames(tmp_path / "a.jsonl").scores),
    "variants": ["v1", "v2"],
    "metrics": ["joint_goal_accuracy", "active_intent_accuracy"],
    "failures": False,
  }
  assert len(rows) == 2
  assert rows[1] == {
    "id": "1_00000-002-Banks_1",
    "dialogue_id": "1_00000",
    "turn": 2,
    "service": "Banks_1",
    "seen": True,
    "scores": {
      "joint_goal_accuracy": {"v1": 0.93, "v2": 1.0},
      "active_intent_accuracy": {"v1": None, "v2": None},
    },
  }


def test_a_file_that_cannot_be_written(tmp_path):
  with pytest.raises(SgdxError, match=r"(?s)--per-frame .*fix: +create the folder"):
    write(tmp_path / "absent" / "a.jsonl", system())


def cut_in_a_line(path):
  path.write_bytes(path.read_bytes()[:-20])


def cut_between_lines(path):
  path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))


def cut_in_the_first_line(path):
  path.write_bytes(path.read_bytes()[:50])


def repeat_a_line(path):
  lines = path.read_text().splitlines(keepends=True)
  path.write_text("".join([*lines[:-1], lines[1]]))


def drop_a_variant(path):
  lines = path.read_text().splitlines(keepends=True)
  path.write_text("".join([*lines[:2], lines[2].replace('"v3"', '"w"'), *lines[3:]]))


@pytest.mark.parametrize(
  ("spoil", "message"),
  [
    (cut_in_a_line, r"line 6: not a row.*truncated"),
    (cut_between_lines, r"4 frames.*5 frames, as stated in its signature.*truncated"),
    (cut_in_the_first_line, r"not valid JSON.*cut short"),
    (repeat_a_line, r"line 6: frame 1_00000-000-Banks_1 occurs twice"),
    (drop_a_variant, r"line 3: not a row.*KeyError: 'v3'"),
    (lambda path: path.write_text(""), r"not valid JSON"),
    (
      lambda path: path.write_text('{"variants": {}}'),
      r"not a report.*with --json and --per-frame",
    ),
    (lambda path: path.rename(path.with_name("aa.jsonl")), r"no file at.*nearest: aa.jsonl"),
  ],
)
def test_broken_files_are_refused(pair, spoil, message):
  spoil(pair[0])
  with pytest.raises(SgdxError, match=f"(?s){message}"):
    run(*pair)


def test_reports_lead_to_their_file(pair, tmp_path, capsys):
  (tmp_path / "sub").mkdir()
  first = write_report(tmp_path / "a.json", "a.jsonl")
  second = write_report(tmp_path / "sub" / "b.json", str(pair[1]))
  by_report = report_of(first, second, capsys=capsys)
  assert by_report["rows"] == report_of(*pair, capsys=capsys)["rows"]


def test_reports_without_their_file_are_refused(pair, tmp_path):
  cases = {
    "sgdx score` again with --per-frame": write_report(tmp_path / "1.json", None),
    "no file at .*gone.jsonl": write_report(tmp_path / "2.json", "gone.jsonl"),
    "were written by different runs": write_report(tmp_path / "3.json", "a.jsonl", "00000000"),
    "the first line is not a header of per-frame scores": write_report(
      tmp_path / "4.json", "4.json"
    ),
  }
  for message, report in cases.items():
    with pytest.raises(SgdxError, match=f"(?s){message}"):
      run(report, pair[1])
  whole = cases["sgdx score` again with --per-frame"]
  whole.write_text(whole.read_text()[:-30])
  with pytest.raises(SgdxError, match=r"(?s)not valid JSON.*cut short"):
    run(whole, pair[1])


# --- the comparison ------------------------------------------------------------------------


def test_numbers_and_flips_by_hand(pair, tmp_path, capsys):
  flips, out = tmp_path / "flips.jsonl", tmp_path / "out.json"
  assert run(*pair, "--flips", flips, "--json", out) == 0
  printed, report = capsys.readouterr().out, json.loads(out.read_text())
  rows = report["rows"]
  counts = {name: (row["num_frames"], row["num_dialogues"]) for name, row in rows.items()}
  assert counts == {"all": (5, 3), "seen": (3, 2), "unseen": (2, 2)}
  v1 = {name: row["differences"]["jga_v1"] for name, row in rows.items()}
  assert (v1["all"]["a"], v1["all"]["b"]) == pytest.approx((4 / 5, 3.93 / 5))
  assert v1["all"]["difference"] == pytest.approx(-0.07 / 5)
  assert v1["seen"]["difference"] == pytest.approx(-1.07 / 3)
  assert v1["unseen"]["difference"] == pytest.approx(1 / 2)
  mean = rows["all"]["differences"]["jga_v1_5"]
  assert mean["b"] == pytest.approx((3.93 / 5 + 4) / 5)
  assert rows["all"]["differences"]["diff_rel"]["b"] == pytest.approx((3.93 / 5 + 4) / 5 - 1)
  # CoV with one of five wrong, as in one frame of A and one of B: .5590; with .93 and four times 1:
  # mean .986, deviation sqrt((.056^2 + 4 * .014^2) / 4) = .031305, CoV .031749.
  sensitivity = rows["all"]["differences"]["ss_jga"]
  assert sensitivity["a"] == pytest.approx(0.5590 / 5, abs=2e-5)
  assert sensitivity["b"] == pytest.approx((0.5590 + 0.031749) / 5, abs=2e-5)
  found = {name: row["flips"]["v1"] for name, row in rows.items()}
  assert found["all"] == {"broken": 2, "fixed": 1}
  assert found["seen"] == {"broken": 2, "fixed": 0}
  assert found["unseen"] == {"broken": 0, "fixed": 1}
  assert rows["all"]["flips"]["v2"] == {"broken": 0, "fixed": 0}
  assert rows["all"]["differences"]["jga_v2"] == {
    **{"a": 1.0, "b": 1.0, "difference": 0.0, "ci95": [0.0, 0.0]},
    "p": 1.0,
  }
  assert [json.loads(line) for line in flips.read_text().splitlines()] == [
    {"id": name, "service": service, "seen": seen, "variant": "v1", "a": a, "b": b}
    for name, service, seen, a, b in (
      ("1_00000-000-Banks_1", "Banks_1", True, 1.0, 0.0),
      ("1_00001-000-Banks_1", "Banks_1", True, 1.0, 0.93),
      ("2_00000-000-Homes_2", "Homes_2", False, 0.0, 1.0),
    )
  ]
  table = {
    line.split()[0]: line.split() for line in printed.splitlines() if line[:2] in ("v1", "v2")
  }
  assert "v1 80.0 78.6 -1.4" in " ".join(printed.split())
  assert table["v2"][1:4] == ["100.0", "100.0", "0.0"]
  assert all(len(x) <= 80 for x in printed.splitlines() if not x.startswith(("sig", "A ", "B ")))
  assert f"signature B: {signature()}" in printed
  assert "PARTIAL" not in printed


def test_json_printed_is_json_written(pair, tmp_path, capsys):
  found = report_of(*pair, "--json", tmp_path / "out.json", capsys=capsys)
  assert found == json.loads((tmp_path / "out.json").read_text())
  assert (found["format"], found["complete"]) == ("sgdx-diff/1", True)


def test_a_comparison_is_read_as_an_object(pair, capsys):
  """`sgdx_t5x.compare` says what `sgdx diff` prints and writes, nan for what has no number."""
  some = {v: scores.take(np.arange(2)) for v, scores in system().items()}  # of one dialogue
  short = write(pair[0].with_name("c.jsonl"), some)
  for b in (pair[1], short):
    compared = sgdx_t5x.compare(pair[0], b, allow_missing=True)
    report = report_of(pair[0], b, "--allow-missing", capsys=capsys)
    for group, row in report["rows"].items():
      for key, numbers in row["differences"].items():
        numbers = numbers or dict.fromkeys(("a", "b", "difference", "ci95", "p"))
        ends, found = numbers.pop("ci95") or (None, None), compared.difference(key, group)
        expected = (*numbers.values(), *ends)
        values = (found.a, found.b, found.difference, found.p, found.low, found.high)
        assert tuple(None if np.isnan(value) else value for value in values) == expected
    assert compared.signatures == (report["a"]["signature"], report["b"]["signature"])
    for style in ("md", "latex", "csv"):
      run(pair[0], b, "--allow-missing", "--format", style)
      assert compared.format(style) == capsys.readouterr().out
    assert str(compared) == compared.format()
  with pytest.raises(UsageError, match=r"(?s)format: style = 'html'.*expected: .*fix: "):
    compared.format("html")
  cases = (("jga_v15", "all", "jga_v1_5"), ("jga_v1_5", "unsen", "unseen"), (3, "all", "jga_v1"))
  for key, group, nearest in cases:
    words = rf"(?s)difference: .*expected: .*available: .*{nearest}.*fix: "
    with pytest.raises(UsageError, match=words):
      compared.difference(key, group)


def test_a_system_against_itself(pair, capsys):
  found = report_of(pair[0], pair[0], capsys=capsys)
  for row in found["rows"].values():
    for difference in row["differences"].values():
      assert (difference["difference"], difference["p"]) == (0.0, 1.0)


def test_order_of_frames_does_not_matter(pair, tmp_path, capsys):
  head, *rows = pair[1].read_text().splitlines(keepends=True)
  (tmp_path / "c.jsonl").write_text("".join([head, *rows[::-1]]))
  expected = report_of(*pair, capsys=capsys)["rows"]
  assert report_of(pair[0], tmp_path / "c.jsonl", capsys=capsys)["rows"] == expected


def test_swapping_the_systems_turns_the_signs(pair, capsys):
  there = report_of(*pair, capsys=capsys)["rows"]["all"]
  back = report_of(*reversed(pair), capsys=capsys)["rows"]["all"]
  for key, x in there["differences"].items():
    y = back["differences"][key]
    assert y["difference"] == pytest.approx(-x["difference"])
    assert y["ci95"] == pytest.approx([-x["ci95"][1], -x["ci95"][0]])
    assert y["p"] == x["p"]


def test_bootstrap_samples(pair, capsys):
  few = report_of(*pair, "--bootstrap-samples", 100, capsys=capsys)
  assert few == report_of(*pair, "--bootstrap-samples", 100, capsys=capsys)
  other = report_of(*pair, "--bootstrap-samples", 101, capsys=capsys)
  p = [x["rows"]["all"]["differences"]["jga_v1"]["p"] for x in (few, other)]
  assert p[0] != p[1]
  for number in (99, 10**12):
    with pytest.raises(UsageError, match=f"{number} bootstrap samples"):
      run(*pair, "--bootstrap-samples", number)
  for number, seed in ((0, 0), (True, 0), (100, -1)):
    with pytest.raises(UsageError, match=f"{number} bootstrap samples, seed {seed}"):
      comparison_report(compare(*pair), number, seed)


def test_other_metrics(pair, capsys):
  found = report_of(*pair, "--metric", "active_intent_accuracy", capsys=capsys)["rows"]["all"]
  # The second frame has no intent; of the others, 3 of 4 are right.
  assert found["differences"]["active_intent_accuracy_v1"]["a"] == 0.75
  assert found["flips"]["v1"] == {"broken": 0, "fixed": 0}
  assert run(*pair, "--metric", "active_intent_accuracy") == 0
  assert "active_intent_accuracy (%)" in capsys.readouterr().out
  with pytest.raises(SgdxError, match=r"(?s)no metric 'joint_gaol.*nearest: joint_goal_accuracy"):
    run(*pair, "--metric", "joint_gaol_accuracy")


def test_joint_metrics_across_turns(tmp_path, capsys):
  """The two frames of 1_00001's turn count as one, right only if both are."""
  rule = {"jga": "official-across-turn"}
  a = write(tmp_path / "a.jsonl", system(), **rule)
  b = write(tmp_path / "b.jsonl", system(original=(1, 1, 1, 0, 1)), **rule)
  found = report_of(a, b, capsys=capsys)["rows"]["all"]
  assert found["differences"]["jga_orig"]["b"] == 3 / 4
  assert found["flips"]["original"] == {"broken": 1, "fixed": 0}


# --- what cannot be compared ---------------------------------------------------------------


@pytest.mark.parametrize(
  "field",
  [
    {"corpus": "tiny:ffff"},
    {"split": "dev"},
    {"fuzzy": "exact"},
    {"jga": "official-across-turn"},
    {"zero_mean": "exclude"},
  ],
)
def test_scores_of_other_rules_are_refused(pair, tmp_path, field):
  other = write(tmp_path / "c.jsonl", system(), **field)
  (name, value) = next(iter(field.items()))
  message = f"(?s)scored with different settings: {name}\n.*B: {name}:{value}.*fix"
  with pytest.raises(SgdxError, match=message):
    run(pair[0], other)


def test_versions_and_the_name_of_the_corpus_may_differ(pair, tmp_path):
  other = signature(corpus="copy:1a2b").replace("version:1", "version:2")
  write_frames(tmp_path / "c.jsonl", other, system())
  assert run(pair[0], tmp_path / "c.jsonl") == 0


def test_variants_of_one_system_only_are_named(pair, tmp_path, capsys):
  few = {v: s for v, s in system().items() if v in ("original", "v1")}
  some = write(tmp_path / "c.jsonl", few, variants="original+v1")
  found = report_of(pair[0], some, capsys=capsys)
  assert found["notes"] == ["not compared, only in A: v2, v3, v4, v5"]
  keys = {k for k, x in found["rows"]["all"]["differences"].items() if x is not None}
  assert keys == {"jga_orig", "jga_v1", "cjga_v1"}
  assert run(pair[0], some) == 0
  printed = capsys.readouterr().out
  assert "only in A: v2, v3, v4, v5" in printed
  assert "SS  " not in printed
  others = {v: s for v, s in system().items() if v == "v5"}
  found = r"(?s)have no variant in common with .*A: original, v1 \| B: v5"
  with pytest.raises(SgdxError, match=found):
    run(some, write(tmp_path / "d.jsonl", others))


def test_agreement_over_other_variants_is_not_compared(tmp_path, capsys):
  """The same states of A and B have another agreement if A's is also over another variant."""
  agreement = {f"{d}-{t:03d}-{s}": 1.0 for d, t, s in FRAMES}
  files = []
  for names in (("original", "v1", "v2"), ("original", "v1", "v2"), ("original", "v1", "v2", "v3")):
    mine = {name.replace("v", "mine"): system()[name] for name in names}
    files.append(tmp_path / f"{len(files)}.jsonl")
    write_frames(files[-1], signature(variants="+".join(mine)), mine, agreement=agreement)
  a, b, more = files
  assert report_of(a, b, capsys=capsys)["rows"]["all"]["differences"]["agreement"]["a"] == 1
  differences = report_of(a, more, capsys=capsys)["rows"]["all"]["differences"]
  assert differences["jga_reworded"]["a"] == 1
  assert "agreement" not in differences


def test_runs_of_a_system_are_pooled(pair, tmp_path, capsys):
  """Differences are of means over the runs, and a dialogue is drawn in all runs at once."""
  again = [
    write(tmp_path / "a1.jsonl", system(v1=(0, 0, 1, 1, 0), v2=(1, 1, 0, 1, 1))),
    write(tmp_path / "b1.jsonl", system(v1=(1, 1, 1, 0, 1))),
  ]
  one, two = report_of(*pair, capsys=capsys), report_of(*again, capsys=capsys)
  more = ("--more-a", again[0], "--more-b", again[1])
  both = report_of(*pair, *more, capsys=capsys)
  for key in ("jga_orig", "jga_v1", "jga_v2", "jga_v1_5", "ss_jga"):
    found, *each = (r["rows"]["all"]["differences"][key] for r in (both, one, two))
    for side in ("a", "b", "difference"):
      assert found[side] == pytest.approx(sum(x[side] for x in each) / 2), key
  assert both["rows"]["all"]["num_frames"] == 2 * len(FRAMES)
  assert both["rows"]["all"]["num_dialogues"] == one["rows"]["all"]["num_dialogues"]
  # Of a run with itself, the same numbers and intervals, which would pass for a second run's.
  a, b = map(read_frames, pair)
  same = compare(*(pooled([x, dataclasses.replace(x, checksum="")]) for x in (a, b))).report
  assert same["rows"]["all"]["differences"] == one["rows"]["all"]["differences"]
  with pytest.raises(SgdxError, match=r"a.jsonl and .*a.jsonl have the same scores"):
    run(*pair, "--more-a", pair[0], "--more-b", again[1])
  with pytest.raises(UsageError, match="2 runs of A and 1 of B"):
    run(*pair, "--more-a", again[0])
  short = write(tmp_path / "s.jsonl", {v: s.take(np.arange(3)) for v, s in system().items()})
  with pytest.raises(SgdxError, match=r"a.jsonl and .*s.jsonl are not runs of one system"):
    run(*pair, "--more-a", short, "--more-b", again[1])


def test_metrics_that_were_not_read_and_scores_of_nothing(pair, tmp_path):
  a = read_frames(pair[0], ["active_intent_accuracy"])
  with pytest.raises(SgdxError, match=r"no metric 'joint_goal_accuracy'(?s:.*)read the file with"):
    compare(a, pair[1])
  with pytest.raises(SgdxError, match="no scores"):
    write_frames(tmp_path / "none.jsonl", a.signature, {})


def test_turns_of_pooled_runs_are_scored_apart(pair, tmp_path, capsys):
  """Regression: with turns scored as a whole, a turn counted only if it was right in every run."""
  turns = {"jga": "official-per-frame-across-turn"}
  found = [(1, 1, 0, 1, 1), (1, 1, 1, 1, 0)]  # the third and fourth frame are of one turn
  a, b = (write(tmp_path / f"{x}.jsonl", system(v1=jga), **turns) for x, jga in enumerate(found))
  row = report_of(a, a, "--more-a", b, "--more-b", b, capsys=capsys)["rows"]["all"]
  assert row["differences"]["jga_v1"]["a"] == pytest.approx((3 / 4 + 3 / 4) / 2)
  assert row["differences"]["jga_orig"]["a"] == 1


def test_flips_name_the_run(pair, tmp_path, capsys):
  flips = tmp_path / "flips.jsonl"
  report_of(*pair, "--more-a", pair[1], "--more-b", pair[0], "--flips", flips, capsys=capsys)
  rows = [json.loads(line) for line in flips.read_text().splitlines()]
  assert {row["run"] for row in rows} == {0, 1}
  assert {row["id"] for row in rows} <= {f"{d}-{t:03d}-{s}" for d, t, s in FRAMES}


def test_own_variants_of_one_system_only_do_not_matter(pair, tmp_path, capsys):
  """Their schemas are compared by name, whatever else was scored and in which order."""
  marks = {"mine": "mine=66d75290", "other": "other=7ceae95e"}
  both = write(tmp_path / "a.jsonl", system(), schemas="+".join(marks.values()))
  back = write(tmp_path / "b.jsonl", system(), schemas="+".join(reversed(marks.values())))
  one = write(tmp_path / "c.jsonl", system(), schemas=marks["mine"])
  for other in (back, one, pair[0]):
    assert run(both, other) == 0
  changed = write(tmp_path / "d.jsonl", system(), schemas="mine=00000000")
  with pytest.raises(SgdxError, match="different settings: schemas"):
    run(both, changed)


def test_other_variants_have_differences(tmp_path, capsys):
  some = {v if v != "v5" else "bt_zh": s for v, s in system().items() if v in ("original", "v5")}
  files = [write(tmp_path / f"{x}.jsonl", some, variants="original+bt_zh") for x in "cd"]
  differences = report_of(*files, capsys=capsys)["rows"]["all"]["differences"]
  assert differences["jga_bt_zh"]["difference"] == differences["jga_reworded"]["difference"] == 0
  run(*files)
  lines = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line]
  assert {"original", "bt_zh", "reworded"} <= set(lines)


def test_a_metric_that_was_not_predicted(pair, tmp_path):
  scores = system()
  for frames in scores.values():
    frames.metrics["active_intent_accuracy"] = np.full(len(FRAMES), np.nan)
  found = r"(?s)c.jsonl: the predictions have no active_intent_accuracy.*joint_goal_accuracy"
  with pytest.raises(SgdxError, match=found):
    run(pair[0], write(tmp_path / "c.jsonl", scores), "--metric", "active_intent_accuracy")


def test_frames_of_one_system_only(pair, tmp_path, capsys):
  scores = {v: s.take(np.arange(3)) for v, s in system(v1=(0, 1, 1, 1, 1)).items()}
  short = write(tmp_path / "c.jsonl", scores)
  message = (
    r"(?s)2 of 5 frames of A are not in B; the first is 1_00001-000-Homes_2.*--allow-missing"
  )
  with pytest.raises(SgdxError, match=message):
    run(pair[0], short)
  assert run(pair[0], short, "--allow-missing", "--json", tmp_path / "out.json") == 0
  printed, report = capsys.readouterr().out, json.loads((tmp_path / "out.json").read_text())
  assert "PARTIAL: 2 of 5 frames of A are not in B" in printed
  assert "PARTIAL signature A" in printed
  assert "unseen: joint_goal_accuracy (%), 0 frames" in printed
  assert report["complete"] is False
  assert report["rows"]["all"]["num_frames"] == 3
  assert report["rows"]["all"]["differences"]["jga_v1"]["difference"] == pytest.approx(-1 / 3)
  assert report["rows"]["unseen"]["differences"]["jga_v1"] is None
  moved = {
    v: dataclasses.replace(s, frame_ids=np.char.add("x", s.frame_ids)) for v, s in scores.items()
  }
  with pytest.raises(SgdxError, match="3 of 3 frames of B are not in A"):
    run(pair[0], write(tmp_path / "d.jsonl", moved), "--allow-missing")


def test_scores_of_one_system_only(pair, tmp_path, capsys):
  odd = write(tmp_path / "c.jsonl", system(v1=(1, 1, np.nan, 1, 1)))
  with pytest.raises(SgdxError, match=r"1 frames of v1 have joint_goal_accuracy in only one"):
    run(pair[0], odd)
  found = report_of(pair[0], odd, "--allow-missing", capsys=capsys)
  assert found["rows"]["all"]["num_frames"] == 4  # those with a score, as `sgdx score` counts them
  assert found["complete"] is False
  v1 = found["rows"]["all"]["differences"]["jga_v1"]
  assert (v1["a"], v1["b"]) == (3 / 4, 1.0)


def test_partial_input_is_said_again(pair, tmp_path, capsys):
  write(tmp_path / "c.jsonl", system(), state="PARTIAL")
  report = write_report(tmp_path / "c.json", "c.jsonl", warnings=["half of test"])
  assert run(pair[0], report) == 0
  printed = capsys.readouterr().out
  assert "PARTIAL: B: half of test" in printed
  found = report_of(tmp_path / "c.jsonl", pair[0], capsys=capsys)
  assert found["complete"] is False
  assert found["warnings"] == ["A: marked PARTIAL in its signature; the report states the reason"]


def test_one_dialogue_has_no_interval(tmp_path, capsys):
  scores = {v: s.take(np.arange(2)) for v, s in system(v1=(0, 1, 1, 1, 1)).items()}
  one = write(tmp_path / "a.jsonl", scores)
  found = report_of(one, one, capsys=capsys)["rows"]["all"]["differences"]["jga_v1"]
  assert found == {"a": 0.5, "b": 0.5, "difference": 0.0, "ci95": None, "p": None}
