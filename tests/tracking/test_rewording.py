"""How many states change with the wording, by a tracker whose states are known."""

import json
import re

import pytest
from commands import assert_four_parts, sgdx
from hotels import BARE, SCHEMA
from rule_tracker import RuleTracker

from sgdx_t5x.cli import track as cli_track
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.tracking.conversations import checked_view, read_schema
from sgdx_t5x.tracking.rewording import TypedDialogue, count_changes, read_typed

SAID = [
  ["Five stars, please", "The Ramada?", "No, two stars"],
  ["Hello there"],
  {"services": ["Hotels_2"], "turns": [{"speaker": "USER", "utterance": "With a pool: yes"}]},
]


def test_changes_are_counted_by_hand(tmp_path):
  """Without descriptions the tracker finds nothing: every value that it finds with them changes."""
  (tmp_path / "said.json").write_text(json.dumps(SAID))
  dialogues = read_typed(tmp_path / "said.json")
  assert dialogues[1] == TypedDialogue(("Hello there",))
  tracker, original = RuleTracker(reads_acts=False), read_schema(SCHEMA)
  shown = {"original": checked_view(tracker, original, "original")}
  variants = {
    "same": checked_view(tracker, original, "same", SCHEMA),
    "bare": checked_view(tracker, original, "bare", BARE),
  }
  services = ["Hotels_1", "Hotels_2"]  # the third dialogue is about one of them
  changes, filled = count_changes(tracker, dialogues, shown["original"], variants, services)
  expected = {(name, "stars"): 2 for name in services}
  expected |= {("Hotels_1", "pool"): 1, ("Hotels_2", "pool"): 2}
  assert filled == expected
  assert (changes["same"].turns, changes["same"].changed, changes["same"].by_slot) == (4, 0, {})
  assert (changes["bare"].turns, changes["bare"].changed) == (4, 3)
  assert changes["bare"].by_slot == expected


def test_the_command_prints_shares_of_the_services_that_are_tracked(tmp_path, monkeypatch, capsys):
  """A dialogue in SGD's format names another service, which is not tracked, too."""
  both = {"services": ["Hotels_2", "Hotels_1"], "turns": SAID[2]["turns"]}
  files = {"mine": SCHEMA, "bare": BARE, "said": [*SAID, both], "empty": [[]], "other": SAID[2:]}
  for name, content in files.items():
    (tmp_path / f"{name}.json").write_text(json.dumps(content))
  monkeypatch.setattr(cli_track, "_open", lambda args: RuleTracker(reads_acts=False))
  monkeypatch.chdir(tmp_path)
  command = ("track", "--schema", "mine.json", "--variant-schema", "bare=bare.json")
  command += ("--service", "Hotels_1", "--dialogues")
  assert sgdx(*command, "said.json") == 0
  *lines, _, skipped = capsys.readouterr().out.splitlines()[1:]
  assert skipped == "left out, about other services: 1 of 4 dialogues"
  rows = [re.split(r" {2,}", line.strip()) for line in lines]
  assert rows == [
    ["slot", "turns", "bare"],
    ["any slot", "4", "75.0"],  # the third dialogue is about Hotels_2 alone
    ["Hotels_1 pool", "2", "100.0"],
    ["Hotels_1 stars", "2", "100.0"],
  ]
  for name in ("empty.json", "other.json"):
    assert sgdx(*command, name) == 1
    assert_four_parts(capsys.readouterr().err, f"{name}: no user turn about Hotels_1")


def test_a_dialogue_about_a_service_that_is_not_there():
  tracker, original = RuleTracker(reads_acts=False), read_schema(SCHEMA)
  shown = checked_view(tracker, original, "original")
  dialogues = [TypedDialogue(("Five stars",)), TypedDialogue(("Hi",), ("Hotels1",))]
  with pytest.raises(SgdxError) as error:
    count_changes(tracker, dialogues, shown, {"same": shown}, original.names)
  assert_four_parts(error.value.text, "dialogue 1", "'Hotels1'", "Hotels_1")
  assert TypedDialogue(("Hi",), ()).tracked(original.names) == []


@pytest.mark.parametrize(
  ("content", "words"),
  [
    ("{}", "not a list of dialogues"),
    ("[]", "not a list of dialogues"),
    ('["Hi"]\n["Hi"]', 'for example [["I need'),
    ('["Hello"]', "dialogue 0: neither"),
    ('[["Hello"], ["Hi", 3]]', "dialogue 1: neither"),
    ('[{"turns": [], "service": "x"}]', "dialogue 0: neither"),
    ('[{"turns": [], "services": "Hotels_1"}]', "dialogue 0: services is 'Hotels_1', not a list"),
    (
      '[{"services": ["a"], "turns": [{"speaker": "SYSTEM", "utterance": "Hi"}]}]',
      "turn 0 is not an utterance of USER",
    ),
    ("[", "said.json"),
  ],
)
def test_files_that_hold_no_dialogues(tmp_path, content, words):
  (tmp_path / "said.json").write_text(content)
  with pytest.raises(SgdxError) as error:
    read_typed(tmp_path / "said.json")
  assert_four_parts(error.value.text, words)
