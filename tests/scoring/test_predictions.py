"""Reading predictions: both formats, both sets of names, and everything that is refused."""

import copy
import dataclasses
import json
import shutil

import pytest
import tiny_corpus as tiny
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sgdx_t5x.corpus import variants
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics import GOAL_METRICS, gold_frames, score_frames
from sgdx_t5x.prompts.t5dst import T5DST, PromptStyle
from sgdx_t5x.scoring import score_predictions
from sgdx_t5x.scoring.predictions import read_all_variants, read_predictions
from sgdx_t5x.scoring.predictions.files import Selection

EXPECTED = {
  f"{dialogue_id}-{2 * i:03d}-{service}": {slot: v[:1] for slot, v in values.items()}
  for dialogue_id, turns in tiny.GOLD.items()
  for i, frames in enumerate(turns)
  for service, values in frames.items()
}


def states_of(found):
  """Frame -> slot -> first value: a JSONL row holds one value."""
  return {k: {s: list(v[:1]) for s, v in f.slot_values.items()} for k, f in found.frames.items()}


def read_states(path, variant, selection):
  return states_of(read_predictions(path, variant, selection))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  return open_corpus(tiny.write_corpus(tmp_path_factory.mktemp("tiny")))


@pytest.fixture(scope="module")
def selection(corpus):
  return Selection(corpus, "test", gold_frames(corpus.dialogues("test")))


def with_(selection, **changes):
  return dataclasses.replace(selection, **changes)


@pytest.mark.parametrize("names", ["original", "v3"])
def test_dialogues_with_either_names(tmp_path, selection, names):
  states = read_states(tiny.write_dialogues(tmp_path, tiny.GOLD, names), "v3", selection)
  assert states == EXPECTED


@pytest.mark.parametrize("variant", ["original", *tiny.VARIANTS])
def test_rows_of_infer(tmp_path, selection, variant):
  rows = tiny.example_rows(tiny.GOLD, variant)
  path = tiny.write_rows(tmp_path / "t-predict.jsonl-00000-of-00001", rows)
  assert read_states(path, variant, selection) == EXPECTED
  assert read_states(tmp_path, variant, selection) == EXPECTED


def test_rows_of_the_seqio_logger(tmp_path, selection):
  """Their `prediction` is a value or null; the generated text is in `output`."""
  rows = [
    {
      "input": {**row["inputs"], "inputs": [3, 1]},
      "target": {"id": "x"},
      "output": row["prediction"],
      "prediction": None if row["prediction"] == "none" else row["prediction"],
    }
    for row in tiny.example_rows(tiny.GOLD, "v1")
  ]
  folder = tmp_path / "inference_eval"
  tiny.write_rows(folder / "t5dst_sgdx_v1-004000.jsonl", rows)
  tiny.write_rows(folder / "t5dst_sgdx_v1-metrics.jsonl", [{"step": 4000, "jga": 1.0}])
  assert read_states(tmp_path, "v1", selection) == EXPECTED
  for row in rows:
    del row["output"]
  tiny.write_rows(folder / "t5dst_sgdx_v1-004000.jsonl", rows)
  assert read_states(tmp_path, "v1", selection) == EXPECTED


def test_text_is_read_with_the_style_of_its_prompts(tmp_path, selection):
  rows = tiny.example_rows(tiny.GOLD, "v1")
  for row in rows:
    row["prediction"] = row["prediction"].lower()
  path = tiny.write_rows(tmp_path / "p.jsonl", rows)
  states = read_states(
    path, "v1", with_(selection, prompt_format=T5DST(PromptStyle(lowercase=True)))
  )
  assert states["1_00000-002-Banks_1"] == {"kind": ["Checking"], "to": ["anna lee"]}
  every = with_(selection, prompt_format=T5DST(PromptStyle(slots="all")))
  with pytest.raises(SgdxError, match=r"4 of 6 frames of v1 are missing.*\(slot balance\)"):
    read_predictions(path, "v1", every)


def test_several_variants_in_one_file(tmp_path, selection):
  rows = [row for v in ("v2", "v1", "original") for row in tiny.example_rows(tiny.GOLD, v)]
  path = tiny.write_rows(tmp_path / "t5dst_sgdx-000010.jsonl", rows)
  assert read_states(path, "v2", selection) == EXPECTED
  found = read_all_variants(tmp_path, selection)
  assert list(found) == ["original", "v1", "v2"]
  assert all(states_of(one) == EXPECTED for one in found.values())
  with pytest.raises(SgdxError, match=r"(?s)no predictions for v4.*v2, v1, original"):
    read_predictions(path, "v4", selection)


def test_frames_of_further_services_are_not_scored(tmp_path, selection):
  more = copy.deepcopy(tiny.GOLD)
  more["2_00000"][0]["Banks_1"] = {"kind": ["Savings"]}
  states = read_states(tiny.write_dialogues(tmp_path, more), "original", selection)
  assert states == EXPECTED


def test_frames_of_turns_without_gold_frames_are_not_scored(tmp_path):
  """As in the official scorer. Regression: they were refused as those of another corpus."""
  root = tiny.write_corpus(tmp_path / "tiny")
  place = root / "test/dialogues_002.json"
  data = json.loads(place.read_text())
  data[0]["turns"].append({"speaker": "USER", "utterance": "Thanks.", "frames": []})
  place.write_text(json.dumps(data))
  data[0]["turns"][-1]["frames"] = data[0]["turns"][0]["frames"]
  predictions = tmp_path / "predictions"
  shutil.copytree(root / "test", predictions)
  (predictions / place.name).write_text(json.dumps(data))
  found = score_predictions(root, "test", {"original": predictions}, bootstrap_samples=0)
  assert found.common["original"].metrics["joint_goal_accuracy"].mean() == 1


# --- what is refused -----------------------------------------------------------------------


def refused(path, variant, selection, *parts):
  with pytest.raises(SgdxError) as caught:
    read_predictions(path, variant, selection)
  for part in (*parts, "expected:", "fix:"):
    assert part in str(caught.value)


def changed(change):
  states = copy.deepcopy(tiny.GOLD)
  change(states)
  return states


MISSING = {
  "dialogue": (lambda s: s.pop("2_00000"), 1, "2_00000-000-Homes_2"),
  "turn": (lambda s: s["1_00000"].pop(), 1, "1_00000-004-Banks_1"),
  "frame": (lambda s: s["1_00001"][0].pop("Homes_2"), 1, "1_00001-000-Homes_2"),
}


@pytest.mark.parametrize("what", MISSING)
def test_what_is_missing_is_refused_or_left_out(tmp_path, selection, what):
  change, count, frame = MISSING[what]
  states = changed(change)
  tiny.write_dialogues(tmp_path / "d", states)
  tiny.write_rows(tmp_path / "r" / "p.jsonl", tiny.example_rows(states, "original"))
  rest = {key: value for key, value in EXPECTED.items() if key != frame}
  for folder in (tmp_path / "d", tmp_path / "r"):
    parts = (f"{count} of 6 frames of original are missing", frame, "--allow-missing")
    refused(folder, "original", selection, *parts)
    states = read_states(folder, "original", with_(selection, allow_missing=True))
    assert states == rest


def test_a_frame_that_lacks_a_slot_is_missing(tmp_path, selection):
  rows = tiny.example_rows(tiny.GOLD, "v1")[1:]
  path = tiny.write_rows(tmp_path / "p.jsonl", rows)
  refused(path, "v1", selection, "1 of 6 frames of v1 are missing", "(slot kind)")
  states = read_states(path, "v1", with_(selection, allow_missing=True))
  assert list(states) == list(EXPECTED)[1:]


def test_no_prediction_at_all_is_refused_even_if_missing_ones_are_allowed(tmp_path, selection):
  path = tiny.write_json(tmp_path / "dialogues_all.json", [])
  refused(path, "v1", with_(selection, allow_missing=True), "6 of 6 frames of v1 are missing")


BAD_ROWS = {
  "twice": (lambda r: r.append(r[0]), "/kind occurs twice", "p.jsonl, line 17"),
  "split": (
    lambda r: r[0]["inputs"].update(example_id_pretokenized="v1/dev/1_00000-000-Banks_1/kind"),
    "a prediction for split 'dev'",
    "--split dev",
  ),
  "variant": (
    lambda r: r[0]["inputs"].update(example_id_pretokenized="v9/test/1_00000-000-Banks_1/kind"),
    "unknown variant 'v9'",
    "original",
  ),
  "frame": (
    lambda r: r[0]["inputs"].update(example_id_pretokenized="v1/test/1_00000-001-Banks_1/kind"),
    "unknown frame '1_00000-001-Banks_1'",
    "nearest: 1_00000-00",
  ),
  "slot": (
    lambda r: r[0]["inputs"].update(example_id_pretokenized="v1/test/1_00000-000-Banks_1/kinds"),
    "unknown slot 'kinds'",
    "nearest: kind",
  ),
  "id": (
    lambda r: r[0]["inputs"].update(example_id_pretokenized="17"),
    "example id '17'",
    "line 1",
  ),
  "no id": (lambda r: r[0]["inputs"].clear(), "no example id", "line 1"),
  "no text": (lambda r: r[0].pop("prediction"), "prediction is absent", "line 1"),
  "decodes": (lambda r: r[0].update(prediction=["a", "b"]), "['a', 'b']", "a single decode"),
  "null": (lambda r: r[0].update(prediction=None), "prediction None", "line 1"),
}


@pytest.mark.parametrize("what", BAD_ROWS)
def test_bad_rows_are_refused(tmp_path, selection, what):
  change, *parts = BAD_ROWS[what]
  rows = tiny.example_rows(tiny.GOLD, "v1")
  change(rows)
  refused(tiny.write_rows(tmp_path / "p.jsonl", rows), "v1", selection, *parts)


def test_files_that_are_cut_short_are_refused(tmp_path, selection):
  rows = tiny.write_rows(tmp_path / "p.jsonl", tiny.example_rows(tiny.GOLD, "v1"))
  rows.write_text(rows.read_text()[:-20])
  refused(rows, "v1", selection, "p.jsonl, line 16: not valid JSON", "cut short")
  dialogues = tiny.write_dialogues(tmp_path, tiny.GOLD) / "dialogues_all.json"
  dialogues.write_text(dialogues.read_text()[:-20])
  refused(dialogues, "v1", selection, "dialogues_all.json: not valid JSON", "cut short")


@pytest.mark.parametrize(
  ("name", "content", "part"),
  [
    ("dialogues_1.json", b'[{"dialogue_id": "caf\xe9"}]', "not UTF-8"),
    ("dialogues_1.json", b"[" * 100_000, "nested too deeply"),
    (
      "dialogues_1.json",
      b'{"id": "a"}\n{"id": "b"}\n',
      "rename it to *.jsonl if it holds JSON",
    ),
    ("p.jsonl", b'{"dialogue_id": "1", "services": [], "turns": []}', "as one list"),
    (
      "p.jsonl",
      b'[\n  {"dialogue_id": "1"}\n]',
      "rename the file to *.json if it holds",
    ),
    ("p.jsonl", b"\xff\xfe{", "not UTF-8"),
  ],
)
def test_files_of_another_kind_are_told_apart(tmp_path, selection, name, content, part):
  (tmp_path / name).write_bytes(content)
  refused(tmp_path, "v1", selection, part)


def edit_first_state(data, **slot_values):
  data[0]["turns"][0]["frames"][0]["state"]["slot_values"] = slot_values


BAD_DIALOGUES = {
  "twice": (lambda d: d.append(d[0]), "1_00000: the dialogue already occurs", "unique dialogues"),
  "unknown": (lambda d: d[0].update(dialogue_id="1_00009"), "no such dialogue", "1_00000"),
  "utterance": (lambda d: d[0]["turns"][2].update(utterance="other"),
                "turn 2: differs from the user turn",
                "different splits have the same dialogue ids"),
  "speaker": (lambda d: d[0]["turns"][0].update(speaker="SYSTEM"),
              "turn 0: differs from the user turn", ""),
  "service": (lambda d: d[0]["turns"][0]["frames"][0].update(service="Bank_1"),
              "unknown service 'Bank_1'", "nearest: Banks_1"),
  "another variant": (lambda d: d[0]["turns"][0]["frames"][0].update(service="Banks_14"),
                      "unknown service 'Banks_14'", "v4 has it"),
  "mixed names": (lambda d: d[2]["turns"][0]["frames"][0].update(service="Homes_21"),
                  "unknown service 'Homes_21'", "throughout"),
  "slot": (lambda d: edit_first_state(d, kin=["x"]), "turn 0: unknown slot 'kin'", "nearest: kind"),
  "slot of the other names": (lambda d: edit_first_state(d, kind_v1=["x"]),
                              "unknown slot 'kind_v1'", "service 'Banks_1'"),
  "not a list": (lambda d: edit_first_state(d, kind="Savings"),
                 "Expected `array`, got `str`", "slot_values"),
  "empty list": (lambda d: edit_first_state(d, kind=[]),
                 "Expected `array` of length >= 1", "$.turns[0]"),
  "no state": (lambda d: d[0]["turns"][0]["frames"][0].pop("state"),
               "turn 0, service Banks_1: ", ""),
  "frame twice": (lambda d: d[0]["turns"][0]["frames"].append(d[0]["turns"][0]["frames"][0]),
                  "service Banks_1 occurs twice", ""),
  "not dialogues": (lambda d: d.insert(0, 3), "dialogue ?", ""),
  "number as id": (lambda d: d[0].update(dialogue_id=5),
                   "Expected `str`, got `int`", "$.dialogue_id"),
  "no service": (lambda d: d[0]["turns"][0]["frames"][0].update(service=None),
                 "Expected `str`, got `null`", "$.turns[0].frames[0].service"),
  "intent": (lambda d: d[0]["turns"][0]["frames"][0]["state"].update(active_intent=["Do"]),
             "Expected `str | null`, got `array`", "active_intent"),
  "no span": (
    lambda d: d[0]["turns"][0]["frames"][0].update(slots=[{"slot": "kind", "copy_from": "x"}]),
    "missing required field `start`", "copy_from) can be left out"),
  "intents here and there": (
    lambda d: d[0]["turns"][0]["frames"][0]["state"].pop("active_intent"),
    "no active_intent in the state", "5 of 6 frames have it"),
  "unknown requested slot": (
    lambda d: d[0]["turns"][0]["frames"][0]["state"].update(requested_slots=["kin"]),
    "unknown slot 'kin'", "nearest: kind"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD_DIALOGUES)
def test_bad_dialogues_are_refused(tmp_path, selection, what):
  change, *parts = BAD_DIALOGUES[what]
  path = tiny.write_dialogues(tmp_path, tiny.GOLD) / "dialogues_all.json"
  data = json.loads(path.read_text())
  change(data)
  refused(tiny.write_json(path, data), "v1", selection, *parts)


def test_names_with_two_meanings_are_refused(tmp_path):
  """A corpus whose v3 keeps service names and renames `kind` to `amount`, which is ambiguous."""
  root = tiny.write_corpus(tmp_path / "c")
  path = root / "sgd_x" / "data" / "v3" / "test" / "schema.json"
  text = path.read_text().replace("Banks_13", "Banks_1").replace("Homes_23", "Homes_2")
  path.write_text(text)
  corpus = open_corpus(root)
  selection = Selection(corpus, "test", gold_frames(corpus.dialogues("test")))
  states = changed(lambda s: [frame.clear() for t in s.values() for u in t for frame in u.values()])
  folder = tiny.write_dialogues(tmp_path / "p", states)
  assert set(map(len, read_states(folder, "v3", selection).values())) == {0}
  states["1_00000"][0]["Banks_1"] = {"amount": ["$5"]}
  tiny.write_dialogues(folder, states)
  refused(folder, "v3", selection, "exist both in v3 and in the original", "distinct names")


def test_intents_with_two_meanings_are_refused(tmp_path):
  """A corpus whose v3 keeps service and slot names, and exchanges those of two intents."""
  root = tiny.write_corpus(tmp_path / "c")
  schema = json.loads((root / "test" / "schema.json").read_text())
  (intent,) = schema[0]["intents"]
  for file, names in (("test", ("Do", "Undo")), ("sgd_x/data/v3/test", ("Undo", "Do"))):
    schema[0]["intents"] = [{**intent, "name": name} for name in names]
    tiny.write_json(root / file / "schema.json", schema)
  corpus = open_corpus(root)
  selection = Selection(corpus, "test", gold_frames(corpus.dialogues("test")))
  folder = tiny.write_dialogues(tmp_path / "p", tiny.GOLD)
  refused(folder, "v3", selection, "exist both in v3 and in the original", "distinct names")


def test_wrong_paths_are_refused(tmp_path, selection):
  refused(tmp_path / "no", "v1", selection, "no file or folder")
  refused(tmp_path, "v1", selection, "no predictions in this folder")
  refused(tmp_path, "v9", selection, "no schema of variant 'v9'")
  tiny.write_dialogues(tmp_path, tiny.GOLD)
  with pytest.raises(SgdxError, match=r"(?s)do not state which variant.*--predictions v1=DIR"):
    read_all_variants(tmp_path, selection)
  empty = tiny.write_rows(tmp_path / "p.jsonl", [])
  refused(tmp_path, "v1", selection, "both DSTC8 dialogues and JSONL")
  with pytest.raises(SgdxError, match="no rows with an answer"):
    read_all_variants(empty, selection)
  with pytest.raises(SgdxError, match="without --allow-missing, requests that failed are named"):
    read_all_variants(empty, with_(selection, allow_missing=True))


# --- properties ----------------------------------------------------------------------------

VALUES = st.sampled_from(["Savings", "checking", "rent", "Anna", "$5", "dontcare", None])


@settings(
  suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None
)
@given(st.data())
def test_rows_and_dialogues_give_the_same_scores_in_any_order(tmp_path, selection, data):
  states = copy.deepcopy(tiny.GOLD)
  for turns in states.values():
    for frames in turns:
      for service, values in frames.items():
        values.clear()
        for slot, categorical, _ in tiny.SLOTS[service]:
          value = data.draw(VALUES)
          # A row cannot hold an invalid value that differs from a possible one only in case:
          # the reader gives it the case of the schema.
          if value and slot not in tiny.UNTRACKED and not (categorical and value == "checking"):
            values[slot] = [value]
  order = data.draw(st.permutations(list(states)))
  for i, part in enumerate((order[:1], order[1:])):
    folder = tiny.write_dialogues(tmp_path / "d", {key: states[key] for key in part}, "v3")
    (folder / "dialogues_all.json").replace(folder / f"dialogues_{i}.json")
  rows = data.draw(st.permutations(tiny.example_rows(states, "v3")))
  half = len(rows) // 2
  for i, shard in enumerate((rows[:half], rows[half:])):
    tiny.write_rows(tmp_path / "r" / f"p.jsonl-0000{i}-of-00002", shard)
  found = [
    score_frames(
      selection.gold, read_predictions(path, "v3", selection).frames, selection.schema, ()
    )
    for path in (folder, tmp_path / "r")
  ]
  assert found[0].frame_ids.tolist() == found[1].frame_ids.tolist() == list(EXPECTED)
  for key in GOAL_METRICS:  # rows hold no intents, requested slots or spans
    values = found[0].metrics[key]
    assert values.tolist() == pytest.approx(found[1].metrics[key].tolist(), abs=0, nan_ok=True)


OWN_ROWS = {  # what is wrong, and what the fix says to users whose own system answered the prompts
  "no text": (lambda r: r[0].pop("prediction"), '{"id": "...", "prediction": "text"}'),
  "a number": (lambda r: r[0].update(prediction=5), "with the ids of `sgdx prompts`"),
  # A failed request; of SeqIO, whose rows have an object as "input", null is "not in the state".
  "null": (lambda r: r[0].update(prediction=None, input="text"), "write rows"),
  "slot": (lambda r: r[0].update(id=r[0]["id"] + "s"), "of `sgdx prompts` or of the tasks"),
  "id": (lambda r: r[0].update(id="17"), "keep the ids from `sgdx prompts`"),
  "twice": (lambda r: r.extend(r[:]), "keep one row per id in the file"),
  "empty": (lambda r: r.clear(), "answer the prompts again"),
}


@pytest.mark.parametrize("what", OWN_ROWS)
def test_fixes_fit_the_answers_of_other_systems(tmp_path, selection, what):
  """They used to suggest t5x inference, or a file instead of the folder where a file was given."""
  change, fix = OWN_ROWS[what]
  infer = tiny.example_rows(tiny.GOLD, "v1")
  rows = [
    {"id": r["inputs"]["example_id_pretokenized"], "prediction": r["prediction"]} for r in infer
  ]
  change(rows)
  path = tiny.write_rows(tmp_path / "own.jsonl", rows)
  with pytest.raises(SgdxError) as e:
    read_all_variants(path, selection)
  assert fix in e.value.fix


def test_leftovers_of_others_in_a_folder_are_no_predictions(tmp_path, selection):
  rows = tiny.example_rows(tiny.GOLD, "v1")
  tiny.write_rows(tmp_path / "a.jsonl", rows)
  for name in ("._a.jsonl", ".a.jsonl.swp", "a.jsonl.bak", "a.jsonl~", "changes.jsonl"):
    (tmp_path / name).write_text("no rows")
  assert len(read_states(tmp_path, "v1", selection)) == 6


def test_a_folder_of_two_files_with_the_same_examples(tmp_path, selection):
  rows = tiny.example_rows(tiny.GOLD, "v1")
  for name in ("a.jsonl", "b.jsonl"):
    tiny.write_rows(tmp_path / name, rows)
  refused(tmp_path, "v1", selection, "occurs twice", "a single task and step instead of the folder")


def test_two_predictions_of_a_variant_are_refused(corpus, tmp_path, monkeypatch):
  """Regression: without their perturbations the names were equal, and the first was not read."""
  monkeypatch.setattr(variants, "PERTURBATIONS", ("ned",))
  folder = tiny.write_dialogues(tmp_path / "v1", tiny.GOLD, "v1")
  with pytest.raises(SgdxError, match="two predictions of variant v1") as error:
    score_predictions(corpus, "test", {"v1": folder, "ned+v1": tmp_path / "other"})
  assert str(tmp_path / "other") in str(error.value)
