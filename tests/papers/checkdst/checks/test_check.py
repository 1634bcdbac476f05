"""Checks of planted trackers give exactly known numbers, on the sample and the mini corpus."""

import json
import re
import shutil

import pytest
from commands import sgdx
from places import ROOT
from planted import TRACKERS, write_planted
from sample_folder import write_sample

from sgdx_t5x.corpus import provenance
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.papers.checkdst import ned, sdi, vs
from sgdx_t5x.papers.checkdst.checks import check, check_report
from sgdx_t5x.papers.checkdst.checks.compare import compare
from sgdx_t5x.papers.checkdst.checks.files import read_check, read_report, save
from sgdx_t5x.papers.checkdst.split import Split
from sgdx_t5x.papers.checkdst.write import write_perturbed

KINDS = {"ned": ned, "sdi": sdi, "vs": vs}
NAMES = {  # keys of golden/perturb/expected.json -> ours, where they differ
  "jga_of_original_there": "before",
  "mended": "fixed",
  "drop_rel": "drop",
  "jga_perturbed": "perturbed",
  "frames_changed": "num_changed",
  "predicted_entities": "num_entities",
  "reverted_of": "num_changed_entities",
  "coref_frames": "num_coref_frames",
}


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
  """Name -> corpus: some test dialogues of the sample, and the sets perturbed from them."""
  folder = tmp_path_factory.mktemp("sets")
  write_sample(folder / "sample", {"train": 40, "dev": 0, "test": 60})
  corpus = open_corpus(folder / "sample")
  found = {"original": corpus}
  for name, kind in KINDS.items():
    split = Split(corpus, "test")
    write_perturbed(kind.perturber(split, 0), split, 0, folder / name)
    found[name] = open_corpus(folder / name)
  return found


@pytest.fixture(scope="module")
def planted(sets, tmp_path_factory):
  """Tracker -> name of the set -> folder of its predictions."""
  folder = tmp_path_factory.mktemp("predictions")
  return {
    tracker: {
      name: write_planted(folder / tracker / name, tracker, sets["original"], corpus)
      for name, corpus in sets.items()
    }
    for tracker in TRACKERS
  }


@pytest.fixture(scope="module")
def checked(sets, planted):
  """Tracker -> its check, without intervals."""
  perturbed = {name: corpus for name, corpus in sets.items() if name != "original"}
  return {
    tracker: check(sets["original"], "test", perturbed, predictions, bootstrap_samples=0)
    for tracker, predictions in planted.items()
  }


def everything(checked, name):
  return check_report(checked)["sets"][name]["rows"]["all"]


def shares(row):
  """The fractions that are not None."""
  return {k: x for k, x in row.items() if x is not None and not k.startswith("num_")}


def test_variants_of_ones_own_are_checked(sets, planted, tmp_path):
  """Regression: --schemas had no effect, and neither corrupt_k nor variants of one's own passed."""
  mine = tmp_path / "mine/test/schema.json"
  mine.parent.mkdir(parents=True)
  mine.write_text(json.dumps(sets["original"].schema("test", "v2").to_json()))
  gold = planted["gold"]
  found = {"original": gold["original"], "mine": gold["original"], "corrupt_1": gold["original"]}
  found |= {"ned": gold["ned"], "ned+mine": gold["ned"]}
  perturbed, how = {"ned": sets["ned"]}, {"schemas": {"mine": tmp_path / "mine"}}
  checked = check(sets["original"], "test", perturbed, found, bootstrap_samples=0, **how)
  # By set; then original and v1 to v5; then as they were given.
  assert list(checked.sets) == ["original", "mine", "corrupt_1", "ned", "ned+mine"]
  assert re.search(r"\|schemas:mine=[0-9a-f]{8}\|", checked.signature)
  with pytest.raises(UsageError, match=r"(?s)predictions for mine\n.*--schemas NAME=DIR"):
    check(sets["original"], "test", perturbed, found, bootstrap_samples=0)


def test_gold_is_right_everywhere(checked):
  zero = {"broken", "fixed", "drop", "reverted", "repair_taken"}
  for name in ("original", *KINDS):
    numbers = shares(everything(checked["gold"], name))
    assert numbers == {key: float(key not in zero) for key in numbers}
    for key in ("jga", "factuality", "slot_f1", "coref_jga", "coref_new_slot_accuracy"):
      assert numbers[key] == 1
  assert everything(checked["gold"], "ned")["reverted"] == 0
  assert everything(checked["gold"], "sdi")["num_repairs"] > 10


def test_frozen_answers_from_memory(checked):
  for name in ("ned", "vs"):
    row = everything(checked["frozen"], name)
    assert row["num_changed"] > 100
    assert (row["before"], row["perturbed"], row["cjga"], row["broken"]) == (1, 0, 0, 1)
    assert (row["retained"], row["drop"]) == (0, -1)
    # Where two values of a dialogue are swapped, each is both an old and a new value.
    assert row["reverted"] == 1 if name == "ned" else 0.9 < row["reverted"] < 1
  assert shares(everything(checked["frozen"], "sdi")) == shares(everything(checked["gold"], "sdi"))
  assert everything(checked["frozen"], "ned")["factuality"] < 0.05


def test_blind_to_coreference(checked, sets):
  counts = [provenance.count(x) for x in sets["original"].dialogues("test")]
  carried = sum(count["carried_frames"] for count in counts)
  row = everything(checked["blind"], "original")
  assert row["num_coref_frames"] == carried > 0
  assert row["jga"] == pytest.approx(1 - carried / row["num_frames"])
  for name in ("original", "ned", "sdi"):
    row = everything(checked["blind"], name)
    assert row["coref_jga"] == row["coref_slot_accuracy"] == row["coref_new_slot_accuracy"] == 0
    assert row["accepted_jga"] == row["slot_precision"] == 1


def test_taker_of_what_was_taken_back(checked):
  row = everything(checked["taker"], "sdi")
  assert row["repair_taken"] == 1
  assert row["before"] == 1
  assert 0 < row["broken"] == pytest.approx(1 - row["perturbed"])
  assert row["factuality"] == 1  # its values have been mentioned
  assert everything(checked["taker"], "ned")["cjga"] == 1


def test_silent_is_predict_nothing(checked, sets, planted):
  from sgdx_t5x import scoring

  scored = scoring.score_predictions(
    sets["original"], "test", {"original": planted["silent"]["original"]}, bootstrap_samples=0
  )
  floor = scoring.score_report(scored)["predict_nothing"]["all"]["jga_orig"]
  for name in ("original", *KINDS):
    row = everything(checked["silent"], name)
    assert row["jga"] == floor
    assert row["factuality"] is row["slot_precision"] is None
    assert row["slot_recall"] == 0
  assert everything(checked["silent"], "ned")["before"] == 0
  assert everything(checked["silent"], "ned")["drop"] is None


def test_groups_domains_and_services(checked):
  rows = check_report(checked["blind"], per_service=True)["sets"]["ned"]["rows"]
  parts = [rows["seen"], rows["unseen"]]
  for key in ("num_frames", "num_changed", "num_carried"):
    assert rows["all"][key] == sum(part[key] for part in parts)
    assert rows["all"][key] == sum(row[key] for row in rows["services"].values())
    assert rows["all"][key] == sum(row[key] for row in rows["domains"].values())


def test_variants_cross_with_sets(sets, planted):
  """The schema of v3 has other names; DSTC8 predictions may use those of the original."""
  predictions = {
    "original": planted["gold"]["original"],
    "v3": planted["blind"]["original"],
    "ned+v3": planted["blind"]["ned"],
    "vs+v2": planted["gold"]["vs"],
  }
  perturbed = {name: sets[name] for name in ("ned", "vs")}
  found = check(sets["original"], "test", perturbed, predictions, bootstrap_samples=0)
  sets_of = check_report(found)["sets"]
  assert list(sets_of) == ["original", "v3", "ned+v3", "vs+v2"]
  assert [x["compared_with"] for x in sets_of.values()] == [None, None, "v3", None]
  row = sets_of["ned+v3"]["rows"]["all"]
  assert row["before"] == row["perturbed"] == row["cjga"] < 1
  assert any("no predictions v2=" in note for note in found.notes)


def test_two_checks(checked, tmp_path):
  paths = []
  for tracker in ("gold", "frozen"):
    path = tmp_path / f"{tracker}.json"
    save(check_report(checked[tracker]), checked[tracker], path, tmp_path / f"{tracker}.jsonl")
    paths.append(path)
  a, b = map(read_check, paths)
  assert a.sets["ned"].counts.sums() == checked["gold"].sets["ned"].counts.sums()
  found = compare(a, b, bootstrap_samples=100)
  numbers = found["sets"]["ned"]["all"]["differences"]
  assert numbers["cjga"] == {
    "a": 1,
    "b": 0,
    "difference": -1,
    "ci95": [-1, -1],
    "p": pytest.approx(2 / 101),
  }
  assert numbers["reverted"]["difference"] == 1
  assert found["sets"]["sdi"]["seen"]["differences"]["jga"]["p"] == 1
  options = ("--bootstrap-samples", 100, "--json", tmp_path / "diff.json")
  assert sgdx("checkdst", "diff", *paths, *options) == 0
  assert json.loads((tmp_path / "diff.json").read_text())["format"] == "sgdx-check-diff/1"


# --- bad input -----------------------------------------------------------------------------


def test_what_is_refused(sets, planted, tmp_path):
  gold, original = planted["gold"], sets["original"]

  def run(perturbed, predictions):
    check(original, "test", perturbed, predictions, bootstrap_samples=0)

  with pytest.raises(UsageError, match="no predictions for original"):
    run({"ned": sets["ned"]}, {"ned": gold["ned"]})
  with pytest.raises(UsageError, match="no predictions for ned"):
    run({"ned": sets["ned"]}, {"original": gold["original"]})
  with pytest.raises(UsageError, match="predictions for pi"):
    run({"ned": sets["ned"]}, {"original": gold["original"], "pi": gold["ned"]})
  both = {"ned": gold["ned"], "ned+original": gold["ned"]}
  with pytest.raises(UsageError, match="which mean the same"):
    run({"ned": sets["ned"]}, {"original": gold["original"], **both})
  with pytest.raises(SgdxError, match="differs from the user turn in the corpus"):  # of another set
    run({"ned": sets["ned"]}, {"original": gold["original"], "ned": gold["original"]})
  for name in ("v3", "all"):  # predictions for "all" would be those of every set
    with pytest.raises(UsageError, match=f"a perturbed set named '{name}'"):
      run({name: sets["ned"]}, {"original": gold["original"]})
  plain = write_sample(tmp_path / "plain", {"train": 0, "dev": 0, "test": 3})
  with pytest.raises(SgdxError, match="the set is named 'mine'"):
    run({"mine": plain}, {"original": gold["original"], "mine": gold["ned"]})
  with pytest.raises(SgdxError, match="was made from sample:"):
    check(plain, "test", {"ned": sets["ned"]}, {"original": "x", "ned": "y"})


def test_files_that_are_no_checks(tmp_path, checked):
  path = tmp_path / "check.json"
  path.write_text("{}")
  with pytest.raises(SgdxError, match="not a report of `sgdx checkdst check`"):
    read_report(path)
  save(check_report(checked["gold"]), checked["gold"], path, None)
  with pytest.raises(SgdxError, match="does not refer to per-frame counts"):
    read_check(path)
  save(check_report(checked["gold"]), checked["gold"], path, tmp_path / "x.jsonl")
  with (tmp_path / "x.jsonl").open("a") as file:
    file.write("[]\n")
  with pytest.raises(SgdxError, match="were written by different runs"):
    read_check(path)


# --- SGD -----------------------------------------------------------------------------------


@pytest.mark.real
@pytest.mark.long
def test_sgd(real_archive, tmp_path):
  """Blind on the original, frozen on ned: counts of ../shared/notes/checkdst-coco.md, 1.7."""
  corpus = open_corpus(real_archive)
  split = Split(corpus, "test")
  write_perturbed(ned.perturber(split, 0), split, 0, tmp_path / "ned")
  perturbed = open_corpus(tmp_path / "ned")
  test = tmp_path / "ned" / "test"
  undo = sum((test / name).stat().st_size for name in ("changes.jsonl", "perturbation.json"))
  assert undo <= 0.15 * sum(file.stat().st_size for file in test.glob("dialogues_*.json"))
  predictions = {
    "original": write_planted(tmp_path / "blind", "blind", corpus, corpus),
    "ned": write_planted(tmp_path / "frozen", "frozen", corpus, perturbed),
  }
  found = check(corpus, "test", {"ned": perturbed}, predictions, bootstrap_samples=0)
  row = everything(found, "original")
  assert row["jga"] == pytest.approx(1 - 5_684 / 26_802)
  assert (row["num_coref_frames"], row["coref_jga"], row["accepted_jga"]) == (5_684, 0, 1)
  assert (row["num_carried"], row["num_carried_new"]) == (6_822, 1_567)
  row = everything(found, "ned")
  assert row["num_changed"] >= 23_150
  assert (row["perturbed"], row["reverted"]) == (0, 1)
  assert row["num_entities"] == 35_239
  assert 0.7 < row["from_train"] < 0.8  # from train's 10,560 values


# --- the mini corpus of tests/papers/fixtures/perturb ------------------------------------------


def test_the_mini_corpus(tmp_path):
  golden = ROOT / "tests/papers/fixtures/perturb"
  for name in ("original", "ned", "pi", "sdi"):
    dialogues = json.loads((golden / name / "test" / "dialogues_001.json").read_text())
    states = json.loads((golden / f"predictions_{name}.json").read_text())
    for dialogue in dialogues:
      for number, turn in enumerate(dialogue["turns"]):
        for frame in turn["frames"] if turn["speaker"] == "USER" else ():
          key = f"{dialogue['dialogue_id']}-{number:03d}-{frame['service']}"
          frame["state"]["slot_values"] = {slot: [x] for slot, x in states[key].items()}
    (tmp_path / name).mkdir()
    (tmp_path / name / "dialogues_001.json").write_text(json.dumps(dialogues))
  kinds = ("ned", "pi", "sdi")
  command = ["checkdst", "check", "--corpus", golden / "original"]
  command += ["--fuzzy", "exact", "--per-service"]
  command += ["--perturbed", *(f"{kind}={golden / kind}" for kind in kinds)]
  command += ["--predictions", *(f"{x}={tmp_path / x}" for x in ("original", *kinds))]
  assert sgdx(*command, "--json", tmp_path / "check.json") == 0
  report = json.loads((tmp_path / "check.json").read_text())
  expected = json.loads((golden / "expected.json").read_text())
  names = [f"{service}.{slot}" for service, slots in report["names"].items() for slot in slots]
  assert names == expected["entity_slots"]
  for name, numbers in expected["metrics"].items():
    row = report["sets"][name]["rows"]["all"]
    assert len(numbers.pop("hallucinated")) == row["num_hallucinated"]
    found = {key: row[NAMES.get(key, key)] for key in numbers}
    assert found == pytest.approx(numbers, abs=1e-9), name
  assert sum("fewer than 100" in note for note in report["notes"]) == 3


def _saved(sets, predictions, folder, name, **how):
  perturbed = {"ned": sets["ned"]}
  found = check(sets["original"], "test", perturbed, predictions, bootstrap_samples=0, **how)
  save(check_report(found), found, folder / name, folder / f"{name}l")
  return read_check(folder / name)


def test_a_comparison_is_over_frames_whose_originals_both_have(sets, planted, tmp_path):
  """Regression: the same tracker differed from itself without some of the original's answers."""
  whole = {name: planted["blind"][name] for name in ("original", "ned")}
  part = tmp_path / "part"
  shutil.copytree(whole["original"], part)
  for path in part.rglob("dialogues_*.json"):
    path.write_text(json.dumps(json.loads(path.read_text())[::2]))
  a = _saved(sets, whole, tmp_path, "a.json")
  b = _saved(sets, whole | {"original": part}, tmp_path, "b.json", allow_missing=True)
  with pytest.raises(SgdxError, match=r"frames, with their originals, are in both"):
    compare(a, b, bootstrap_samples=100)
  found = compare(a, b, bootstrap_samples=100, allow_missing=True)
  row = found["sets"]["ned"]["all"]
  assert 0 < row["num_changed"] < a.sets["ned"].counts.sums()["changed"]
  assert {x["difference"] for x in row["differences"].values()} <= {0, None}
  assert any(line.startswith("ned: only") for line in found["warnings"])
  assert "coref_jga_sticky" in row["differences"]


def test_checks_without_a_frame_in_common_need_more_than_an_option(sets, planted, tmp_path):
  """Regression: --allow-missing was proposed even where it had been given."""
  tables = []
  for number in (0, 1):
    predictions = {}
    for name in ("original", "ned"):
      predictions[name] = tmp_path / f"{name}{number}"
      shutil.copytree(planted["gold"][name], predictions[name])
      for path in predictions[name].rglob("dialogues_*.json"):
        path.write_text(json.dumps(json.loads(path.read_text())[number::2]))
    tables.append(_saved(sets, predictions, tmp_path, f"{number}.json", allow_missing=True))
  with pytest.raises(SgdxError, match=r"original: only 0 of .*are in both") as error:
    compare(*tables, bootstrap_samples=100, allow_missing=True)
  assert error.value.fix == "complete the predictions"


def test_each_set_says_what_it_lacks(sets, planted, tmp_path):
  """Regression: a set that lacks as many frames as the original did not."""
  predictions = {}
  for name in ("original", "ned"):
    predictions[name] = tmp_path / name
    shutil.copytree(planted["gold"][name], predictions[name])
    for path in predictions[name].rglob("dialogues_*.json"):
      path.write_text(json.dumps(json.loads(path.read_text())[::2]))
  perturbed, how = {"ned": sets["ned"]}, {"bootstrap_samples": 0, "allow_missing": True}
  found = check(sets["original"], "test", perturbed, predictions, **how)
  assert [line.startswith("ned: ") for line in found.warnings if "no prediction" in line] == [
    False, True,
  ]  # fmt: skip


def test_the_original_set_may_be_named(sets, planted):
  """Regression: a KeyError."""
  gold = planted["gold"]
  predictions = {"original": gold["original"], "original+v1": gold["original"]}
  predictions |= {"ned": gold["ned"], "ned+v1": gold["ned"]}
  perturbed = {"ned": sets["ned"]}
  found = check(sets["original"], "test", perturbed, predictions, bootstrap_samples=0)
  assert {label: x.compared_with for label, x in found.sets.items()} == {
    "original": "", "v1": "", "ned": "original", "ned+v1": "v1",
  }  # fmt: skip
