import pytest
from perturbed import perturbed_sample, sample_dialogues

from sgdx_t5x.papers.checkdst import sdi


def _insertions(lines):
  for found in lines.values():
    for line in found:
      for insertion in line["insertions"]:
        yield line, insertion


def test_what_is_recorded_stands_in_the_utterance():
  _, dialogues, lines, counts = perturbed_sample("sdi", {})
  turns = {(d["dialogue_id"], i): turn for d in dialogues for i, turn in enumerate(d["turns"])}
  found = 0
  for line, insertion in _insertions(lines):
    text = turns[line["dialogue_id"], line["turn"]]["utterance"]
    assert text[insertion["at"] :].startswith(insertion["text"])
    found += 1
  assert found == sum(counts[f"{kind}s"] for kind in ("repair", "filler", "repeat", "restart"))
  assert min(counts[f"{kind}s"] for kind in ("repair", "filler", "repeat", "restart")) > 20


def test_only_users_are_disfluent_and_almost_all_of_their_turns_are():
  _, dialogues, _, _ = perturbed_sample("sdi", {})
  same = changed = 0
  for data, before in zip(dialogues, sample_dialogues(), strict=True):
    for turn, old in zip(data["turns"], before["turns"], strict=True):
      if turn["speaker"] == "SYSTEM":
        assert turn == old
      elif turn["utterance"] == old["utterance"]:
        same += 1
      else:
        changed += 1
  assert changed >= 0.98 * (same + changed)


def test_a_wrong_value_is_none_of_the_dialogue():
  _, _, lines, _ = perturbed_sample("sdi", {})
  before = {data["dialogue_id"]: data for data in sample_dialogues()}
  for line, insertion in _insertions(lines):
    if insertion["kind"] == "repair":
      data = before[line["dialogue_id"]]
      text = " ".join(turn["utterance"].lower() for turn in data["turns"])
      assert insertion["instead"].lower() not in text
      service, slot = insertion["slot"].split(".")
      frame = next(f for f in data["turns"][line["turn"]]["frames"] if f["service"] == service)
      assert slot in [span["slot"] for span in frame["slots"]]


def test_nothing_is_inserted_within_a_value():
  _, dialogues, _, _ = perturbed_sample("sdi", {})
  before = {data["dialogue_id"]: data for data in sample_dialogues()}
  for data in dialogues:
    old = before[data["dialogue_id"]]
    for turn, other in zip(data["turns"], old["turns"], strict=True):
      for frame, same in zip(turn["frames"], other["frames"], strict=True):
        texts, others = (
          [each["utterance"][s["start"] : s["exclusive_end"]] for s in spans]
          for each, spans in ((turn, frame["slots"]), (other, same["slots"]))
        )
        assert texts == others


@pytest.mark.parametrize(
  ("text", "lowered"),
  [("Find it.", True), ("I find it.", False), ("I'm here.", False), ("Zanzibar it is.", False)],
)
def test_the_first_word_is_written_small_unless_it_is_a_name(text, lowered):
  pool = sdi.Pool({}, {}, frozenset({"find", "it"}))
  turn = {"utterance": text, "frames": []}
  new_text = sdi._lower_first(turn, 0, pool)
  assert (new_text != text) == new_text[0].islower() == lowered
