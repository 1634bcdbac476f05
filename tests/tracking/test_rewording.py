"""How many states change with the wording, by a tracker whose states are known."""

import json

import pytest
from commands import assert_four_parts
from hotels import BARE, SCHEMA
from rule_tracker import RuleTracker

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
  changes, filled = count_changes(tracker, dialogues, shown["original"], variants, ["Hotels_1"])
  stars, pool = ("Hotels_1", "stars"), ("Hotels_1", "pool")
  expected = {stars: 2, pool: 1, ("Hotels_2", "pool"): 1}
  assert filled == expected
  assert (changes["same"].turns, changes["same"].changed, changes["same"].by_slot) == (4, 0, {})
  assert (changes["bare"].turns, changes["bare"].changed) == (4, 3)
  assert changes["bare"].by_slot == expected


@pytest.mark.parametrize(
  ("content", "words"),
  [
    ("{}", "not a list of dialogues"),
    ("[]", "not a list of dialogues"),
    ('["Hello"]', "dialogue 0: neither"),
    ('[["Hello"], ["Hi", 3]]', "dialogue 1: neither"),
    ('[{"turns": [], "service": "x"}]', "dialogue 0: neither"),
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
