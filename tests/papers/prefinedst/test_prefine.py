"""Pre-finetuning: each task's texts for a dialogue written by hand here, mixtures, training."""

import functools
import itertools

import pytest
import seqio
from commands import sgdx
from places import ROOT
from records import records_of
from sample_folder import few_in_train, write_sample

import sgdx_t5x.papers.prefinedst.tasks  # noqa: F401  # registers them
from sgdx_t5x import tasks
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import parse_schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.prefinedst import prefine, prefine_turns
from sgdx_t5x.records.prepare import prepare
from sgdx_t5x.records.turns import gold_turns, user_turns

NAMES = (
  "intent", "requested", "next_action", "response", "span", "copy_ned", "same_meaning", "refers",
  "user_turn", "turn_slots",
)  # fmt: skip


def _slot(name, description, values=()):
  return {
    "name": name, "description": description,
    "is_categorical": bool(values), "possible_values": list(values),
  }  # fmt: skip


def _service(name, slots, intent):
  return {
    "service_name": name, "description": name, "slots": slots,
    "intents": [{
      "name": intent, "description": f"To {intent.lower()}", "is_transactional": False,
      "required_slots": [s["name"] for s in slots[:2]], "optional_slots": {},
      "result_slots": [s["name"] for s in slots],
    }],
  }  # fmt: skip


SCHEMA = parse_schema(
  [
    _service("Inns_1", [_slot("city", "City of the inn"), _slot("beds", "Beds", ("1", "2")),
                        _slot("phone_number", "Phone")], "FindInn"),
    _service("Rides_2", [_slot("destination", "City to go to"), _slot("time", "Time")], "Ride"),
  ],
  "test",
)  # fmt: skip


def _act(act, slot="", *values):
  return {"act": act, "slot": slot, "values": list(values), "canonical_values": list(values)}


def _user(text, service, intent, values, acts, spans=(), requested=()):
  state = {"active_intent": intent, "requested_slots": list(requested), "slot_values": values}
  slots = [{"slot": s, "start": a, "exclusive_end": b} for s, a, b in spans]
  frame = {"service": service, "slots": slots, "actions": acts, "state": state}
  return {"speaker": "USER", "utterance": text, "frames": [frame]}


def _system(text, service, acts):
  return {
    "speaker": "SYSTEM", "utterance": text,
    "frames": [{"service": service, "slots": [], "actions": acts}],
  }  # fmt: skip


CITY = {"city": ["Elmport"]}
DIALOGUE = Dialogue.from_json({
  "dialogue_id": "1_00000", "services": ["Inns_1", "Rides_2"],
  "turns": [
    _user("An inn in Elmport.", "Inns_1", "FindInn", CITY,
          [_act("INFORM_INTENT", "intent", "FindInn"), _act("INFORM", "city", "Elmport")],
          [("city", 10, 17)]),
    _system("How many beds?", "Inns_1", [_act("REQUEST", "beds")]),
    _user("2. And its phone?", "Inns_1", "FindInn", {**CITY, "beds": ["2"]},
          [_act("INFORM", "beds", "2"), _act("REQUEST", "phone_number")],
          requested=["phone_number"]),
    _system("It is 555.", "Inns_1", [_act("INFORM", "phone_number", "555"), _act("GOODBYE")]),
    _user("A ride there at noon.", "Rides_2", "Ride",
          {"destination": ["Elmport"], "time": ["noon"]},
          [_act("INFORM_INTENT", "intent", "Ride"), _act("INFORM", "time", "noon")],
          [("time", 16, 20)]),
  ],
})  # fmt: skip


@functools.cache
def _frames():
  """The three frames of the dialogue, as records give them."""
  found, states = [], {}
  turns = zip(user_turns(DIALOGUE, SCHEMA), gold_turns(DIALOGUE, SCHEMA), strict=True)
  for (context,), (gold,) in turns:
    said = [turn.utterance for turn in DIALOGUE.turns[: context.turn + 1]]
    names = {"Inns_1": frozenset({"city"})}
    found.append(prefine.Frame(SCHEMA.services, said, context, states, gold, names))
    states = {**states, context.service: gold.state(context.turn)}
  return found


def _made(task, frame):
  """Returns (history, question without its wording, target); exactly one wording must match."""
  found = []
  for text in prefine.FRAME_TASKS[task][0](_frames()[frame]):
    ask = "span" if task == "copy_ned" else task
    (wording,) = [w for w in prefine.WORDINGS[ask] if text.question.endswith(f" {w}")]
    found.append((text.history, text.question.removesuffix(f" {wording}"), text.target))
  return found


FIRST = "[USER] An inn in Elmport."
SECOND = f"{FIRST} [SYSTEM] How many beds? [USER] 2. And its phone?"


@pytest.mark.parametrize(("task", "frame", "expected"), [
  ("intent", 1, [(SECOND, "[domain] Inns [intents] FindInn: To findinn", "FindInn")]),
  ("requested", 0, [(FIRST, "[domain] Inns [slots] city, beds, phone_number", "none")]),
  ("requested", 1, [(SECOND, "[domain] Inns [slots] city, beds, phone_number", "phone_number")]),
  ("next_action", 0, []),
  ("next_action", 1, [(FIRST, "[state] Inns city Elmport", "request beds")]),
  ("next_action", 2, [
    (SECOND, "[state] Inns city Elmport, Inns beds 2", "inform phone_number = 555 ; goodbye")]),
  ("response", 2, [(SECOND, "[ACTS] inform phone_number = 555 ; goodbye", "It is 555.")]),
  # `city` is the only free slot to search inns by; the ride's turn does not say `destination`.
  ("span", 0, [(FIRST, "[domain] Inns [slot] city City of the inn", "Elmport")]),
  ("span", 2, [
    ("[USER] A ride there at noon.", "[domain] Rides [slot] time Time", "noon"),
    ("[USER] A ride there at noon.", "[domain] Rides [slot] destination City to go to", "none")]),
  ("copy_ned", 2, []),  # a time is not a name
])  # fmt: skip
def test_texts_of_frames(task, frame, expected):
  assert _made(task, frame) == expected


def test_copied_names_are_new_and_in_the_text():
  ((history, asked, target),) = _made("copy_ned", 0)
  assert history == f"[USER] An inn in {target}."
  assert asked == "[domain] Inns [slot] city City of the inn"
  assert target != "Elmport"
  assert sorted(target.lower()) == sorted("elmport")


def test_a_value_carried_over_is_told_from_one_that_is_said():
  found = list(prefine_turns.refers(DIALOGUE, {s.name: s for s in SCHEMA}))
  assert [(key, text.id_suffix, text.target) for key, text in found] == [
    ("1_00000-004-Rides_2", "destination", "Inns city"),
    ("1_00000-004-Rides_2", "time", "none"),
  ]
  assert found[0][1].history == f"{SECOND} [SYSTEM] It is 555. [USER] A ride there at noon."
  assert found[0][1].question.startswith("[domain] Rides [slot] destination City to go to ")


@pytest.mark.parametrize("slot", ["", None])
def test_a_value_that_the_system_said_without_a_slot_refers_to_none(slot):
  """Regression: a traceback where an act has values and no slot, which corpora may have."""
  data = DIALOGUE.to_json()
  act = {"act": "INFORM", "values": ["Millbay"]} | ({} if slot is None else {"slot": slot})
  data["turns"][3]["frames"][0]["actions"] = [act]
  data["turns"][4]["frames"][0]["state"]["slot_values"]["destination"] = ["Millbay"]
  services = {service.name: service for service in SCHEMA}
  found = prefine_turns.refers(Dialogue.from_json(data), services)
  assert [text.id_suffix for _, text in found] == ["time"]


def test_equal_turns_have_equal_acts_and_unequal_ones_an_act_less(tmp_path):
  write_sample(tmp_path / "sample", {"train": 0, "dev": 40, "test": 0})
  corpus = open_corpus(tmp_path / "sample")
  told = {}
  for dialogue in corpus.dialogues("dev"):
    for number, turn in enumerate(dialogue.turns):
      acts = [(a["act"], a["slot"]) for frame in turn.frames for a in frame.actions]
      values = {
        turn.utterance[s["start"] : s["exclusive_end"]] for f in turn.frames for s in f.slots
      }
      told[f"{dialogue.dialogue_id}.t{number:02d}"] = turn.utterance, acts, values
  answers = {"yes": 0, "no": 0}
  for key, text in prefine_turns.same_meaning(corpus, "dev"):
    utterance, acts, values = told[key]
    (wording,) = [w for w in prefine.WORDINGS["same_meaning"] if text.question.endswith(f" {w}")]
    turns = text.question.removesuffix(f" {wording}").removeprefix("[USER] ")
    first, other = turns.split(" [USER] ")
    assert first == utterance
    assert text.history == ""
    missing = {value for value in values if value not in other}
    if text.target == "yes":
      assert not missing
    else:
      assert len(acts) > 1
      assert len(missing) <= 1
    answers[text.target] += 1
  assert min(answers.values()) > 10


@pytest.fixture(scope="module")
def data(tmp_path_factory, small_sample):
  """Records of a few sample dialogues, and the same ones again as simulated dialogues."""
  folder = tmp_path_factory.mktemp("prefine")
  (folder / "sgd").mkdir()
  (folder / "sgd/sample").symlink_to(small_sample / "data/sgd/sample")
  prepare(open_corpus(small_sample / "sample"), folder, name="sample_sim")
  return folder


def _examples(task, lengths, split="validation"):
  dataset = seqio.get_mixture_or_task(task).get_dataset(lengths, split, shuffle=False)
  return list(dataset.as_numpy_iterator())


def test_a_task_of_records_is_its_function_and_cuts_the_oldest_turns(data):
  lengths = {"inputs": 100, "targets": 64}
  with records_of(data):
    found = _examples("sample_sgd_intent", lengths)
  vocabulary = tasks.sample_vocabulary()
  states = [state for d in open_corpus("sample").dialogues("dev") for _, state in d.user_frames()]
  known = {f.state.active_intent for f in states}
  cut = [e for e in found if len(e["inputs"]) == 100]
  assert cut
  for example in found:
    assert example["targets_pretokenized"].decode() in known
    text = example["inputs_pretokenized"].decode()
    whole = vocabulary.encode(text)
    asked = vocabulary.encode(f"[domain] {text.rpartition(' [domain] ')[2]}")
    assert example["inputs"][-len(asked) - 1 : -1].tolist() == asked
    assert len(example["inputs"]) == min(100, len(whole) + 1)


@pytest.mark.parametrize("prefix", ["", "sample_"])
def test_mixtures(prefix):
  for mixture, size in (("prefine", 11), ("prefine_no_ned", 10)):
    names = {task.name for task in seqio.get_mixture_or_task(f"{prefix}{mixture}").tasks}
    assert len(names) == size
    assert tasks.REGISTERED[f"{prefix}{mixture}"].mixture
  assert f"{prefix}sgd_copy_ned" not in names
  all_names = {f"{prefix}sgd_{name}" for name in NAMES} | {f"{prefix}sim_t5dst_sgd"}
  assert names == all_names - {f"{prefix}sgd_copy_ned"}


def test_rates_are_sizes_up_to_a_maximum(data, monkeypatch):
  few_in_train(monkeypatch)
  with records_of(data):
    task = seqio.get_mixture_or_task("sample_sgd_user_turn")
    frames = seqio.get_mixture_or_task("sample_sgd_span")
    size = len(_examples(task.name, {"inputs": 9, "targets": 9}))
    assert task.num_input_examples("validation") == size
    mixture = tasks.register_mixture(
      "sample_capped", [frames.name, "sample_sim_t5dst_sgd"], maximum=50
    )
    try:
      assert frames.num_input_examples("train") > 50
      assert mixture.get_rate(frames) == 50
    finally:
      seqio.MixtureRegistry.remove("sample_capped")
      del tasks.REGISTERED["sample_capped"]
  with pytest.raises(SgdxError, match="maximum=0"):
    tasks.register_mixture("sample_none", [frames.name], maximum=0)


def test_what_is_not_prepared_is_named(tmp_path):
  with records_of(tmp_path), pytest.raises(SgdxError) as e:
    _examples("sample_sim_t5dst_sgd", {"inputs": 9, "targets": 9})
  assert "--name sample_sim" in e.value.fix


@pytest.mark.long
def test_both_stages_train(fork_server, data, tmp_path):
  """First the mixture from random weights, then T5DST from that checkpoint."""
  common = (
    "--gin.BATCH_SIZE=4", "--gin.EVAL_STEPS=1", "--gin.EVALUATOR_NUM_EXAMPLES=2",
    "--gin.network.T5Config.num_encoder_layers=1", "--gin.network.T5Config.num_decoder_layers=1",
    "--gin.MIXTURE_OR_TASK_MODULE='tests.papers.support.few_sample'", f"--tfds_data_dir={data}",
    "--gin.TASK_FEATURE_LENGTHS={'inputs': 224, 'targets': 16}",  # so that both compile the same
    "--gin.infer_eval/utils.DatasetConfig.task_feature_lengths={'inputs': 224, 'targets': 16}",
    "--gin.infer_eval/utils.DatasetConfig.batch_size=2",
    *(f"--gin.{of}/utils.DatasetConfig.pack=False" for of in ("train", "train_eval")),
    "--gin.train_eval/utils.DatasetConfig.mixture_or_task_name='sample_t5dst_sgd'",
    "--gin.infer_eval/utils.DatasetConfig.mixture_or_task_name='sample_sgd_span'",
  )  # fmt: skip
  start = f"--gin.INITIAL_CHECKPOINT_PATH='{tmp_path}/prefine/checkpoint_3'"
  for name, steps, more in (("prefine", 3, ()), ("t5dst_prefine", 5, (start,))):
    ends = (f"--gin.TRAIN_STEPS={steps}", f"--gin.EVAL_PERIOD={steps}")
    gin_file = f"gin/papers/prefinedst/sample/{name}.gin"
    run = fork_server.start(
      *("train", gin_file, f"--gin.MODEL_DIR='{tmp_path / name}'"),
      *(*common, *ends, *more),
      cwd=ROOT,
    )
    code, err = run.wait()
    assert code == 0, err[-3000:]
    assert (tmp_path / name / f"checkpoint_{steps}").is_dir()
  assert "checkpoint_3 (step 3)" in err


def test_they_are_listed(capsys):
  assert sgdx("ls", "tasks", "*", "--module", "sgdx_t5x.papers.prefinedst.tasks") == 0
  out = capsys.readouterr().out
  for name in itertools.chain(NAMES, ["user_turn_goals"]):
    assert f"sample_sgd_{name} " in out
  assert "sample_prefine_no_ned" in out


@pytest.mark.real
@pytest.mark.long
def test_every_value_carried_over_in_sgd_has_a_source(real_archive):
  """1,567 in the test split at hand, as `sgdx data stats` counts (docs/corpus-statistics.md)."""
  corpus = open_corpus(real_archive)
  services = {service.name: service for service in corpus.schema("test")}
  found = (x for d in corpus.dialogues("test") for x in prefine_turns.refers(d, services))
  assert sum(text.target != "none" for _, text in found) == 1_567
