"""Demonstration files: read, refused, imported without being run, made from dialogues."""

import dataclasses
import json
import pathlib

import pytest
import tiny_corpus as tiny

from sgdx_t5x.cli import main
from sgdx_t5x.corpus.dialogue import Dialogue, frame_id
from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.variants import SPLITS
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.metrics.frames import gold_frames
from sgdx_t5x.prompts.protocol import service_pairs
from sgdx_t5x.prompts.sdt import SDT, SdtStyle, load_demonstrations
from sgdx_t5x.prompts.sdt.demonstrations import Demonstration, demonstrations_text
from sgdx_t5x.prompts.sdt.google_prompts import read_google_prompts
from sgdx_t5x.prompts.sdt.make import make_demonstrations
from sgdx_t5x.prompts.sdt.text import LEAST_WORDS
from sgdx_t5x.scoring.score import score_predictions

BANK = {
  "service": "Banks_1",
  "text": "[user] wire 50 dollars to my sister Ann from savings now please [system] ok",
  "slots": {"kind": "Savings", "to": "Ann", "amount": "50 dollars"},
  "active_intent": "Do",
}
HOME = {
  "service": "Homes_2",
  "text": "[user] rent a flat in Soho",
  "slots": {"intent": "rent", "area": "Soho"},
}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
  return open_corpus(tiny.write_corpus(tmp_path_factory.mktemp("tiny")))


def write(path, *rows):
  path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
  return str(path)


def shown(corpus, path, split="test", **style):
  """Yields the prompts of a split's services for an empty history."""
  schema = corpus.schema(split)
  for name, pair in service_pairs(schema, schema).items():
    frame = ExampleId("original", split, frame_id("1", 0, name))
    yield from SDT(SdtStyle(demos=path, **style)).prompts(frame, pair, ())


def test_a_file_and_its_lines(small, tmp_path):
  path = write(tmp_path / "d.jsonl", BANK, HOME, {**BANK, "source": "me"})
  demos = load_demonstrations(path)
  assert [len(x) for x in demos.by_service.values()] == [2, 1]
  assert demos.source == "me+own"
  first = demos.by_service["Banks_1"][0]
  assert first.to_json() == BANK
  assert first.turns == (
    ("USER", "wire 50 dollars to my sister Ann from savings now please"),
    ("SYSTEM", "ok"),
  )
  assert len(list(shown(small, path))) == 2
  write(tmp_path / "d.jsonl", HOME)  # a changed file is read again
  assert list(load_demonstrations(path).by_service) == ["Homes_2"]


def test_a_path_may_name_an_environment_variable(tmp_path, monkeypatch):
  monkeypatch.setenv("SGDX_DEMOS", write(tmp_path / "d.jsonl", BANK))
  assert "Banks_1" in load_demonstrations("$SGDX_DEMOS").by_service
  monkeypatch.delenv("SGDX_DEMOS")
  with pytest.raises(SgdxError, match=r"export SGDX_DEMOS=demos\.jsonl"):
    load_demonstrations("$SGDX_DEMOS")
  with pytest.raises(SgdxError, match="export SGDX_DEMOS=FOLDER"):
    load_demonstrations("${SGDX_DEMOS}/d.jsonl")
  with pytest.raises(SgdxError, match="is a folder"):
    load_demonstrations(str(tmp_path))


def changed(row, **slots):
  return row | {"slots": row["slots"] | slots}


@pytest.mark.parametrize(
  ("rows", "part"),
  [
    ([BANK], "no demonstration of service Homes_2"),
    ([BANK], "sgdx data demos make --corpus"),
    ([BANK, {**HOME, "service": "Home_2"}], "available: nearest: Home_2"),
    ([BANK, changed(HOME, price="3")], "of Homes_2: slot 'price'"),
    ([BANK, changed(HOME, intent="lease")], "value 'lease' of slot 'intent'"),
    ([changed(BANK, balance="3"), HOME], "available: kind, to, amount"),  # not tracked
    ([{**BANK, "slots": {"kind": "Savings"}}, HOME], "no value for slot 'to'"),
    ([{**BANK, "active_intent": "Dont"}, HOME], "intent 'Dont'"),
    ([{**BANK, "intents": ["Do", "Do"]}, HOME], "intents Do, Do"),
    ([{**BANK, "text": ""}], "d.jsonl, line 1: wrong type: an empty text"),
    ([{**BANK, "text": 3}], "line 1: wrong type: a value is not a string"),
    ([{**BANK, "source": "a|b"}], "line 1: wrong type"),
    ([BANK, {"service": "Homes_2", "text": "[user]"}], "line 2: missing key 'slots'"),
    ([BANK, 3], "line 2: wrong type"),
    ([], "no demonstrations"),
  ],
)
def test_what_does_not_fit_is_refused(small, tmp_path, rows, part):
  path = write(tmp_path / "d.jsonl", *rows)
  with pytest.raises(SgdxError) as caught:
    list(shown(small, path))
  assert part in " ".join(str(caught.value).split())
  assert "fix:" in str(caught.value)


def test_a_missing_or_broken_file_is_refused(small, tmp_path):
  with pytest.raises(SgdxError, match="no file at"):
    list(shown(small, str(tmp_path / "none.jsonl")))
  (tmp_path / "d.jsonl").write_text('{"service": "Ba')
  with pytest.raises(SgdxError, match="line 1: not valid JSON"):
    list(shown(small, str(tmp_path / "d.jsonl")))


# --- the sample's ----------------------------------------------------------------------------


def test_the_samples_own_demonstrations():
  """Two per service, sharing no long utterance with test; free values occur in the text."""
  corpus, demos = open_corpus("sample"), load_demonstrations("sample")
  known = {service.name: service for split in SPLITS for service in corpus.schema(split)}
  assert set(demos.by_service) == set(known)
  for service in known.values():
    assert len(demos.of(service)) == 2
    for demo in demos.of(service):
      assert demo.text.startswith("[user] ")
      assert demo.turns[-1][0] == "USER"
      for slot in service.noncategorical_slots & set(demo.slots):
        assert demo.slots[slot] in (*("none", "dontcare"), *_within(demo, slot))
  everything = [demo for found in demos.by_service.values() for demo in found]
  gold = gold_frames(corpus.dialogues("test"))
  assert SDT(SdtStyle(demo=-1)).provenance(corpus, gold).fields["leak"].startswith("0of")
  assert {demo.source for demo in everything} == {"sample"}


def _within(demo, slot):
  return [demo.slots[slot]] if demo.slots[slot] in demo.text else []


# --- Google's file ---------------------------------------------------------------------------

SOURCE = """
import collections, os
os.system("false")  # nothing of this is run
Prompt = collections.namedtuple('Prompt', ['utt', 'slots', 'intents', 'intent_idx'])
SGD_SEPARATED_ANNOTATION_PROMPTS = {
    'Banks_1': [
        Prompt(
            utt='[user] wire it '
            'to Ann',
            slots=OrderedDict([
                ('to', 'Ann'), ('kind', 'Savings of possible values Checking, Savings')]),
            intents=['Do', 'Ask'],
            intent_idx=1),
    ],
}
MW_SEPARATED_ANNOTATION_PROMPTS = {'x': [1 / 0]}
"""


def test_googles_file_is_read_not_run():
  [demo] = read_google_prompts(SOURCE, "f.py")
  assert demo == Demonstration(
    "Banks_1",
    "[user] wire it to Ann",
    {"to": "Ann", "kind": "Savings"},
    "Ask",
    ("Do", "Ask"),
    "google-sdt",
  )


@pytest.mark.parametrize(
  ("text", "part"),
  [
    ("x = (", "not Python source"),
    ("x = 3", "no dictionary SGD_SEPARATED_ANNOTATION_PROMPTS"),
    (b"\xff\x00", "not Python source"),
    (SOURCE.replace("'Ann')", "open('x'))"), "line 6: unreadable entry"),
    (SOURCE.replace("intent_idx=1", "intent_idx=7"), "line 6: unreadable entry"),
    (SOURCE.replace("Prompt(\n", "list(\n").replace("utt=", "x="), "line 6"),
  ],
)
def test_another_file_is_refused(text, part):
  with pytest.raises(SgdxError, match=r"f\.py") as caught:
    read_google_prompts(text, "f.py")
  assert part in str(caught.value)


# --- made from dialogues ---------------------------------------------------------------------


def dialogue(name, *states, services=("Banks_1",)):
  turns = []
  for i, state in enumerate(states):
    said = f"turn {i} of {name} with {' '.join(v for x in state.values() for v in x)}"
    frames = [
      {
        "service": service,
        "state": {"active_intent": "Do", "requested_slots": [], "slot_values": state},
      }
      for service in services
    ]
    turns.append({"speaker": "USER", "utterance": said, "frames": frames})
    turns.append({"speaker": "SYSTEM", "utterance": f"answer  {i}", "frames": []})
  return Dialogue.from_json({"dialogue_id": name, "services": list(services), "turns": turns})


def test_the_shortest_beginning_that_sets_the_most_is_taken(small):
  one = {"kind": ["Savings"]}
  two = {**one, "to": ["Anna Lee", "anna"]}
  dialogues = [
    dialogue("a", one, two, two),
    dialogue("b", two),  # as many slots in fewer turns
    dialogue("c", two, services=("Homes_2", "Banks_1")),  # another service takes part
    dialogue("d", one),
  ]
  schema = small.schema("test")
  made = make_demonstrations(dialogues, schema, 3, "mine", ["Banks_1"])
  assert list(made) == ["Banks_1"]
  assert [demo.text[:20] for demo in made["Banks_1"]] == [
    "[user] turn 0 of b w",
    "[user] turn 0 of a w",
    "[user] turn 0 of c w",
  ]
  best, second, _ = made["Banks_1"]
  assert best.slots == {"kind": "Savings", "to": "Anna Lee", "amount": "none"}
  assert second.text.endswith("[system] answer 0 [user] turn 1 of a with Savings Anna Lee anna")
  assert (best.active_intent, best.source) == ("Do", "mine")
  # Ties are broken by a hash of the id, whatever the order of the dialogues.
  same = [dialogue(f"{i}", two) for i in range(30)]
  made = [make_demonstrations(x, schema, 1, "", ["Banks_1"]) for x in (same, same[::-1])]
  picked = {by_service["Banks_1"][0].text for by_service in made}
  assert len(picked) == 1


# --- commands --------------------------------------------------------------------------------


def test_import_and_check(small, tmp_path, capsys):
  (tmp_path / "p.py").write_text(SOURCE)
  out = tmp_path / "d.jsonl"
  assert main(["data", "demos", "import", "--from", str(tmp_path / "p.py"), "--out", str(out)]) == 0
  assert "1 demonstrations of 1 services" in capsys.readouterr().err
  assert json.loads(out.read_text())["slots"] == {"to": "Ann", "kind": "Savings"}
  assert main(["data", "demos", "import", "--from", str(out), "--out", str(out)]) == 2
  assert (
    main(["data", "demos", "import", "--from", str(tmp_path / "no.py"), "--out", str(out)]) == 1
  )


def test_make_prompts_score_and_the_leak(small, tmp_path, capsys):
  """Demonstrations taken from the test split itself: the score's signature reports the leak."""
  corpus, out = str(small.source.origin), str(tmp_path / "d.jsonl")
  args = ["--corpus", corpus, "--split", "test", "--out", out]
  assert main(["data", "demos", "make", *args]) == 0
  assert "4 demonstrations of 2 services" in capsys.readouterr().err
  assert main(["data", "demos", "make", *args]) == 0  # the same again
  made = pathlib.Path(out).read_text()
  pathlib.Path(out).write_text(made + "\n")
  assert main(["data", "demos", "make", *args]) == 1
  assert "perhaps your own" in capsys.readouterr().err
  pathlib.Path(out).write_text(made)
  packed = [*args[:-1], f"{out}.gz"]
  assert main(["data", "demos", "make", *packed]) == main(["data", "demos", "make", *packed]) == 0
  assert load_demonstrations(f"{out}.gz").crc == load_demonstrations(out).crc
  style = ["--prompt-style", "format=sdt", f"demos={out}", "intents=list"]
  rows = str(tmp_path / "p.jsonl")
  variants = ("original", "v3")
  assert main(["prompts", "--corpus", corpus, "--variant", *variants, "--out", rows, *style]) == 0
  answers = []
  for line in (tmp_path / "p.jsonl").read_text().splitlines():
    row = json.loads(line)
    assert row["prompt"].startswith("[example] [user] ")
    answers.append({"id": row["id"], "prediction": "[state] [intent] none"})
  path = tiny.write_rows(tmp_path / "a.jsonl", answers)
  prompt_format = SDT(SdtStyle(demos=out, intents="list"))
  scored = score_predictions(
    small, "test", {"all": path}, prompt_format=prompt_format, bootstrap_samples=0
  )
  crc = load_demonstrations(out).crc
  assert f"|format:sdt|style:intents=list|demos:{small.name}-test:{crc}|leak:" in scored.signature
  assert str(tmp_path) not in scored.signature
  assert scored.common["v3"].metrics["joint_goal_accuracy"].mean() == 1 / 6


def test_the_file_that_a_style_names_is_not_overwritten(small, tmp_path, capsys):
  path = write(tmp_path / "d.jsonl", BANK, HOME)
  before = (tmp_path / "d.jsonl").read_bytes()
  command = ["prompts", "--corpus", str(small.source.origin), "--variant", "v1", "--out", path]
  assert main([*command, "--prompt-style", "format=sdt", f"demos={path}"]) == 2
  assert "is also an input" in capsys.readouterr().err
  assert (tmp_path / "d.jsonl").read_bytes() == before


def test_words_of_the_scored_split_are_a_leak(tmp_path):
  """Counts only shown demonstrations of scored services, and utterances of seven words or more."""
  corpus = open_corpus("sample")
  dialogue = next(
    d for d in corpus.dialogues("dev") if len(d.turns[0].utterance.split()) >= LEAST_WORDS
  )
  said, service = dialogue.turns[0].utterance, corpus.schema("dev")[dialogue.services[0]]
  # However the corpus spaces its words.
  spaced = dataclasses.replace(dialogue.turns[0], utterance=f" {said.replace(' ', '  ')} ")
  dialogue = dataclasses.replace(dialogue, turns=(spaced, *dialogue.turns[1:]))
  slots = {service.slots[i].name: "none" for i in service.tracked_slots}
  text = f"[user] {said} [system] {said} [user] words that nobody says in any of these [user] Yes."
  demos = [
    Demonstration(service.name, text, slots, "NONE"),
    Demonstration(service.name, "[user] Yes.", slots, "NONE"),
  ]
  path = tmp_path / "d.jsonl"
  path.write_text(demonstrations_text(demos))
  gold = gold_frames([dialogue])
  found = SDT(SdtStyle(demos=str(path))).provenance(corpus, gold)
  assert found.fields["leak"] == "1of2"
  assert "LEAK: 1 of 2 user utterances" in found.notes[0]
  found = SDT(SdtStyle(demos=path, demo=1)).provenance(corpus, gold)
  assert (found.fields["leak"], found.notes) == ("0of0", ())
  assert SDT(SdtStyle(demos=str(path))).provenance(corpus, ()).fields["leak"] == "0of0"


def test_the_samples_demonstrations_with_another_corpus(small):
  with pytest.raises(
    SgdxError, match=r"fix: +pass demonstrations of this corpus: sgdx data demos make"
  ):
    SDT(SdtStyle()).provenance(small, ())


def test_demonstrations_of_an_unknown_service_are_refused(small, tmp_path):
  path = write(tmp_path / "e.jsonl", BANK, HOME, {**HOME, "service": "Homes_3"})
  with pytest.raises(SgdxError, match="a demonstration of service 'Homes_3'"):
    SDT(SdtStyle(demos=path)).provenance(small, ())
