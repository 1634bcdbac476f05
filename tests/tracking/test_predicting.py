"""Predictions of a split: written whole, resumed, never mixed; what cannot be tracked."""

import dataclasses
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import types

import pytest
from commands import assert_four_parts, sgdx
from places import SUPPORT
from rule_tracker import RuleTracker
from sample_folder import write_sample
from tiny_corpus import mark_perturbed

from sgdx_t5x.cli import track as cli_track
from sgdx_t5x.corpus.dialogue import frame_id, write_dialogues
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import parse_schema
from sgdx_t5x.corpus.subset import Subset
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.signature import package_version
from sgdx_t5x.spandst.span_text import SpanStyle
from sgdx_t5x.tracking import predicting
from sgdx_t5x.tracking.predicting import track_split
from sgdx_t5x.tracking.spandst import SpanDST


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  folder = write_sample(tmp_path_factory.mktemp("corpus") / "sample", {"train": 0, "dev": 12})
  return open_corpus(folder)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
  monkeypatch.setattr(predicting, "_BLOCK", 5)


def track(corpus, out, tracker, *variants, split="dev", extra=None, **how):
  schemas = {variant: corpus.schema(split, variant) for variant in variants or ("original", "v1")}
  if extra is not None:
    schemas[extra] = corpus.schema(split)
  return list(track_split(tracker, corpus, split, schemas, out, **how))


def contents(folder):
  return {x.relative_to(folder): x.read_bytes() for x in folder.rglob("*") if x.is_file()}


def test_what_is_written_is_scored(corpus, tmp_path):
  seen = []
  found = track(corpus, tmp_path / "out", RuleTracker(), on_progress=lambda *x: seen.append(x))
  frames = sum(1 for x in corpus.dialogues("dev") for _ in x.user_frames())
  assert [(x.folder.name, x.frames, x.resumed) for x in found] == [
    ("original", frames, 0),
    ("v1", frames, 0),
  ]
  assert seen[-1] == (2 * frames, 2 * frames)
  assert seen == sorted(seen)
  assert sorted(x.name for x in (tmp_path / "out/v1").iterdir()) == [
    "dialogues_001.json",
    "dialogues_002.json",
    "dialogues_003.json",
  ]
  predictions = [f"{v}={tmp_path}/out/{v}" for v in ("original", "v1")]
  options = ["--json", tmp_path / "scores.json", "--bootstrap-samples", "0"]
  command = ("score", "--corpus", corpus.origin, "--split", "dev", "--predictions", *predictions)
  assert sgdx(*command, *options) == 0
  scores = json.loads((tmp_path / "scores.json").read_text())
  assert scores["complete"] is True
  rules = scores["variants"]["v1"]["#ALL_SERVICES"]
  # The rules find some values, and no intent but NONE.
  assert 0.1 < rules["average_cat_accuracy"] < 1
  assert rules["active_intent_accuracy"] < 0.5


class _OnlyScored(RuleTracker):
  """Tracks only frames that are scored, as prompted trackers do."""

  def track(self, dialogues, shown):
    scored = {frame_id(x.dialogue_id, i, f.service) for x in dialogues for i, f in x.user_frames()}
    for found in super().track(dialogues, shown):
      yield {name: frame for name, frame in found.items() if name in scored}


@pytest.mark.parametrize("kind", [RuleTracker, _OnlyScored])
def test_of_counterfactuals_only_the_last_turn_counts(corpus, kind, tmp_path, monkeypatch):
  folder = shutil.copytree(corpus.origin, tmp_path / "coco")
  file = folder / "dev/dialogues_001.json"
  dialogues = json.loads(file.read_text())
  for dialogue in dialogues:
    del dialogue["turns"][-1]  # a counterfactual ends with what the user says
  file.write_text(json.dumps(dialogues))
  coco, seen = open_corpus(mark_perturbed(folder, monkeypatch, "coco", "dev", scored="last")), []
  [one] = track(coco, tmp_path / "out", kind(), "original", on_progress=lambda *x: seen.append(x))
  assert one.frames == sum(1 for x in coco.dialogues("dev") for _ in x.user_frames())
  assert seen == sorted(seen)
  assert seen[-1] == (one.frames, one.frames)
  options = ("--split", "dev", "--predictions", f"original={one.folder}")
  assert sgdx("score", "--corpus", coco.origin, *options, "--bootstrap-samples", "0") == 0


def test_what_was_killed_goes_on_and_asks_nothing_again(corpus, tmp_path):
  whole = RuleTracker()
  track(corpus, tmp_path / "whole", whole)
  for stop_after in (1, len(whole.asked) // 3, len(whole.asked) - 1):
    out = tmp_path / str(stop_after)
    first = RuleTracker(stop_after=stop_after)
    with pytest.raises(KeyboardInterrupt):
      track(corpus, out, first)
    kept = set()
    for path in out.rglob("dialogues_*.json"):
      kept |= {(path.parent.name, x["dialogue_id"]) for x in json.loads(path.read_text())}
    second = RuleTracker()
    found = track(corpus, out, second)
    assert contents(out) == contents(tmp_path / "whole")
    assert len(second.asked) == len(whole.asked) - sum(x.resumed for x in found)
    assert len(first.asked) + len(second.asked) - len(whole.asked) < 5 * 30  # frames in one block
    assert bool(kept) == any(x.resumed for x in found)
  third = RuleTracker()
  track(corpus, tmp_path / "whole", third)
  assert not third.asked


def test_an_interrupted_command_says_how_to_resume(corpus, tmp_path, monkeypatch, capsys):
  trackers = [RuleTracker(stop_after=90), RuleTracker()]
  monkeypatch.setattr(cli_track, "_open", lambda args: trackers.pop(0))
  command = ("track", "rules", "--corpus", corpus.origin, "--split", "dev", "--out", tmp_path)
  command += ("--variant", "original", "v1")
  assert sgdx(*command) == 130
  assert capsys.readouterr().err.endswith(
    "sgdx: interrupted; run the same command again to resume\n"
  )
  assert list((tmp_path / "original").iterdir())
  assert sgdx(*command) == 0
  assert "of them from an earlier run" in capsys.readouterr().err


def test_a_killed_process_leaves_whole_files(corpus, tmp_path):
  code = (
    "import sys, time; from rule_tracker import RuleTracker\n"
    "from sgdx_t5x.corpus.opening import open_corpus\n"
    "from sgdx_t5x.tracking import predicting; import pathlib\n"
    "predicting._BLOCK = 1\n"
    "corpus = open_corpus(sys.argv[1])\n"
    "slow = lambda done, total: time.sleep(0.02)\n"
    "list(predicting.track_split(RuleTracker(), corpus, 'dev',"
    " {'v1': corpus.schema('dev', 'v1')}, pathlib.Path(sys.argv[2]), on_progress=slow))\n"
  )
  path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
  out = tmp_path / "out"
  run = subprocess.Popen(
    [sys.executable, "-c", code, corpus.origin, out], env={**os.environ, "PYTHONPATH": path}
  )
  while not (out / "v1/dialogues_002.json").exists():
    assert run.poll() is None
    time.sleep(0.01)
  run.send_signal(signal.SIGKILL)
  run.wait()
  written = sorted((out / "v1").glob("dialogues_*.json"))
  assert written
  assert all(json.loads(x.read_text()) for x in written)


def test_other_settings_are_refused_and_begun_anew_on_demand(corpus, tmp_path):
  out = tmp_path / "out"
  track(corpus, out, RuleTracker(settings={"weights": "aaaa"}))
  before = contents(out)
  other = RuleTracker(settings={"weights": "bbbb"})
  with pytest.raises(SgdxError) as e:
    track(corpus, out, other)
  assert_four_parts(e.value.text, "tracker weights aaaa, now bbbb", "--overwrite")
  few = Subset(corpus, {"dev": 5})
  with pytest.raises(SgdxError, match="corpus dialogues 12, now 5"):
    track(few, out, RuleTracker(settings={"weights": "aaaa"}))
  assert contents(out) == before
  assert not other.asked
  # Rules and features are code: predictions of two versions are not mixed.
  manifest = (out / "track.json").read_text()
  (out / "track.json").write_text(manifest.replace(f'"{package_version()}"', '"0.0.1"'))
  with pytest.raises(SgdxError, match=r"version 0\.0\.1 of sgdx_t5x, now"):
    track(corpus, out, RuleTracker(settings={"weights": "aaaa"}))
  (out / "track.json").write_text(manifest)
  # Another variant may join; another schema under an old name may not.
  track(corpus, out, RuleTracker(settings={"weights": "aaaa"}), "v2")
  assert set(before) < set(contents(out))
  schemas = {"v2": corpus.schema("dev", "v3")}
  with pytest.raises(SgdxError, match="the schema of v2 differs"):
    list(track_split(RuleTracker(settings={"weights": "aaaa"}), corpus, "dev", schemas, out))
  track(few, out, other, "original", overwrite=True)
  assert sorted(x.name for x in out.iterdir()) == ["original", "track.json"]
  assert len(list((out / "original").iterdir())) == 1


def test_a_folder_of_other_files_is_left_alone(corpus, tmp_path):
  (tmp_path / "precious.txt").write_text("x")
  for overwrite in (False, True):
    with pytest.raises(SgdxError) as e:
      track(corpus, tmp_path, RuleTracker(), overwrite=overwrite)
    assert_four_parts(e.value.text, "precious.txt")
  (tmp_path / "precious.txt").unlink()
  (tmp_path / "track.json").write_text("{}")
  with pytest.raises(SgdxError, match="unknown format"):
    track(corpus, tmp_path, RuleTracker())


def test_a_folder_that_no_run_wrote_is_not_taken_for_predictions(corpus, tmp_path):
  out = tmp_path / "out"
  track(corpus, out, RuleTracker(), "original")
  (out / "v1").mkdir()
  (out / "v1/dialogues_001.json").write_text("[]")
  for overwrite in (False, True):
    with pytest.raises(SgdxError) as e:
      track(corpus, out, RuleTracker(), "v1", overwrite=overwrite)
    assert_four_parts(e.value.text, "v1 is not the output of an earlier")


def test_predictions_that_cannot_be_removed_are_not_taken_for_new_ones(
  corpus, tmp_path, monkeypatch
):
  """As of a folder that is protected, or of another user."""
  out = tmp_path / "out"
  track(corpus, out, RuleTracker(settings={"weights": "aaaa"}), "original")

  def refuses(folder, ignore_errors=False):
    if not ignore_errors:
      raise PermissionError(13, "Permission denied", str(folder))

  monkeypatch.setattr(shutil, "rmtree", refuses)
  other = RuleTracker(settings={"weights": "bbbb"})
  with pytest.raises(PermissionError):
    track(corpus, out, other, "original", overwrite=True)
  assert "aaaa" in (out / "track.json").read_text()


@pytest.mark.parametrize("name", ["..", "", "a/b"])
def test_starting_over_removes_nothing_outside_the_folder(name, corpus, tmp_path):
  """Regression: a variant called ".." emptied the parent folder."""
  out = tmp_path / "out"
  with pytest.raises(SgdxError) as e:
    track(corpus, out, RuleTracker(), "original", extra=name)
  assert_four_parts(e.value.text, repr(name), "a folder's name")
  track(corpus, out, RuleTracker(), "original")
  (tmp_path / "precious.txt").write_text("x")
  manifest = json.loads((out / "track.json").read_text())
  manifest["variants"][name] = "x"
  (out / "track.json").write_text(json.dumps(manifest))
  before = contents(tmp_path)
  with pytest.raises(SgdxError, match="unknown format"):
    track(corpus, out, RuleTracker(), overwrite=True)
  assert contents(tmp_path) == before


def without_acts(corpus, folder):
  """Writes and opens two dialogues of the corpus without acts."""
  dialogues = [
    dataclasses.replace(
      dialogue,
      turns=tuple(
        dataclasses.replace(
          turn, frames=tuple(dataclasses.replace(f, actions=None) for f in turn.frames)
        )
        for turn in dialogue.turns
      ),
    )
    for dialogue in itertools.islice(corpus.dialogues("dev"), 2)
  ]
  write_sample(folder, {"train": 0, "dev": 0, "test": 0})
  (folder / "dev/dialogues_001.json").write_text(write_dialogues(dialogues))
  return open_corpus(folder)


def test_a_corpus_without_acts_is_refused_by_who_reads_them(corpus, tmp_path):
  bare = without_acts(corpus, tmp_path / "sample")
  reader = RuleTracker(reads_acts=True)
  with pytest.raises(SgdxError) as e:
    track(bare, tmp_path / "out", reader)
  assert_four_parts(e.value.text, "turn 1", "Rules", "T5DST")
  assert not reader.asked
  assert not (tmp_path / "out").exists()
  assert track(bare, tmp_path / "out", RuleTracker(reads_acts=False))[0].frames


def test_a_span_tracker_reads_plain_text_if_it_was_trained_on_it():
  for share, refuses in ((0.0, True), (0.5, False)):
    tracker = SpanDST(types.SimpleNamespace(), SpanStyle(plain_text=share), None)
    assert tracker.needs_acts is refuses
    assert tracker.reads_acts


def test_schemas_that_cannot_be_tracked(corpus, tmp_path):
  with pytest.raises(SgdxError, match="slots too many"):
    track(corpus, tmp_path / "out", RuleTracker(most_slots=3))
  empty = {"service_name": "Empty_1", "description": "", "slots": []}
  intent = {"name": "Do", "description": "", "is_transactional": False}
  empty["intents"] = [{**intent, "required_slots": [], "optional_slots": {}}]
  with pytest.raises(SgdxError) as e:
    predicting.check_services(parse_schema([empty], "mine.json"))
  assert_four_parts(e.value.text, "mine.json: service Empty_1 has no slots")
  nothing = {"train": 0, "dev": 0, "test": 0}
  with pytest.raises(SgdxError, match="nothing to track"):
    track(open_corpus(write_sample(tmp_path / "s", nothing)), tmp_path / "o", RuleTracker())
