"""Counterfactual turns of the sample: what holds for each of them, and the command's files."""

import json
import pathlib
import random
import shutil

import pytest
from commands import assert_four_parts, sgdx
from perturbed import on_split, sample_dialogues, sample_split, write_sample
from sample_folder import few_in_train

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.checkdst.changes import read_changes
from sgdx_t5x.papers.checkdst.split import Split
from sgdx_t5x.papers.coco.coco_values import value_source
from sgdx_t5x.papers.coco.coco_words import read_answers, read_candidates

COCO = ("coco", "perturb", "--corpus", "sample")
VERIFY = ("checkdst", "verify")
WAYS = (
  ("templates", ("--slots", "neutral")),
  ("exchange", ("--generator", "exchange", "--plus")),
  ("in", ("--values", "in")),
)


@pytest.fixture(scope="module", autouse=True)
def few():
  """Combinations are counted in train, of which a tenth is enough."""
  with pytest.MonkeyPatch.context() as patch:
    few_in_train(patch)
    yield


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
  folder = tmp_path_factory.mktemp("coco")
  for name, options in WAYS:
    assert sgdx(*COCO, "--out", folder / name, *options) == 0
  return folder


def _dialogues(folder: pathlib.Path) -> dict[str, dict]:
  return {
    data["dialogue_id"]: data
    for path in sorted((folder / "test").glob("dialogues_*.json"))
    for data in json.loads(path.read_text())
  }


@pytest.mark.parametrize("name", [name for name, _ in WAYS])
def test_a_set_and_its_control_keep_every_rule_but_one(sets, name, capsys):
  for folder, kind in ((sets / name, "coco"), (sets / f"{name}_ori", "coco_ori")):
    assert sgdx(*VERIFY, "--corpus", folder, "--against", "sample") == 0
    found = open_corpus(folder)
    assert found.name == f"sample+{kind}"
    assert found.scores_last_turns("test")
    assert f"all invariants of {kind} hold" in capsys.readouterr().out


def test_most_turns_that_tell_something_have_a_counterfactual(sets):
  counts = open_corpus(sets / "templates").manifest("test").counts
  assert counts["eligible"] == sum(
    any(a["act"] == "INFORM" for frame in turn["frames"] for a in frame["actions"])
    for data in sample_dialogues()
    for turn in data["turns"][::2]
  )
  assert counts["generated"] + sum(counts["kept"].values()) == counts["eligible"]
  assert counts["generated"] > 0.9 * counts["eligible"]  # the target for real SGD
  assert sum(counts["source"].values()) == counts["generated"] == counts["dialogues"]


def test_the_state_is_the_one_before_with_what_is_told(sets):
  originals = {data["dialogue_id"]: data for data in sample_dialogues()}
  lines = read_changes(open_corpus(sets / "templates"), "test")
  dropped = added = changed = 0
  for name, data in _dialogues(sets / "templates").items():
    line, turn = lines[name][0], data["turns"][-1]
    frame = next(f for f in turn["frames"] if f["service"] == line["service"])
    state, before = frame["state"]["slot_values"], {}
    for each in originals[line["of"]]["turns"][: line["turn"] : 2]:
      for old in each["frames"]:
        if old["service"] == line["service"]:
          before = old["state"]["slot_values"]
    for slot in line["dropped"]:
      assert state.get(slot) == before.get(slot)
    told = {slot: new for slot, (_, new) in line["changed"].items()} | line["added"]
    for slot, said in told.items():
      assert state[slot] == [said]
      assert said != originals[line["of"]]["turns"][line["turn"]]
    for slot, (old, new) in line["changed"].items():
      assert old != new
      assert slot not in line["dropped"]
    assert line["dropped"] or told
    dropped, added = dropped + len(line["dropped"]), added + len(line["added"])
    changed += len(line["changed"])
  assert min(dropped, added, changed) > 50


def test_the_control_has_the_original_goal_in_the_generators_words(sets):
  originals = {data["dialogue_id"]: data for data in sample_dialogues()}
  lines, differs = read_changes(open_corpus(sets / "templates_ori"), "test"), 0
  for name, data in _dialogues(sets / "templates_ori").items():
    line, turn = lines[name][0], data["turns"][-1]
    before = originals[line["of"]]["turns"][line["turn"]]
    assert [f["state"] for f in turn["frames"]] == [f["state"] for f in before["frames"]]
    assert [f["actions"] for f in turn["frames"]] == [f["actions"] for f in before["frames"]]
    differs += turn["utterance"] != before["utterance"]
  assert differs > 0.8 * len(lines)


def test_coco_plus_substitutes_where_no_words_are_found(sets):
  counts = open_corpus(sets / "exchange").manifest("test").counts
  assert set(counts["source"]) == {"exchange", "vs"}
  controls = _dialogues(sets / "exchange_ori")
  lines = [x[0] for x in read_changes(open_corpus(sets / "exchange"), "test").values()]
  for line in lines:
    if line["source"] == "vs":
      assert line["changed"]
      assert not (line["dropped"])
      assert not (line["added"])
      assert controls[line["dialogue_id"]]["turns"][-1]["utterance"] == line["utterance"]


def test_the_same_seed_gives_the_same_bytes_and_another_others(sets, tmp_path):
  command = (*COCO, "--slots", "neutral", "--out")
  assert sgdx(*command, tmp_path / "again") == 0
  assert sgdx(*command, tmp_path / "other", "--seed", 1) == 0
  for path in (sets / "templates").rglob("*.json*"):
    name = path.relative_to(sets / "templates")
    assert (tmp_path / "again" / name).read_bytes() == path.read_bytes()
  name = "test/dialogues_001.json"
  assert (tmp_path / "other" / name).read_bytes() != (sets / "templates" / name).read_bytes()


def test_invented_values_of_train_and_test_are_disjoint():
  split, drawn = sample_split(), {}
  for name in ("test", "train"):
    source = value_source("out", Split(split.corpus, name), {})
    rng = random.Random(0)
    drawn[source.label] = {
      (place, draw(rng)[0]) for place, draw in source.draws.items() for _ in range(300)
    }
  assert drawn["out-test"]
  assert not drawn["out-test"] & drawn["out-train"]


def test_a_model_answers_the_goals(tmp_path, capsys):
  goals, answers = tmp_path / "goals.jsonl", tmp_path / "answers.jsonl"
  command = COCO
  assert sgdx(*command, "--goals-out", goals) == 0
  lines = [json.loads(line) for line in goals.read_text().splitlines()]
  assert lines[1]["id"] == f"{lines[0]['id']}+ori"
  assert lines[0]["inputs"].startswith("[SYSTEM] ")
  assert " [ACTS] " in lines[0]["inputs"]
  with answers.open("w") as file:  # has every value; the first candidate is empty
    for line in lines:
      said = f"I want {', '.join(line['goal'].values())} zzz."
      row = {"id": line["id"], "inputs": line["inputs"], "candidates": ["", said]}
      file.write(json.dumps(row) + "\n")
  given = ("--generator", "file", "--candidates", answers)
  assert sgdx(*command, *given, "--out", tmp_path / "file") == 0
  last = [data["turns"][-1]["utterance"] for data in _dialogues(tmp_path / "file").values()]
  assert len(last) > 0.5 * len(lines) / 2
  assert all(text.endswith(" zzz.") for text in last)
  capsys.readouterr()
  assert sgdx(*command, *given, "--seed", 1, "--out", tmp_path / "seed") == 1
  assert_four_parts(capsys.readouterr().err, "id ", "--goals-out")
  dev = (*COCO, "--split", "dev", "--generator", "file", "--candidates", answers)
  assert sgdx(*dev, "--out", tmp_path / "seed") == 1  # goals of another split, or corpus
  assert_four_parts(capsys.readouterr().err, str(answers), "--goals-out")
  answers.write_text('{"id": "9_99999.t04", "candidates": []}\n')
  assert sgdx(*command, *given, "--out", tmp_path / "seed") == 1
  assert_four_parts(capsys.readouterr().err, "id 9_99999.t04", "--goals-out")
  assert not (tmp_path / "seed").exists()


def _classify(path: pathlib.Path, out: pathlib.Path, wrong: int) -> None:
  """Answers with the informed slots; every `wrong`-th line, if a real turn, with another slot."""
  told = {}
  for data in sample_dialogues():
    for number, turn in enumerate(data["turns"][::2]):
      slots = [a["slot"] for f in turn["frames"] for a in f["actions"] if a["act"] == "INFORM"]
      told[f"{data['dialogue_id']}.t{2 * number:02d}"] = slots
  with out.open("w") as file:
    for i, line in enumerate(map(json.loads, path.read_text().splitlines())):
      name = line["id"].partition("#")[0].removesuffix("+ori")
      slots = told[name] if i % wrong or "#" in line["id"] else ["elsewhere"]
      row = {"id": line["id"], "inputs": line["inputs"], "slots": slots}
      file.write(json.dumps(row) + "\n")


@pytest.mark.long
def test_a_classifier_is_a_filter(tmp_path, capsys):
  inputs, answers = tmp_path / "inputs.jsonl", tmp_path / "answers.jsonl"
  command = COCO
  assert sgdx(*command, "--classify-out", inputs) == 0
  assert "[USER] " in inputs.read_text()
  assert " [slots] " in inputs.read_text()
  _classify(inputs, answers, wrong=10)
  capsys.readouterr()
  given = ("--classifier", answers)
  assert sgdx(*command, *given, "--out", tmp_path / "good") == 0
  assert "classifier: precision 0.9" in capsys.readouterr().out.splitlines()[0]
  counts = open_corpus(tmp_path / "good").manifest("test").counts
  assert counts["kept"]["classifier"] > 50  # those that drop a slot: it still finds it
  capsys.readouterr()
  assert sgdx(*command, *given, "--seed", 1, "--out", tmp_path / "seed") == 1
  assert_four_parts(capsys.readouterr().err, "id ", " answers '[SYSTEM] ", "--classify-out")
  with answers.open("a") as file:
    file.write('{"id": "9_99999.t04#0", "slots": []}\n')
  assert sgdx(*command, *given, "--out", tmp_path / "seed") == 1
  assert_four_parts(capsys.readouterr().err, "id 9_99999.t04#0", "--classify-out")
  assert not (tmp_path / "seed").exists()


def test_all_decodes_of_infer_are_read_the_best_first(tmp_path):
  path, asked = tmp_path / "answers.jsonl", {"id_pretokenized": "1.t00", "inputs_pretokenized": "x"}
  for prediction, texts, slots in (
    (["worse", "city, date"], ["city, date", "worse"], {"city", "date"}),
    ("none", ["none"], set()),
  ):
    path.write_text(json.dumps({"inputs": asked, "prediction": prediction}) + "\n")
    assert read_candidates(path) == ({"1.t00": texts}, {"1.t00": "x"})
    assert read_answers(path) == ({"1.t00": slots}, {"1.t00": "x"})


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
  ("read", "content"), [(read_candidates, {"candidates": ["x"]}), (read_answers, {"slots": []})]
)
def test_answers_with_the_same_id_are_refused(read, content, tmp_path):
  """Regression: of a classifier's, the last one was used."""
  path = tmp_path / "answers.jsonl"
  path.write_text((json.dumps({"id": "1.t00", **content}) + "\n") * 2)
  with pytest.raises(SgdxError, match=r"line 2: duplicate id 1\.t00"):
    read(path)


@pytest.mark.parametrize(
  ("options", "code", "words"),
  [
    (("--generator", "file"), 2, ("without --candidates", "--goals-out")),
    (("--candidates", "FILE"), 2, ("with --candidates",)),
    (("--generator", "file", "--candidates", "none.jsonl"), 1, ("none.jsonl",)),
    (("--generator", "file", "--candidates", "FILE"), 1, ("line 1", "candidates")),
    (("--classifier", "FILE"), 1, ("no slots",)),
  ],
)
def test_bad_input_is_refused(options, code, words, tmp_path, capsys):
  path = tmp_path / "FILE"
  path.write_text('{"id": "1_00000.t00"}\n')
  given = [path if option == "FILE" else option for option in options]
  assert sgdx(*COCO, "--out", tmp_path / "out", *given) == code
  assert_four_parts(capsys.readouterr().err, *words)
  assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
  ("options", "spoil", "words"),
  [
    ((), lambda dialogue: dialogue.pop("turns"), "missing key 'turns'"),
    ((), lambda dialogue: dialogue["turns"].insert(0, 5), "wrong type"),
    (
      ("--values", "in"),
      lambda dialogue: dialogue["turns"][0]["frames"][0]["state"].update(slot_values={"x": 5}),
      "train/dialogues_001.json",
    ),
  ],
)
def test_a_broken_dialogue_of_train_is_named(options, spoil, words, tmp_path, capsys):
  on_split(sample_dialogues()[:3], sample_split(), tmp_path / "corpus")
  broken = sample_dialogues()[3]
  spoil(broken)
  (tmp_path / "corpus/train/dialogues_001.json").write_text(json.dumps([broken]))
  command = ("coco", "perturb", "--corpus", tmp_path / "corpus", *options)
  assert sgdx(*command, "--out", tmp_path / "out") == 1
  assert_four_parts(capsys.readouterr().err, broken["dialogue_id"], words)


def _inform(dialogues):
  """The first act of a user that tells one value."""
  return next(
    act
    for data in dialogues
    for turn in data["turns"][::2]
    for frame in turn["frames"]
    for act in frame["actions"]
    if act["act"] == "INFORM" and act["slot"] != "intent"
  )


@pytest.mark.parametrize(
  "command", [("coco", "perturb", "--slots", "neutral"), ("checkdst", "perturb", "pi")]
)
@pytest.mark.parametrize(
  "spoil",
  [lambda act: act.update(slot="nope"), lambda act: act.pop("slot"), lambda act: act.pop("values")],
  ids=["slot", "no-slot", "no-values"],
)
def test_broken_acts_are_said(command, spoil, tmp_path, capsys):
  """Regression: tracebacks, each of a kind that read the acts outside of the other kinds' check."""
  dialogues = sample_dialogues()[:8]
  spoil(_inform(dialogues))
  on_split(dialogues, sample_split(), tmp_path / "corpus")
  if sgdx(*command, "--corpus", tmp_path / "corpus", "--out", tmp_path / "out"):
    assert_four_parts(capsys.readouterr().err, "dialogue", "sgdx data verify")


def test_the_original_is_needed(sets, tmp_path, capsys):
  corpus = write_sample(tmp_path / "ned", "ned")
  command = ("coco", "perturb", "--corpus", corpus, "--out", tmp_path / "out")
  assert sgdx(*command) == 2
  assert_four_parts(capsys.readouterr().err, "already perturbed (ned)")


def test_a_corpus_without_acts_of_users_is_refused(tmp_path, capsys):
  data = sample_dialogues()[:2]
  for dialogue in data:
    for turn in dialogue["turns"][::2]:
      for frame in turn["frames"]:
        del frame["actions"]
  on_split(data, sample_split(), tmp_path / "corpus")
  command = ("coco", "perturb", "--corpus", tmp_path / "corpus")
  assert sgdx(*command, "--out", tmp_path / "out") == 1
  error = capsys.readouterr().err
  assert_four_parts(error, "no counterfactual for any of 0 turns", "INFORM", "have acts")
  assert "--generator" not in error  # no option helps


def test_a_command_that_writes_nothing_is_refused(capsys):
  assert sgdx(*COCO) == 2
  assert_four_parts(capsys.readouterr().err, "no --out")


@pytest.mark.parametrize("key", ["dropped", "turn", "service"])
def test_a_change_without_a_key_is_found_by_against(key, sets, tmp_path, capsys):
  folder = shutil.copytree(sets / "templates", tmp_path / "changed")
  path = folder / "test/changes.jsonl"
  lines = [json.loads(line) for line in path.read_text().splitlines()]
  path.write_text("".join(f"{json.dumps({k: x[k] for k in x if k != key})}\n" for x in lines))
  assert sgdx(*VERIFY, "--corpus", folder, "--against", "sample") == 1
  assert_four_parts(capsys.readouterr().err, f"missing key '{key}'", "changes.jsonl")


def test_another_turn_before_the_last_is_found_by_against(sets, tmp_path, capsys):
  folder = shutil.copytree(sets / "templates", tmp_path / "changed")
  path = folder / "test/dialogues_001.json"
  data = json.loads(path.read_text())
  long = next(each for each in data if len(each["turns"]) > 1)
  long["turns"][0]["utterance"] += " Hello."
  path.write_text(json.dumps(data))
  assert sgdx(*VERIFY, "--corpus", folder, "--against", "sample") == 1
  assert_four_parts(capsys.readouterr().err, "turn 0 differs", "changes.jsonl")
