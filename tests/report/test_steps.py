"""Scores by training step, from what SeqIO writes next to T5X's checkpoints."""

import json

import pytest

from sgdx_t5x.corpus.variants import ORIGINAL, SGDX_VARIANTS
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics.seqio_metrics import joint_goal_accuracy, schema_sensitivity
from sgdx_t5x.prompts import FORMATS
from sgdx_t5x.report import steps


def write(folder, task, *lines):
  (folder / "inference_eval").mkdir(exist_ok=True)
  text = "".join(json.dumps(line) + "\n" if isinstance(line, dict) else line for line in lines)
  (folder / f"inference_eval/{task}-metrics.jsonl").write_text(text)


def scores(step, num_frames=10, incomplete=0, **metrics):
  frames = {"num_frames": float(num_frames), "num_frames_incomplete": float(incomplete)}
  return {"step": step, **frames, **metrics}


def shown(row):
  return {key: value for key, value in row.items() if value is not None}


def test_prediction_files_are_grouped_by_step(tmp_path):
  names = ["t5dst_sgd-000900.jsonl", "t5dst_sgdx_v1-000900.jsonl", "t5dst_sgd-1049900.jsonl",
           "t5dst_sgd-000000.jsonl", "t5dst_sgd-predict.jsonl-00000-of-00001"]  # fmt: skip
  (tmp_path / "inference_eval").mkdir()
  for name in [*names, "t5dst_sgd-metrics.jsonl"]:
    (tmp_path / "inference_eval" / name).touch()
  found = steps.step_files(tmp_path, "test")
  assert list(found) == [None, 0, 900, 1049900]
  assert {step: [f.name for f in files] for step, files in found.items()} == {
    None: names[4:], 0: names[3:4], 900: names[:2], 1049900: names[2:3],
  }  # fmt: skip
  dialogues = tmp_path / "dialogues_001.json"
  dialogues.touch()
  assert steps.step_files(dialogues, "test") == {None: [dialogues]}


def test_curves_are_sorted_and_the_later_scores_of_a_step_count(tmp_path):
  # Resumed from step 20, which was evaluated again; then killed while writing step 40.
  other = {"step": 10, "jga": 0.1, "note": "text", "list": [1]}
  again = scores(20, jga=0.5), scores(30, jga=0.6), scores(20, jga=0.4)
  write(tmp_path, "t5dst_sgd", *again, "\n", other, '{"step": 40, "jg')
  for folder in (tmp_path, tmp_path / "inference_eval"):
    (curve,) = steps.curves(folder).values()
    assert curve[0] == (10, {"jga": 0.1})
    assert [(step, metrics["jga"]) for step, metrics in curve[1:]] == [(20, 0.4), (30, 0.6)]
  assert steps.curves(tmp_path / "nothing") == {}
  assert steps.rows(tmp_path / "nothing") == ()


@pytest.mark.parametrize(
  ("lines", "said"),
  [
    (['{"step": 10, "jg\n', {"step": 20}], "line 1: not valid JSON"),
    ([{"step": 10}, '{"step": 20, "jg\n'], "line 2: not valid JSON"),
    ([{"step": 10}, {"jga": 0.5}], "line 2: step None"),
    ([{"step": 10}, {"step": -1}], "line 2: step -1"),
    (["[]\n"], "line 1: not a JSON object"),
  ],
)
def test_a_broken_line_is_refused(tmp_path, lines, said):
  write(tmp_path, "t5dst_sgd", *lines)
  with pytest.raises(SgdxError, match=said) as error:
    steps.curves(tmp_path)
  assert "fix:" in error.value.text


def test_tasks_of_one_version_make_a_row(tmp_path):
  write(tmp_path, "sample_t5dst_sgd", scores(10, jga=0.8), scores(20, jga=0.5))
  write(tmp_path, "sample_t5dst_sgd_bt_zh", scores(10, jga=0.9))
  for k, variant in enumerate(SGDX_VARIANTS):
    write(tmp_path, f"sample_t5dst_sgdx_{variant}", scores(10, jga=k / 10))
  (first, row), (second, alone) = steps.rows(tmp_path)
  assert (first, second) == (10, 20)
  # By hand: the mean of 0 to .4 is .2; (.2 - .8) / .8 = -.75.
  assert shown(row) == pytest.approx({
    "jga_orig": 0.8, "jga_v1": 0.0, "jga_v2": 0.1, "jga_v3": 0.2, "jga_v4": 0.3, "jga_v5": 0.4,
    "jga_v1_5": 0.2, "diff_rel": -0.75, "num_frames": 10,
  })  # fmt: skip
  assert shown(alone) == {"jga_orig": 0.5, "num_frames": 10}
  assert set(row) == {*steps.KEYS, "num_frames"}


@pytest.mark.parametrize("other", [{"num_frames": 9}, {"incomplete": 1}])
def test_no_mean_over_different_frames(tmp_path, other):
  for variant in SGDX_VARIANTS:
    how = other if variant == "v5" else {}
    write(tmp_path, f"t5dst_sgdx_{variant}", scores(10, jga=0.5, **how))
  ((_, row),) = steps.rows(tmp_path)
  assert shown(row) == {f"jga_{variant}": 0.5 for variant in SGDX_VARIANTS}


def test_a_task_of_several_versions_comes_first(tmp_path):
  write(tmp_path, "t5dst_sgdx", scores(10, jga_v1=0.5, jga_v1_5=0.4, ss_jga=0.3))
  write(tmp_path, "t5dst_sgdx_v1", scores(10, num_frames=99, jga=0.9))
  write(tmp_path, "t5dst_sgd", scores(10, jga=0.8))
  ((_, row),) = steps.rows(tmp_path)
  assert shown(row) == pytest.approx({
    "jga_orig": 0.8, "jga_v1": 0.5, "jga_v1_5": 0.4, "ss_jga": 0.3, "diff_rel": -0.5,
    "num_frames": 10,
  })  # fmt: skip
  # The original is over other frames: both were cut off after the same number of prompts.
  write(tmp_path, "t5dst_sgd", scores(10, num_frames=50, jga=0.8))
  ((_, row),) = steps.rows(tmp_path)
  assert row["jga_orig"] == 0.8
  assert row["diff_rel"] is row["num_frames"] is None


@pytest.mark.parametrize("tasks", [("t5dst_sgd", "sample_t5dst_sgd"), ("t5dst_sgdx", "mine")])
def test_two_tasks_of_one_content_are_refused(tmp_path, tasks):
  for task in tasks:
    write(tmp_path, task, scores(10, jga=0.5, ss_jga=0.5))
  with pytest.raises(SgdxError, match="both evaluate") as error:
    steps.rows(tmp_path)
  assert error.value.available == ", ".join(sorted(tasks))


def examples(versions):
  """Two frames of one slot each: the first is wrong in v5, the second right everywhere."""
  targets, predictions = [], []
  for version in versions:
    for turn in (0, 2):
      target = {"id": f"{version}/dev/1-{turn:03}-Banks_1/type", "values": ["checking"]}
      targets.append(target | {"service_slots": 1, "categorical": True, "seen": True})
      predictions.append(None if (version, turn) == ("v5", 0) else "checking")
  return targets, predictions


def test_rows_of_what_the_metric_functions_say():
  # By hand: CoV of (1, 1, 1, 1, 0) is sqrt(.2) / .8 = .559, of the other frame 0.
  row = steps.as_row("t5dst_sgdx", schema_sensitivity(*examples(SGDX_VARIANTS)))
  five = {"jga_v4": 1.0, "jga_v5": 0.5, "jga_v1_5": 0.9, "ss_jga": 0.2**0.5 / 0.8 / 2}
  assert {key: row[key] for key in five} == pytest.approx(five)
  assert row["jga_orig"] is None
  assert row["num_frames"] == 2
  whole = steps.as_row("six", schema_sensitivity(*examples([ORIGINAL, *SGDX_VARIANTS])))
  assert all(whole[key] is not None for key in steps.KEYS)
  for task, key in {"t5dst_sgd": "jga_orig", "sample_t5dst_sgdx_v5": "jga_v5"}.items():
    row = steps.as_row(task, joint_goal_accuracy(*examples(["v5"])))
    assert shown(row) == {key: 0.5, "num_frames": 2}


def test_versions_are_known_by_the_names_of_tasks():
  from sgdx_t5x import tasks

  for name, task in tasks.REGISTERED.items():
    if not task.mixture and task.format in FORMATS:  # the others score single turns
      known = len(task.variants) == 1 and task.variants[0] in (ORIGINAL, *SGDX_VARIANTS)
      row = steps.as_row(name, {"jga": 0.5})
      suffix = "orig" if task.variants[0] == ORIGINAL else task.variants[0]
      assert shown(row) == ({f"jga_{suffix}": 0.5} if known else {}), name
