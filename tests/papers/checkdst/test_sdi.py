import json

import pytest
from perturbed import perturbed_sample, sample_dialogues

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.checkdst import sdi
from sgdx_t5x.papers.checkdst.sdi_terms import read_terms


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


@pytest.mark.parametrize(("only", "kind"), list(sdi.ONLY.items()))
def test_one_kind_of_disfluency_can_be_isolated(only, kind):
  _, _, lines, _ = perturbed_sample("sdi", {"only": (only,)})
  assert {insertion["kind"] for _, insertion in _insertions(lines)} == {kind}


def test_a_restart_begins_every_turn_if_asked():
  _, _, lines, counts = perturbed_sample("sdi", {"restart": "always"})
  assert counts["restarts"] == sum(len(found) for found in lines.values())
  assert all(line["insertions"][0]["kind"] == "restart" for line, _ in _insertions(lines))


@pytest.mark.parametrize(
  ("text", "lowered"),
  [("Find it.", True), ("I find it.", False), ("I'm here.", False), ("Zanzibar it is.", False)],
)
def test_the_first_word_is_written_small_unless_it_is_a_name(text, lowered):
  pool = sdi.Pool({}, {}, frozenset({"find", "it"}))
  turn = {"utterance": text, "frames": []}
  assert sdi._lower_first(turn, 0, pool) == lowered
  assert turn["utterance"][0].islower() == lowered


def test_terms_of_ones_own(tmp_path):
  path = tmp_path / "terms.json"
  terms = {
    "rates": {"repair": 0, "filler": 1, "repeat": 0, "restart": 0},
    "restarts": [["Erm,", 1]], "fillers": [["basically", 1]], "repeat_joins": [[" ", 1]],
    "edits": [["no", 1]],
  }  # fmt: skip
  path.write_text(json.dumps(terms))
  _, _, lines, _ = perturbed_sample("sdi", {"terms": str(path)})
  assert {i["text"] for _, i in _insertions(lines)} <= {"basically ", "Erm, "}
  for change in ({"rates": {**terms["rates"], "filler": 2}}, {"fillers": []}, {"edits": [["no"]]},
                 {"more": 1}, {"restarts": [[" x", 1]]}):  # fmt: skip
    path.write_text(json.dumps({**terms, **change}))
    with pytest.raises(SgdxError) as error:
      read_terms(str(path))
    assert next(iter(change)).rstrip("s") in error.value.text


@pytest.mark.parametrize(
  "edits", ['["no", 1e999]', '["no", NaN]', '["no", 1e308], ["er", 1e308]', r'["\ud83d", 1]']
)
def test_terms_that_cannot_be_drawn_or_written_are_refused(edits, tmp_path):
  path = tmp_path / "terms.json"
  lists = ", ".join(f'"{name}": [["x", 1]]' for name in ("restarts", "fillers", "repeat_joins"))
  rates = '"rates": {"repair": 1, "filler": 0, "repeat": 0, "restart": 0}'
  path.write_text(f'{{{rates}, {lists}, "edits": [{edits}]}}')
  with pytest.raises(SgdxError, match="edits: "):
    read_terms(str(path))


def test_an_unknown_kind_of_disfluency_is_refused():
  with pytest.raises(SgdxError, match="disfluency 'hiccups'"):
    perturbed_sample("sdi", {"only": ("hiccups",)})
  with pytest.raises(SgdxError, match="restart 'always', but only repairs"):
    perturbed_sample("sdi", {"only": ("repairs",), "restart": "always"})
